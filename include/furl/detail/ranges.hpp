// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE THREAD. Ranges that are given to compress in place of measured ones (given_ranges in
// options.hpp): which of them elements have.

#include "furl/config.hpp"
#include "furl/detail/cells.hpp"
#include "furl/detail/number.hpp"
#include "furl/options.hpp"

#if !defined(__CUDACC_RTC__)
#include "furl/plan.hpp"
#endif

namespace furl {

/// Whether lo and hi are finite and lo <= hi, in any floating-point mode.
FURL_HD bool is_range(float lo, float hi) {
  const bool zeros = ((bits_of(lo) | bits_of(hi)) & 0x7fffffffu) == 0;
  return is_finite(lo) && is_finite(hi) && (zeros || ordered(lo) <= ordered(hi));
}

/// The range of symmetric scaling by the largest magnitude, with codes of 2..8 bits: -largest to
/// largest and a step more below, so that zero is code 2^(bits - 1), exactly. The step is rounded
/// up to bf16, so that both types of metadata hold it, and is at most the largest one with which
/// the range's width is finite: elements beyond it become its ends.
FURL_HD range symmetric_range(float largest, int bits) {
  const int half = 1 << (bits - 1);
  const float widest = f32_from_bf16(bf16_down(div_rn(0x1.fffffep127f, float(2 * half - 1))));
  float step = f32_from_bf16(bf16_up(div_rn(largest, float(half - 1))));
  if (is_finite(largest) && bits_of(step) > bits_of(widest)) step = widest;
  return {fma_rn(step, float(-half), 0.0f), fma_rn(step, float(half - 1), 0.0f)};
}

/// Element i has pair i / run % num_pairs: runs of elements that share one follow each other.
struct range_map {
  const float* pairs = nullptr;  // lo, hi, lo, hi, ...; null: ranges are measured
  divisor64 run;                 // by the elements of a run
  divisor64 num_pairs;           // by the number of pairs

  range_map() = default;
#if !defined(__CUDACC_RTC__)
  /// Pre: the plan has elements, and the ranges fit it.
  FURL_HIDDEN range_map(const plan& p, const given_ranges& given) {
    if (given.scope == range_scope::measured) return;
    i64 elements = given.scope == range_scope::group ? p.codec().group : 1;
    if (given.scope == range_scope::tensor) elements = p.num_elements();
    if (given.scope == range_scope::channel)
      for (int d = given.dimension + 1; d < p.shape().rank; ++d) elements *= p.shape()[d];
    pairs = given.pairs;
    run = divisor64(u64(elements));
    num_pairs = divisor64(u64(given.num_pairs));
  }
#endif

  /// The smallest range that holds those of elements first..last. Both ends are NaN if one of them
  /// is not finite or not in order.
  FURL_HD range hull(i64 first, i64 last) const {
    const u64 first_run = run.divide(u64(first));
    const u64 runs = run.divide(u64(last)) - first_run + 1;
    u64 pair = first_run - num_pairs.divide(first_run) * num_pairs.value;
    int lo = ordered(float_of(f32_infinity_bits));
    int hi = ordered(float_of(f32_infinity_bits | 0x80000000u));
    bool valid = true;
    for (u64 left = runs < num_pairs.value ? runs : num_pairs.value; left > 0; --left) {
      const float a = pairs[2 * pair];
      const float b = pairs[2 * pair + 1];
      valid = valid && is_range(a, b);
      lo = ordered(a) < lo ? ordered(a) : lo;
      hi = ordered(b) > hi ? ordered(b) : hi;
      pair = pair + 1 == num_pairs.value ? 0 : pair + 1;
    }
    const float nan = float_of(f32_nan_bits);
    if (!valid) return {nan, nan};
    return {from_ordered(lo), from_ordered(hi)};
  }
};

}  // namespace furl
