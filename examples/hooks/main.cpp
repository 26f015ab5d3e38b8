// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// What a framework needs to keep activations compressed: save and load, in a toy autograd.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "furl/compress.hpp"

using array = std::vector<float>;
using kept = furl::host::stash;  // owns the compressed bytes, and frees them

void check(const furl::status& s) {  // a framework raises an exception of its own
  if (s) return;
  std::puts(furl::to_string(s).c_str());  // "codec.bits is 9: must be 1..8"
  std::exit(1);
}

// save keeps what a gradient needs, load gives it back. offset: another one for each call.
kept save(const array& x, furl::u64 offset) {
  furl::codec codec;
  codec.bits = 4;  // groups of 256 values, rounded at random
  const auto plan = furl::plan::make(codec, {furl::i64(x.size())});
  check(plan.status());
  auto stash = kept::compress(*plan, x, {/*seed=*/1, offset});
  check(stash.status());
  return std::move(*stash);
}

array load(const kept& stash) {
  array x(std::size_t(stash.plan().num_elements()));
  check(stash.restore(x));
  return x;
}

// The input of each operation, and its derivative.
std::vector<std::pair<kept, float (*)(float)>> tape;
furl::u64 num_saved = 0;  // over all steps: the tape is empty again after each

array apply(array x, float f(float), float derivative(float)) {
  tape.emplace_back(save(x, num_saved++), derivative);
  for (float& each : x) each = f(each);
  return x;
}

int main() {
  array x(100000), gradient(x.size(), 1.0f);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 0.01f * float(i % 157);
  apply(apply(x, std::sin, std::cos), std::exp, std::exp);  // y = exp(sin(x))
  std::size_t bytes = 0;
  for (; !tape.empty(); tape.pop_back()) {
    const array input = load(tape.back().first);
    for (std::size_t i = 0; i < x.size(); ++i) gradient[i] *= tape.back().second(input[i]);
    bytes += tape.back().first.plan().size_bytes();
  }
  double error = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    error += std::abs(gradient[i] - std::cos(x[i]) * std::exp(std::sin(x[i]))) / double(x.size());
  std::printf("kept %zu of %zu bytes, mean error of gradient %.3f\n", bytes, 8 * x.size(), error);
  return 7 * bytes < 8 * x.size() && error < 0.06 ? 0 : 1;
}
