// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What calls take beside their arrays, and most callers leave alone: options for device memory, for
// host memory, and ranges that are given to compress.

#include "furl/config.hpp"
#include "furl/types.hpp"

namespace furl {
inline namespace v0_1 {

/// Which elements share a range: those of a group, as measured or given, of a channel, or all.
enum class range_scope : u8 { measured, tensor, channel, group };

/// Pairs (lo, hi) of f32 to code elements with, in place of measured ranges (FORMAT.md, A3): one
/// for a tensor as in BLPA (Chakrabarti and Moseley, NeurIPS 2019), or running ones of channels as
/// in Mesa (Pan et al., 2021). A group is coded over the smallest range that holds those of all its
/// elements, and elements beyond it become its ends; infinities too, but a NaN poisons its group as
/// ever. The blob is like any other: it has the ranges in it. With a window they are ranges of the
/// residuals. A pair that is not finite or not in order poisons the groups it belongs to; the host,
/// which can read it beforehand, refuses it.
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

/// Options of calls for device memory. All pointers are to device memory, and what they point to
/// must stay until the call's work on the stream is done.
struct options {
  /// For a mixed plan: the bits of each tile's codes, one byte each. They cannot be checked without
  /// waiting: each must be 1..8, and together the plan's sum_of_bits. Apart from what the call
  /// writes.
  const_bytes tile_bits = {};
  /// For a mixed plan: what index_tiles (extra/allocate_bits.cuh) has made of tile_bits,
  /// tile_index_bytes(plan) bytes or more, aligned to 8.
  const_bytes tile_index = {};
  /// compress reads the random stream from here when it runs, instead of from `key`: so a replay of
  /// a CUDA graph can draw fresh bits. Aligned to 8.
  const random_key* device_key = nullptr;
  /// For compress: ranges in place of measured ones, read when it runs. Other calls refuse them.
  given_ranges ranges = {};
  /// Whether the driver is asked if the stream's device can reach every pointer, one runtime call
  /// for each. Without, memory that it cannot reach is an error of the kernel, as in any kernel.
  bool check_pointers = true;
};

}  // namespace v0_1

namespace host {
inline namespace v0_1 {

class thread_pool;

/// Options of calls for host memory.
struct options {
  thread_pool* pool = nullptr;  // none: the calling thread alone
  /// For a mixed plan: the bits of each tile's codes, one byte each; apart from what the call
  /// writes.
  const_bytes tile_bits = {};
  /// For compress: ranges in place of measured ones, in host memory. Other calls refuse them.
  given_ranges ranges = {};
};

}  // namespace v0_1
}  // namespace host
}  // namespace furl
