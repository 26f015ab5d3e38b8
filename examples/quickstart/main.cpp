// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// The example of the README, between the two marks.

// [quickstart]
#include <cstddef>
#include <cstdio>
#include <vector>

#include "furl/furl.hpp"

int main() {
  furl::codec codec;            // 2 bits, groups of 256, stochastic rounding: ActNN
  codec.window = {1, 1, 8, 8};  // and the mean of every 8 x 8 cell kept apart: DIVISION
  const auto plan = furl::plan::make(codec, {4, 16, 28, 28});  // any shape of rank 0 to 8
  if (!plan) return std::puts(furl::to_string(plan.status()).c_str()), 1;

  std::vector<float> x(std::size_t(plan->num_elements()), 0.5f);  // or f16, bf16
  std::vector<std::byte> blob(plan->size_bytes());       // keep this until the backward pass
  const furl::random_key key{/*seed=*/1, /*offset=*/0};  // another offset each time
  furl::status status = furl::host::compress(*plan, x, blob, key);

  std::vector<float> y(x.size());
  if (status) status = furl::host::decompress(*plan, blob, y);
  if (!status) return std::puts(furl::to_string(status).c_str()), 1;
  std::printf("%.2f bits per value, x[0] = %g, y[0] = %g\n", plan->bits_per_value(), x[0], y[0]);
}
// [quickstart]
