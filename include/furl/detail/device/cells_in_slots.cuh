// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE THREAD. A cell in the slots of means_slots.cuh: its mean, and that in place of its sums.

#include "furl/block/average_pool.cuh"
#include "furl/config.hpp"
#include "furl/detail/cell_index.hpp"
#include "furl/detail/cells.hpp"
#include "furl/detail/device/intrinsics.cuh"
#include "furl/detail/device/lfc_source.cuh"
#include "furl/detail/number.hpp"

namespace furl::detail {

/// Rows of a cell are walked in another order by lanes whose cells begin in the same bank: a tree
/// over 2^m terms gives the same sum when all their numbers are xored with one.
template <int Granule>
__device__ __forceinline__ u32 row_order(const lfc_slots& s) {
  constexpr int log2_lanes = Granule == 4 ? 4 : Granule == 2 ? 3 : 2;  // until banks repeat
  return s.layout.is_whole || s.layout.plane.cells_per_row() == 1 ? 0
                                                                  : (threadIdx.x >> log2_lanes) & 7;
}

/// Sum of one row of a cell, of at most 8 elements.
template <int Granule>
__device__ __forceinline__ float sum_row(const float* row, u32 num_columns) {
  float v[8 / Granule];
  FURL_UNROLL
  for (int k = 0; k < 8 / Granule; ++k) v[k] = u32(k * Granule) < num_columns ? row[k] : 0.0f;
  if constexpr (Granule == 4) return add_rn(v[0], v[1]);
  if constexpr (Granule == 2) return add_rn(add_rn(v[0], v[1]), add_rn(v[2], v[3]));
  if constexpr (Granule == 1) return sum_of_eight(v);
}

template <int Granule>
__device__ __forceinline__ void fill_row(float* row, u32 num_columns, float mean) {
  FURL_UNROLL
  for (int k = 0; k < 8 / Granule; ++k)
    if (u32(k * Granule) < num_columns) row[k] = mean;
}

/// Sum of a cell's slots, and their replacement. Three forms: any cell; cells in rows of one or two
/// slots; and 8 x 8 elements in rows of two slots each, 8 bytes aligned.
template <int Granule>
struct any_cell {
  float* first;
  u32 pitch;  // slots
  u32 order;
  cell_box box;

  __device__ __forceinline__ float mean() const {
    float sum[8];
    FURL_UNROLL
    for (u32 j = 0; j < 8; ++j) {
      const u32 row = j ^ order;
      sum[j] = row < box.num_rows ? sum_row<Granule>(first + row * pitch, box.num_columns) : 0.0f;
    }
    return cell_mean(sum_of_eight(sum), int(box.num_rows * box.num_columns));
  }
  __device__ __forceinline__ void fill(float value) const {
    const u32 start = forgotten(order);
    FURL_UNROLL
    for (u32 j = 0; j < 8; ++j) {
      const u32 row = j ^ start;
      if (row < box.num_rows) fill_row<Granule>(first + row * pitch, box.num_columns, value);
    }
  }
};

/// Slots that a cell lacks are read and written in the place of others that it has: the lanes of a
/// warp have different cells, so that branches would be the slower for it.
template <>
struct any_cell<4> {
  float* first;
  u32 pitch;  // slots
  u32 order;
  cell_box box;

  __device__ __forceinline__ float* row_at(u32 row) const {
    return first + min(row, box.num_rows - 1) * pitch;
  }
  __device__ __forceinline__ float mean() const {
    const int second = box.num_columns > 4 ? 1 : 0;
    float sum[8];
    FURL_UNROLL
    for (u32 j = 0; j < 8; ++j) {
      const float* const row = row_at(j ^ order);
      const float other = row[second];
      const float of_row = add_rn(row[0], second != 0 ? other : 0.0f);
      sum[j] = (j ^ order) < box.num_rows ? of_row : 0.0f;
    }
    return cell_mean(sum_of_eight(sum), int(box.num_rows * box.num_columns));
  }
  __device__ __forceinline__ void fill(float value) const {
    const u32 start = forgotten(order);
    const int second = box.num_columns > 4 ? 1 : 0;
    FURL_UNROLL
    for (u32 j = 0; j < 8; ++j) {
      float* const row = row_at(j ^ start);
      row[0] = value;
      row[second] = value;
    }
  }
};

struct full_cell {
  float* first;
  u32 pitch;

  __device__ __forceinline__ float mean() const {
    float sum[8];
    FURL_UNROLL
    for (u32 row = 0; row < 8; ++row) {
      const float2 v = *reinterpret_cast<const float2*>(first + row * pitch);
      sum[row] = add_rn(v.x, v.y);
    }
    return mul_rn(sum_of_eight(sum), 0x1p-6f);  // one rounding, as the division has
  }
  __device__ __forceinline__ void fill(float value) const {
    u64 both;  // one pair of registers for all rows
    asm volatile("mov.b64 %0, {%1, %1};" : "=l"(both) : "f"(value));
    FURL_UNROLL
    for (u32 row = 0; row < 8; ++row) *reinterpret_cast<u64*>(first + row * pitch) = both;
  }
};

/// Calls function(index, is_owned, cell) for the cells of the run, one thread each.
template <int Granule, class Function>
__device__ __forceinline__ void for_each_cell(const lfc_slots& s, const Function& function) {
  const u32 pitch = s.layout.plane.num_columns() / Granule;
  const bool full = Granule == 4 && s.layout.is_whole && s.layout.plane.window_rows() == 8 &&
                    s.layout.plane.window_columns() == 8;
  if (full) {
    for (u32 c = threadIdx.x; c < s.run.num_cells; c += blockDim.x)
      function(c, true, full_cell{s.slot + s.layout.plane.whole_box(c).begin / Granule, pitch});
    return;
  }
  const u32 order = row_order<Granule>(s);
  for (u32 c = threadIdx.x; c < s.run.num_cells; c += blockDim.x) {
    const cell_box box =
        s.layout.is_whole ? s.layout.plane.whole_box(c) : s.layout.plane.box_of(s.run, c);
    const any_cell<Granule> cell{s.slot + (box.begin + s.skew) / Granule, pitch, order, box};
    function(c, box.is_owned, cell);
  }
}

}  // namespace furl::detail
