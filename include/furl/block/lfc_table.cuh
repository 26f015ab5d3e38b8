// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE WARP. The means of a tile's elements, found by their position among cells of any kind, from
// the blob's LFC part (README, A2, A7).

#include "furl/block/metadata.cuh"
#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/element/arithmetic.hpp"
#include "furl/element/cell_locator.hpp"

namespace furl {

/// The LFC of a tile in shared memory: a slot for every element, or for every few that share it.
struct lfc_table {
  static constexpr int max_rows = 256;  // of the tensor, in a tile
  float4 value[tile_elements / 4];      // the slots
  u32 row_cell[max_rows];               // while they are filled
};

namespace detail {

/// Fills the lane's share of a tile's table. cell_of_element(i): the cell of element i of the tile.
template <class Cell>
__device__ __forceinline__ void fill_slots(const u8* lfc, const cell_locator& locator, int count,
                                           dtype meta, lfc_table& table,
                                           const Cell& cell_of_element) {
  float* const slot = reinterpret_cast<float*>(table.value);
  const int granule = int(locator.granule());
  for (int i = lane_index(); i * granule < tile_elements; i += warp_threads) {
    const int begin = i * granule;
    const i64 cell = cell_of_element(u32(min(begin, count - 1)));
    const float first = load_lfc(lfc, cell, meta);
    if (locator.cell_step() == 0 || granule == 1) {
      slot[i] = first;
      continue;
    }
    const i64 step = begin < count ? 1 : 0;
    const float second = load_lfc(lfc, cell + step, meta);
    if (granule == 2) {
      reinterpret_cast<float2*>(slot)[i] = {first, second};
    } else {
      table.value[i] = {first, second, load_lfc(lfc, cell + 2 * step, meta),
                        load_lfc(lfc, cell + 3 * step, meta)};
    }
  }
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
