// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE WARP. Means of cells that are 4, 8, 16, 32 or 64 consecutive elements each (FORMAT.md, A2):
// one to 16 neighbouring lanes have a cell in their registers, and no memory is needed.
//
// ONE WARP. The means of a tile's elements, found by their position among cells of any kind, from
// the blob's LFC part (FORMAT.md, A2, A7).

#include "furl/block/codes.cuh"
#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/detail/cell_index.hpp"
#include "furl/detail/cells.hpp"
#include "furl/detail/device/lfc_source.cuh"
#include "furl/detail/number.hpp"

namespace furl {

namespace detail {

/// Mean of the cell that the lane's four elements of a row lie in, in all its lanes.
template <int Lanes>
__device__ __forceinline__ float mean_of_lanes(const float (&v)[4]) {
  float sum = add_rn(add_rn(v[0], v[1]), add_rn(v[2], v[3]));
  FURL_UNROLL
  for (int distance = 1; distance < Lanes; distance *= 2)
    sum = add_rn(sum, shuffle_xor(sum, distance));
  return mul_rn(sum, 1.0f / float(4 * Lanes));  // exact, so the same as the division
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

namespace detail {

/// Fills the lane's share of a tile's table with `Values` neighbouring means at a time.
/// cell_of_element(i): the cell of element i of the tile.
template <int Values, dtype Meta, class Cell>
__device__ __forceinline__ void fill_slots_by(const u8* lfc, int granule, int count,
                                              lfc_table& table, const Cell& cell_of_element) {
  float* const slot = reinterpret_cast<float*>(table.value);
  for (int i = lane_index(); i * granule < tile_elements; i += warp_threads) {
    const int begin = i * granule;
    const i64 cell = cell_of_element(u32(min(begin, count - 1)));
    const i64 step = begin < count ? 1 : 0;
    float v[Values];
    FURL_UNROLL
    for (int k = 0; k < Values; ++k) v[k] = load_lfc(lfc, cell + k * step, Meta);
    if constexpr (Values == 1) slot[i] = v[0];
    if constexpr (Values == 2) reinterpret_cast<float2*>(slot)[i] = {v[0], v[1]};
    if constexpr (Values == 4) table.value[i] = {v[0], v[1], v[2], v[3]};
  }
}

template <dtype Meta, class Cell>
__device__ __forceinline__ void fill_slots_of(const u8* lfc, const cell_locator& locator, int count,
                                              lfc_table& table, const Cell& cell) {
  const int granule = int(locator.granule());
  if (locator.cell_step() == 0 || granule == 1) {
    fill_slots_by<1, Meta>(lfc, granule, count, table, cell);
  } else if (granule == 2) {
    fill_slots_by<2, Meta>(lfc, granule, count, table, cell);
  } else {
    fill_slots_by<4, Meta>(lfc, granule, count, table, cell);
  }
}

template <class Cell>
__device__ __forceinline__ void fill_slots(const u8* lfc, const cell_locator& locator, int count,
                                           dtype meta, lfc_table& table, const Cell& cell) {
  if (meta == dtype::bf16) return fill_slots_of<dtype::bf16>(lfc, locator, count, table, cell);
  fill_slots_of<dtype::f32>(lfc, locator, count, table, cell);
}

}  // namespace detail

/// Looks up the LFC of a tile.
/// Threads : one warp, all lanes with the same arguments.
/// Shapes  : lfc : global, the blob's LFC part. `count` elements of the tile are present; others
///           get the value of the last one.
/// Shared  : table, one per warp, owned by the caller.
/// Sync    : within the warp, at the end; the caller syncs it again before the table is used again.
/// Post    : the table is what for_each_row takes.
__device__ __forceinline__ void look_up_lfc(const u8* lfc, const cell_locator& locator, i64 tile,
                                            int count, dtype meta, lfc_table& table) {
  const i64 index = tile * tile_elements;
  if (locator.is_wide()) {
    detail::fill_slots(lfc, locator, count, meta, table,
                       [&](u32 i) { return locator.cell_by_division(index + i); });
    __syncwarp();
    return;
  }
  const tile_origin origin = locator.origin(index);
  const u32 rows = locator.row_of(origin, u32(count - 1)).row + 1;
  if (locator.has_rows() && rows <= u32(lfc_table::max_rows)) {
    for (u32 row = u32(lane_index()); row < rows; row += warp_threads)
      table.row_cell[row] = locator.row_cell(origin, row);
    __syncwarp();
    detail::fill_slots(lfc, locator, count, meta, table, [&](u32 i) {
      const cell_locator::row_position p = locator.row_of(origin, i);
      return origin.first_cell + (table.row_cell[p.row] + p.cell);
    });
  } else {
    detail::fill_slots(lfc, locator, count, meta, table,
                       [&](u32 i) { return locator.cell(origin, i); });
  }
  __syncwarp();
}

/// Calls function(row, values) for every row, with the LFC of the lane's four elements.
/// Threads : one warp, all lanes. Shared : table, from look_up_lfc. Sync : none.
template <class Function>
__device__ __forceinline__ void for_each_row(const lfc_table& table, const cell_locator& locator,
                                             const Function& function) {
  const float* const slot = reinterpret_cast<const float*>(table.value);
  const u32 elements_per_slot = locator.cell_step() == 0 ? locator.granule() : 1;
  const int lane = lane_index();
  if (elements_per_slot >= 4) {
    const int log2_slot = locator.log2_granule();
    FURL_UNROLL
    for (int row = 0; row < rows_per_tile; ++row) {
      const float v = slot[row_begin(row, lane) >> log2_slot];
      function(row, float4{v, v, v, v});
    }
  } else if (elements_per_slot == 2) {
    FURL_UNROLL
    for (int row = 0; row < rows_per_tile; ++row) {
      const float2 v = reinterpret_cast<const float2*>(slot)[row * warp_threads + lane];
      function(row, float4{v.x, v.x, v.y, v.y});
    }
  } else {
    FURL_UNROLL
    for (int row = 0; row < rows_per_tile; ++row)
      function(row, table.value[row * warp_threads + lane]);
  }
}

}  // namespace furl
