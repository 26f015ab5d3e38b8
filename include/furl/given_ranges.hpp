// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Ranges given to compress in place of measured ones: of a tensor as in BLPA (Chakrabarti and
// Moseley, NeurIPS 2019), or running ones of channels as in Mesa (Pan et al., 2021).

#include "furl/config.hpp"
#include "furl/dtype.hpp"
#include "furl/element/arithmetic.hpp"

namespace furl {
inline namespace v0_1 {

/// Which elements share a range: those of a group, as measured or given, of a channel, or all.
enum class range_scope : u8 { measured, tensor, channel, group };

/// Pairs (lo, hi) of f32 to code elements with (README, A3). A group is coded over the smallest
/// range that holds those of all its elements, and elements beyond it become its ends; infinities
/// too, but a NaN poisons its group as ever. The blob is like any other: it has the ranges in it.
/// With a window they are ranges of the residuals. A pair that is not finite or not in order
/// poisons the groups it belongs to; the host, which can read it beforehand, refuses it.
struct given_ranges {
  const float* pairs = nullptr;               // lo, hi, lo, hi, ...
  i64 num_pairs = 0;                          // each of two numbers
  range_scope scope = range_scope::measured;  // of a pair; measured: none are given
  int dimension = 0;                          // of the shape: its index is an element's channel

  /// One for all elements.
  FURL_HD static constexpr given_ranges of_tensor(const float* pair) {
    return {pair, 1, range_scope::tensor, 0};
  }
  /// One for every index of a dimension, such as 1 of NCHW.
  FURL_HD static constexpr given_ranges of_channels(const float* pairs, i64 num_pairs,
                                                    int dimension) {
    return {pairs, num_pairs, range_scope::channel, dimension};
  }
  /// One for every group.
  FURL_HD static constexpr given_ranges of_groups(const float* pairs, i64 num_pairs) {
    return {pairs, num_pairs, range_scope::group, 0};
  }
};

/// The numbers from lo to hi.
struct range {
  float lo;  // smallest
  float hi;  // largest
};

}  // namespace v0_1

/// Whether lo and hi are finite and lo <= hi, in any floating-point mode.
FURL_HD bool is_range(float lo, float hi) {
  const bool zeros = ((bits_of(lo) | bits_of(hi)) & 0x7fffffffu) == 0;
  return is_finite(lo) && is_finite(hi) && (zeros || ordered(lo) <= ordered(hi));
}

/// The range of symmetric scaling by the largest magnitude, with codes of 2..8 bits: -largest to
/// largest and a step more below, so that zero is code 2^(bits - 1), exactly. The step is rounded
/// up to bf16: both types of metadata hold it.
FURL_HD range symmetric_range(float largest, int bits) {
  const int half = 1 << (bits - 1);
  const float step = f32_from_bf16(bf16_up(div(largest, float(half - 1))));
  return {fma(step, float(-half), 0.0f), fma(step, float(half - 1), 0.0f)};
}

}  // namespace furl
