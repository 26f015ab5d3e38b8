// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
// Activation functions. They know the ranges of channels that they make of those they are given.

#include <algorithm>
#include <cmath>

#include "furl/extra/optimal_codebooks.hpp"
#include "layers.hpp"
#include "parallel.hpp"

namespace trainer {
namespace {

/// Ranges of channels after a function of their ends.
buffer<float> ranges_from(const buffer<float>& x, float (*lo)(float), float (*hi)(float)) {
  buffer<float> y(x.size());
  for (index i = 0; i < x.size(); i += 2) {
    y.data()[i] = lo(x.data()[i]);
    y.data()[i + 1] = hi(x.data()[i + 1]);
  }
  return y;
}

float rectified(float x) {
  return x > 0.0F ? x : 0.0F;
}

float normal_probability(float x) {
  return 0.5F * std::erfc(-x * 0.70710678F);
}

float gelu_of(float x) {
  return x * normal_probability(x);
}

float gelu_derivative(float x) {
  return normal_probability(x) + x * 0.39894228F * std::exp(-0.5F * x * x);
}

/// The 8 levels that stand for the derivative of a GELU (Few-bit backward, Novikov et al., 2023).
const furl::codebook& gelu_levels() {
  static const furl::codebook book =
      value_of(furl::host::derivative_codebook(furl::host::activation::gelu, 3));
  return book;
}

}  // namespace

variable rectify(tape& t, const variable& x) {
  const tensor y = map(
      t.pool(), [](float v) { return rectified(v); }, x.value);
  if (!t.is_recording()) return {y};
  const shape& s = y.shape;
  const codes mask(s.size());
  for_each(t.pool(), s.n, [&](index i, int) {
    std::transform(y.sample(i), y.sample(i) + s.sample(), mask.data() + i * s.sample(),
                   [](float v) { return u8(v > 0.0F ? 1 : 0); });
  });
  // Only the sign matters, and it must be exact: a folded y may have lost small positive values,
  // and the gradient with them. A bit per element says it all.
  const auto saved = t.hooks().save(mask, 1);
  variable out = t.record(y, [&t, slot = x.slot, saved](const tensor& dy) {
    if (slot < 0) return;
    const codes positive = t.hooks().load(saved);
    for_each(t.pool(), dy.shape.n, [&](index i, int) {
      float* const gradient = dy.sample(i);
      const u8* const pass = positive.data() + i * dy.shape.sample();
      for (index k = 0; k < dy.shape.sample(); ++k) gradient[k] = pass[k] != 0 ? gradient[k] : 0.0F;
    });
    t.add_gradient(slot, dy);
  });
  out.ranges = ranges_from(x.ranges, rectified, rectified);
  out.mask = [&t, saved] { return t.hooks().load(saved); };
  return out;
}

variable gelu(tape& t, const variable& x) {
  const tensor y = map(
      t.pool(), [](float v) { return gelu_of(v); }, x.value);
  if (!t.is_recording()) return {y};
  const bool in_few_bits = t.hooks().method() == method::few_bit;
  const saved_tensor saved = in_few_bits ? t.hooks().save_levels(x.value, gelu_levels())
                                         : t.hooks().save(x.value, x.ranges);
  variable out = t.record(y, [&t, slot = x.slot, saved, in_few_bits](const tensor& dy) {
    if (slot < 0) return;
    if (in_few_bits) {
      t.hooks().multiply_by_levels(saved, dy);
    } else {
      const tensor in = t.hooks().load(saved);
      for_each(t.pool(), dy.shape.n, [&](index i, int) {
        std::transform(dy.sample(i), dy.sample(i) + dy.shape.sample(), in.sample(i), dy.sample(i),
                       [](float gradient, float v) { return gradient * gelu_derivative(v); });
      });
    }
    t.add_gradient(slot, dy);
  });
  // From 0 the function falls to -0.17 before it rises.
  const auto lo = [](float v) { return v < 0.0F ? -0.17F : v; };
  out.ranges = ranges_from(x.ranges, lo, rectified);
  return out;
}

}  // namespace trainer
