// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE WARP. Means of cells that are 4, 8, 16, 32 or 64 consecutive elements each (README, A2): one
// to 16 neighbouring lanes have a cell in their registers, and no memory is needed.

#include "furl/block/metadata.cuh"
#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/element/arithmetic.hpp"
#include "furl/element/pool.hpp"

namespace furl {

namespace detail {

/// Mean of the cell that the lane's four elements of a row lie in, in all its lanes.
template <int Lanes>
__device__ __forceinline__ float mean_of_lanes(const float (&v)[4]) {
  float sum = add(add(v[0], v[1]), add(v[2], v[3]));
  FURL_UNROLL
  for (int distance = 1; distance < Lanes; distance *= 2)
    sum = add(sum, shuffle_xor(sum, distance));
  return mul(sum, 1.0f / float(4 * Lanes));  // exact, so the same as the division
}

/// Gives absent elements of a partial tile, which repeat the last one, its mean too.
__device__ __forceinline__ void repeat_last_mean(float (&mean)[rows_per_tile], int count) {
  float last = 0.0f;
  FURL_UNROLL
  for (int row = 0; row < rows_per_tile; ++row) {
    const int quad = (count - 1) / 4 - row * warp_threads;  // that has the last element
    if (quad >= warp_threads) continue;
    if (quad >= 0) last = float_of(__shfl_sync(full_warp, bits_of(mean[row]), quad));
    if (lane_index() > quad) mean[row] = last;
  }
}

/// subtract_lfc_of_lanes, for cells of num_lanes lanes.
template <int NumLanes>
__device__ __forceinline__ void subtract_lfc_of(i64 tile, int count, u8* lfc, dtype meta,
                                                tile_fragment<float>& x) {
  constexpr int cells_per_row = words_per_row / NumLanes;
  const int lane = lane_index();
  float mean[rows_per_tile];
  FURL_UNROLL
  for (int row = 0; row < rows_per_tile; ++row)
    mean[row] = lfc_value(mean_of_lanes<NumLanes>(x.word[row]), meta);
  const i64 first_cell = (tile * rows_per_tile) * cells_per_row + lane / NumLanes;
  if (lane % NumLanes == 0) {
    FURL_UNROLL
    for (int row = 0; row < rows_per_tile; ++row)
      if (row_begin(row, lane) < count)
        store_lfc(lfc, first_cell + row * cells_per_row, meta, mean[row]);
  }
  if (count < tile_elements) repeat_last_mean(mean, count);
  FURL_UNROLL
  for (int row = 0; row < rows_per_tile; ++row)
    subtract_from_row(x.word[row], {mean[row], mean[row], mean[row], mean[row]});
}

}  // namespace detail

/// Replaces a tile's elements by their residuals, and writes the tile's means.
/// Threads : one warp, all lanes with the same arguments but x.
/// Shapes  : lfc : global, the blob's LFC part. `count` elements of the tile are present, others
///           repeat the last.
///           log2_cell : 2..6; the number of elements of the tensor is a multiple of 2^log2_cell.
/// Shared  : none. Sync : within the warp.
__device__ __forceinline__ void subtract_lfc_of_lanes(int log2_cell, i64 tile, int count, u8* lfc,
                                                      dtype meta, tile_fragment<float>& x) {
  switch (log2_cell) {
    case 2:
      return detail::subtract_lfc_of<1>(tile, count, lfc, meta, x);
    case 3:
      return detail::subtract_lfc_of<2>(tile, count, lfc, meta, x);
    case 4:
      return detail::subtract_lfc_of<4>(tile, count, lfc, meta, x);
    case 5:
      return detail::subtract_lfc_of<8>(tile, count, lfc, meta, x);
    default:
      return detail::subtract_lfc_of<16>(tile, count, lfc, meta, x);
  }
}

/// Calls function(row, means) for every row of a tile, with the means of the lane's four elements,
/// from the blob.
/// Threads, Shapes, Shared : as subtract_lfc_of_lanes. Sync : none.
template <class Function>
__device__ __forceinline__ void for_each_row_of_lanes(int log2_cell, i64 tile, int count,
                                                      const u8* lfc, dtype meta,
                                                      const Function& function) {
  const int lane = lane_index();
  const i64 first_cell = (tile * tile_elements) >> log2_cell;
  FURL_UNROLL
  for (int row = 0; row < rows_per_tile; ++row) {
    const int begin = min(row_begin(row, lane), count - 1);
    const float mean = load_lfc(lfc, first_cell + (begin >> log2_cell), meta);
    function(row, float4{mean, mean, mean, mean});
  }
}

}  // namespace furl
