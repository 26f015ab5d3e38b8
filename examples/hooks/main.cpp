// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// The least that a framework needs to keep its activations compressed: save, which an operation
// calls in the forward pass for what its gradient needs, and load, which it calls in the backward
// pass. Around them is a toy autograd.

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "furl/compress.hpp"

using array = std::vector<float>;
using kept = furl::host::stash;  // owns the compressed bytes, and frees them

// ---- The integration -------------------------------------------------------------------------

/// Ends the program where a call is refused; a framework raises its own exception.
void require(const furl::status& s) {
  if (s) return;
  std::puts(furl::to_string(s).c_str());  // such as "codec.bits is 9: must be 1..8"
  std::exit(1);
}

kept save(const array& x) {
  static furl::u64 calls = 0;
  furl::codec codec;  // 2 bits, groups of 256, stochastic rounding: ActNN
  codec.bits = 4;
  const auto plan = furl::plan::make(codec, {furl::i64(x.size())});
  require(plan.status());
  const furl::random_key key{/*seed=*/1, /*offset=*/calls++};  // no two tensors share one
  furl::result<kept> made = kept::compress(*plan, x, key);
  require(made.status());
  return std::move(*made);
}

array load(const kept& stash) {
  array x(std::size_t(stash.plan().num_elements()));
  require(stash.restore(x));
  return x;
}

// ---- The autograd ----------------------------------------------------------------------------

struct step {
  kept input;                  // all that a step keeps
  float (*derivative)(float);  // of its output, from its input
};
std::vector<step> tape;

array apply(const array& x, float (*f)(float), float (*derivative)(float)) {
  tape.push_back({save(x), derivative});
  array y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = f(x[i]);
  return y;
}

array backward(array gradient) {
  for (; !tape.empty(); tape.pop_back()) {
    const array x = load(tape.back().input);
    for (std::size_t i = 0; i < x.size(); ++i) gradient[i] *= tape.back().derivative(x[i]);
  }
  return gradient;
}

int main() {
  array x(100000);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 0.01f * float(i % 157);
  const array s = apply(
      x, [](float v) { return std::sin(v); }, [](float v) { return std::cos(v); });
  const array y = apply(
      s, [](float v) { return v * v; }, [](float v) { return 2.0f * v; });
  furl::u64 bytes = 0;
  for (const step& each : tape) bytes += each.input.plan().size_bytes();
  const array found = backward(array(y.size(), 1.0f));
  double error = 0, square = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double exact = std::sin(2.0 * double(x[i]));  // the derivative of sin(x)^2
    error += (double(found[i]) - exact) * (double(found[i]) - exact);
    square += exact * exact;
  }
  const double relative = std::sqrt(error / square);
  std::printf("kept %llu bytes of %zu, relative error of the gradient %.3f\n", bytes, 8 * x.size(),
              relative);
  return bytes < x.size() * 8 / 7 && relative > 0.0 && relative < 0.1 ? 0 : 1;
}
