// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE WARP. The means that belong to a tile's elements, taken from the elements or added to values
// (README, A2, A7).

#include "furl/block/metadata.cuh"
#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/element/arithmetic.hpp"
#include "furl/element/cell_locator.hpp"

namespace furl {

/// The LFC of a tile in shared memory: a slot for every element, or for every few that share it.
struct lfc_slots {
  static constexpr int max_rows = 256;  // of the tensor, in a tile
  float4 value[tile_elements / 4];      // the slots
  u32 row_cell[max_rows];               // while they are filled
};

namespace detail {

/// Fills the lane's share of a tile's slots. cell_of_element(i): the cell of element i of the tile.
template <class Cell>
__device__ __forceinline__ void fill_slots(const u8* lfc, const cell_locator& locator, int count,
                                           dtype meta, lfc_slots& slots,
                                           const Cell& cell_of_element) {
  float* const slot = reinterpret_cast<float*>(slots.value);
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
      slots.value[i] = {first, second, load_lfc(lfc, cell + 2 * step, meta),
                        load_lfc(lfc, cell + 3 * step, meta)};
    }
  }
}

}  // namespace detail

/// Looks up the LFC of a tile.
/// Threads : one warp, all lanes with the same arguments.
/// Shapes  : lfc : global, the blob's LFC part. `count` elements of the tile are present; others
///           get the value of the last one.
/// Shared  : slots, one per warp, owned by the caller.
/// Sync    : within the warp, at the end; the caller syncs it again before slots are used again.
/// Post    : slots are what apply_lfc takes.
__device__ __forceinline__ void look_up_lfc(const u8* lfc, const cell_locator& locator, i64 tile,
                                            int count, dtype meta, lfc_slots& slots) {
  const i64 index = tile * tile_elements;
  if (locator.is_wide()) {
    detail::fill_slots(lfc, locator, count, meta, slots,
                       [&](u32 i) { return locator.cell_by_division(index + i); });
    __syncwarp();
    return;
  }
  const tile_origin origin = locator.origin(index);
  const u32 rows = locator.row_of(origin, u32(count - 1)).row + 1;
  if (locator.has_rows() && rows <= u32(lfc_slots::max_rows)) {
    for (u32 row = u32(lane_index()); row < rows; row += warp_threads)
      slots.row_cell[row] = locator.row_cell(origin, row);
    __syncwarp();
    detail::fill_slots(lfc, locator, count, meta, slots, [&](u32 i) {
      const cell_locator::row_position p = locator.row_of(origin, i);
      return origin.first_cell + (slots.row_cell[p.row] + p.cell);
    });
  } else {
    detail::fill_slots(lfc, locator, count, meta, slots,
                       [&](u32 i) { return locator.cell(origin, i); });
  }
  __syncwarp();
}

/// Calls function(row, values) for every row, with the LFC of the lane's four elements.
/// Threads : one warp, all lanes. Shared : slots, from look_up_lfc. Sync : none.
template <class Function>
__device__ __forceinline__ void apply_lfc(const lfc_slots& slots, const cell_locator& locator,
                                          const Function& function) {
  const float* const slot = reinterpret_cast<const float*>(slots.value);
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
      function(row, slots.value[row * warp_threads + lane]);
  }
}

/// Residuals of a tile: its elements less their LFC.
/// Threads, Shared, Sync : as apply_lfc.
template <class T>
__device__ __forceinline__ void subtract_lfc(const tile_fragment<T>& x, const lfc_slots& slots,
                                             const cell_locator& locator,
                                             tile_fragment<float>& residuals) {
  apply_lfc(slots, locator, [&](int row, float4 lfc) {
    float v[4];
    unpack_row<T>(x.word[row], v);
    residuals.word[row][0] = sub(v[0], lfc.x);
    residuals.word[row][1] = sub(v[1], lfc.y);
    residuals.word[row][2] = sub(v[2], lfc.z);
    residuals.word[row][3] = sub(v[3], lfc.w);
  });
}

/// Adds their LFC to the values of a tile.
/// Threads, Shared, Sync : as apply_lfc.
__device__ __forceinline__ void add_lfc(tile_fragment<float>& x, const lfc_slots& slots,
                                        const cell_locator& locator) {
  apply_lfc(slots, locator, [&](int row, float4 lfc) {
    x.word[row][0] = add(x.word[row][0], lfc.x);
    x.word[row][1] = add(x.word[row][1], lfc.y);
    x.word[row][2] = add(x.word[row][2], lfc.z);
    x.word[row][3] = add(x.word[row][3], lfc.w);
  });
}

}  // namespace furl
