// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
// Sums of two tensors; of some of them, layers that follow keep one in place of the sum (auxiliary
// activation learning, Woo and Jeon, ICLR 2023). What is kept is part of the layers' input, so that
// weights learn from it; the gradient of the input stays exact.

#include <algorithm>
#include <functional>

#include "furl/extra/codebook.hpp"
#include "layers.hpp"
#include "parallel.hpp"

namespace trainer {
namespace {

tensor copy_of(const tensor& x) {
  tensor copy(x.shape);
  std::copy(x.values.begin(), x.values.end(), copy.values.begin());
  return copy;
}

variable record_sum(tape& t, const tensor& y, index first, index second) {
  return t.record(y, [&t, first, second](const tensor& dy) {
    // Each slot owns its gradient: one of them needs a copy.
    if (first >= 0) t.add_gradient(first, second >= 0 ? copy_of(dy) : dy);
    if (second >= 0) t.add_gradient(second, dy);
  });
}

}  // namespace

variable add(tape& t, const variable& a, const variable& b) {
  const tensor y = map(t.pool(), std::plus<>(), a.value, b.value);
  if (!t.is_recording()) return {y};
  variable out = record_sum(t, y, a.slot, b.slot);
  if (a.ranges.size() == b.ranges.size()) {
    out.ranges = buffer<float>(a.ranges.size());
    std::transform(a.ranges.begin(), a.ranges.end(), b.ranges.begin(), out.ranges.begin(),
                   std::plus<>());
  }
  return out;
}

variable add_signs(tape& t, const variable& x) {
  // Part of the sum is a hundredth of the signs, but weights learn from all of them: this is the
  // sum's derivative by its weight, a hundred times (the paper's constants).
  constexpr float part = 0.01F;
  const tensor y = map(
      t.pool(), [](float v) { return v > 0.0F ? v + part : v; }, x.value);
  if (!t.is_recording()) return {y};
  static constexpr furl::codebook signs = furl::positive_codebook();
  variable out = record_sum(t, y, x.slot, -1);
  out.stand_in = t.hooks().save_levels(x.value, signs);
  return out;
}

residual begin_run(tape& t, const variable& a) {
  if (!t.is_recording()) return {a.value, -1, {}};
  return {{}, a.slot, t.hooks().save(a.value, a.ranges)};
}

variable add(tape& t, const variable& x, const residual& a) {
  if (!t.is_recording()) return {map(t.pool(), std::plus<>(), x.value, a.value)};
  const tensor y = copy_of(x.value);
  t.hooks().load_add(a.saved, y);
  variable out = record_sum(t, y, x.slot, a.slot);
  out.stand_in = a.saved;
  return out;
}

saved_tensor save_factor(tape& t, const variable& x) {
  return x.stand_in.kept != nullptr ? x.stand_in : t.hooks().save(x.value, x.ranges, x.mask);
}

}  // namespace trainer
