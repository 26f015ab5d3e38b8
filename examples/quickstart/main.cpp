// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// The README's example for host memory, between the two marks, and a program around it.

// [quickstart]
#include <cstddef>
#include <vector>

#include "furl/compress.hpp"

furl::status compress_and_restore(const std::vector<float>& x, std::vector<float>& y) {
  furl::codec codec;  // 2 bits, groups of 256, stochastic rounding, unless you say otherwise:
  codec.bits = 4;
  const auto plan = furl::plan::make(codec, {furl::i64(x.size())});
  if (!plan) return plan.status();
  std::vector<std::byte> blob(plan->size_bytes());  // keep this until the backward pass
  const furl::status s = furl::host::compress(*plan, x, blob, {/*seed=*/1, /*offset=*/0});
  return s ? furl::host::decompress(*plan, blob, y) : s;
}
// [quickstart]

#include <cstdio>

int main() {
  std::vector<float> x(50000);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(i % 97) / 32.0f;
  std::vector<float> y(x.size());
  const furl::status s = compress_and_restore(x, y);
  std::printf("%s: x[40] = %g, y[40] = %g\n", furl::to_string(s).c_str(), x[40], y[40]);
  return s ? 0 : 1;
}
