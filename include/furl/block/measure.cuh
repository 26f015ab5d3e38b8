// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE WARP. How far values are from the elements of a tile, group by group. The order of the sums
// is that of host/measure.hpp.

#include "furl/block/intrinsics.cuh"
#include "furl/block/min_max.cuh"
#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/quality.hpp"

namespace furl {

/// The sums of the lane whose index differs in the bits of `lanes`.
__device__ __forceinline__ quality shuffle_xor(const quality& q, int lanes) {
  return {shuffle_xor(q.sum_error, lanes), shuffle_xor(q.sum_squared_error, lanes),
          shuffle_xor(q.sum_squares, lanes)};
}

/// Sums over the lane's group.
/// Threads : one warp, all lanes. Shared : none. Sync : within the warp.
/// Shapes  : x, a : tiles of which `count` elements are present; `group` of them share a result.
/// Result  : in every lane for its group (group_of_lane).
template <class T>
__device__ __forceinline__ quality measure_groups(const tile_fragment<T>& x,
                                                  const tile_fragment<float>& a, int count,
                                                  int group) {
  const int lane = lane_index();
  double error[rows_per_tile];
  double squared_error[rows_per_tile];
  double squares[rows_per_tile];
  FURL_UNROLL
  for (int row = 0; row < rows_per_tile; ++row) {
    float v[4];
    unpack_row<T>(x.word[row], v);
    float w[4] = {a.word[row][0], a.word[row][1], a.word[row][2], a.word[row][3]};
    if (count < tile_elements) {  // what is absent adds +0
      FURL_UNROLL
      for (int k = 0; k < 4; ++k)
        if (row_begin(row, lane) + k >= count) v[k] = w[k] = 0.0f;
    }
    const quality sum = quality_of(v, w);
    error[row] = sum.sum_error;
    squared_error[row] = sum.sum_squared_error;
    squares[row] = sum.sum_squares;
  }
  const auto sum = [](double left, double right) { return add(left, right); };
  quality mine{reduce_rows(error, lane, sum), reduce_rows(squared_error, lane, sum),
               reduce_rows(squares, lane, sum)};
  for_each_distance(group,
                    [&](int distance) { mine = combine(mine, shuffle_xor(mine, distance)); });
  return mine;
}

}  // namespace furl
