// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE WARP. Ranges that are given for the groups of a tile, and its elements within them.

#include "furl/block/intrinsics.cuh"
#include "furl/block/min_max.cuh"
#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/element/range_map.hpp"

namespace furl {

/// Range of the lane's group, from the pairs of all its elements.
/// Threads : one warp, all lanes with the same arguments.
/// Shapes  : tile : its index in the tensor; `count` of its elements are present.
/// Shared  : none. Sync : within the warp.
/// Result  : in every lane for its group (group_of_lane). NaN if a pair is no range.
/// Pre     : given.pairs is not null.
__device__ __forceinline__ min_max given_range(const range_map& given, i64 tile, int count,
                                               int group) {
  const int begin = group_of_lane(lane_index(), group).begin;
  min_max mine;
  if (begin < count) {  // the 32 elements from there on, each lane its own
    const i64 first = tile * tile_elements;
    const range hull = given.hull(first + begin, first + min(begin + 32, count) - 1);
    mine = {hull.lo, hull.hi};
  }
  for_each_distance(group, [&](int distance) {
    mine = combine(mine, {shuffle_xor(mine.lo, distance), shuffle_xor(mine.hi, distance)});
  });
  return mine;
}

/// Saturates elements, or residuals, to the ranges of their groups; NaN stays.
/// Threads : one warp, all lanes with the same arguments but x.
/// Shapes  : x : a tile of which `count` elements are present, the others repeat the last.
///           tile, given, Pre : as given_range.
/// Shared  : none. Sync : within the warp.
/// Result  : x, and the range of the lane's group, as compress_tile takes both: NaN if the group
///           has one, or a pair that is no range.
__device__ __forceinline__ min_max saturate_tile(const range_map& given, i64 tile, int count,
                                                 int group, tile_fragment<float>& x) {
  min_max ends = given_range(given, tile, count, group);
  float smallest = x.word[0][0];
  FURL_UNROLL
  for (int row = 0; row < rows_per_tile; ++row) {
    FURL_UNROLL
    for (int k = 0; k < 4; ++k) smallest = min_nan(smallest, x.word[row][k]);
  }
  if (__any_sync(full_warp, is_nan(smallest))) {  // which groups have it is seldom of interest
    const float lo = tile_min_max(x, group).lo;
    if (is_nan(lo)) ends = {lo, lo};
  }
  FURL_UNROLL
  for (int row = 0; row < rows_per_tile; ++row) {
    const float lo = shuffle_in_eight(ends.lo, row);
    const float hi = shuffle_in_eight(ends.hi, row);
    FURL_UNROLL
    for (int k = 0; k < 4; ++k) x.word[row][k] = min_nan(max_nan(x.word[row][k], lo), hi);
  }
  return ends;
}

}  // namespace furl
