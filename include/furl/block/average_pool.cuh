// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE THREAD or ONE WARP. The low-frequency component (README, A2): the mean of a cell, and the
// means of a tile's elements taken from it or added to it.

#include "furl/block/metadata.cuh"
#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/dtype.hpp"
#include "furl/element/arithmetic.hpp"
#include "furl/element/cell_locator.hpp"
#include "furl/element/pool.hpp"

namespace furl {

/// Sum of a sequence of at most 64 terms as a pairwise tree, as pairwise_sum, with every partial
/// sum in a register of its own.
class register_sum {
 public:
  /// Adds the sum of an aligned run of 2^Level terms.
  template <int Level = 0>
  __device__ __forceinline__ void push(float term) {
    carry<Level>(term);
    count_ += 1u << Level;
  }
  __device__ __forceinline__ float total() const {
    float sum = 0.0f;
    FURL_UNROLL
    for (int level = 0; level < levels; ++level)
      if ((count_ >> level & 1u) != 0) sum = add(partial_[level], sum);
    return sum;
  }

 private:
  static constexpr int levels = 7;

  template <int Level>
  __device__ __forceinline__ void carry(float term) {
    if constexpr (Level < levels) {
      if ((count_ >> Level & 1u) == 0) {
        partial_[Level] = term;
      } else {
        carry<Level + 1>(add(partial_[Level], term));
      }
    }
  }

  float partial_[levels] = {};
  u32 count_ = 0;
};

/// What lies in a cell: its first element, and its extent along the pooled dimensions.
struct cell_contents {
  i64 first;
  int extent[3];
};

namespace detail {

// Missing terms of a tree are +0 (README, A2), wherever they are added: that can only turn a sum of
// -0 into +0, which an LFC value is turned into anyway.

__device__ __forceinline__ float sum_of_eight(const float (&v)[8]) {
  return add(add(add(v[0], v[1]), add(v[2], v[3])), add(add(v[4], v[5]), add(v[6], v[7])));
}

/// Elements x[0], x[stride], ..., `count` of them or the first 8.
template <class T>
__device__ __forceinline__ float sum_up_to_eight(const T* x, int count, i64 stride) {
  float v[8];
  FURL_UNROLL
  for (int j = 0; j < 8; ++j) v[j] = j < count ? to_f32(x[j * stride]) : 0.0f;
  return sum_of_eight(v);
}

/// Elements x[0], x[stride], ..., `count` of them.
template <class T>
__device__ __forceinline__ float sum_run(const T* x, int count, i64 stride) {
  register_sum sum;
  for (int i = 0; i < count; i += 8)
    sum.push<3>(sum_up_to_eight(x + i * stride, count - i, stride));
  return sum.total();
}

/// Four adjacent elements whose address is a multiple of four.
template <class T>
__device__ __forceinline__ float sum_vector(const T* x) {
  tile_fragment<T> loaded;
  load_cached_vector(x, loaded.word[0]);
  float v[4];
  unpack_row<T>(loaded.word[0], v);
  return add(add(v[0], v[1]), add(v[2], v[3]));
}

/// `count` of them, a multiple of four.
template <class T>
__device__ __forceinline__ float sum_vectors(const T* x, int count) {
  register_sum sum;
  for (int i = 0; i < count; i += 4) sum.push<2>(sum_vector(x + i));
  return sum.total();
}

}  // namespace detail

namespace detail {

/// Sum of a cell, whatever its size.
template <class T>
__device__ __forceinline__ float sum_cell(const T* x, const cell_grid& grid,
                                          const cell_contents& cell, bool vectors) {
  const i64 row_stride = grid.extent[2] * grid.inner;
  const i64 plane_stride = grid.extent[1] * row_stride;
  const T* plane = x + cell.first;
  register_sum planes;
  for (int a = 0; a < cell.extent[0]; ++a, plane += plane_stride) {
    const T* row = plane;
    register_sum rows;
    for (int b = 0; b < cell.extent[1]; ++b, row += row_stride)
      rows.push(vectors ? sum_vectors(row, cell.extent[2])
                        : sum_run(row, cell.extent[2], grid.inner));
    planes.push(rows.total());
  }
  return planes.total();
}

/// The same for cells of one plane and at most 8 x 8 elements, with all loads under way at once.
template <class T>
__device__ __forceinline__ float sum_small_cell(const T* x, const cell_grid& grid,
                                                const cell_contents& cell, bool vectors) {
  const i64 row_stride = grid.extent[2] * grid.inner;
  const T* row = x + cell.first;
  float sum[8] = {};
  if (vectors) {
    const bool two = cell.extent[2] > 4;
    FURL_UNROLL
    for (int b = 0; b < 8; ++b, row += row_stride) {
      if (b >= cell.extent[1]) continue;
      sum[b] = sum_vector(row);
      if (two) sum[b] = add(sum[b], sum_vector(row + 4));
    }
  } else {
    FURL_UNROLL
    for (int b = 0; b < 8; ++b, row += row_stride)
      if (b < cell.extent[1]) sum[b] = sum_up_to_eight(row, cell.extent[2], grid.inner);
  }
  return sum_of_eight(sum);
}

}  // namespace detail

/// The LFC value of a cell: in the metadata type, finite, never -0.
/// Threads : one; lanes with neighbouring cells read neighbouring memory.
/// Shapes  : x : global, the tensor. vectors : whether every row of every cell has a multiple of
/// four
///           elements and begins at an address aligned to four.
/// Shared  : none. Sync : none.
template <class T>
__device__ __forceinline__ float pool_cell(const T* x, const cell_grid& grid,
                                           const cell_contents& cell, bool vectors, dtype meta) {
  const bool small = grid.window[0] == 1 && grid.window[1] <= 8 && grid.window[2] <= 8;
  const float sum = small ? detail::sum_small_cell(x, grid, cell, vectors)
                          : detail::sum_cell(x, grid, cell, vectors);
  return lfc_value(cell_mean(sum, cell.extent[0] * cell.extent[1] * cell.extent[2]), meta);
}

/// The LFC of a tile in shared memory, one slot for every element, or for two or four that share
/// it.
struct lfc_slots {
  float4 value[tile_elements / 4];
};

namespace detail {

/// Fills the lane's share of a tile's slots. cell_of_element(i) is the cell of the tile's element
/// i.
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
/// Shapes  : lfc : global, the blob's LFC part. `count` elements of the tile are present; for
/// others
///           the value is that of the last one.
/// Shared  : slots, one per warp, owned by the caller.
/// Sync    : within the warp, before it ends; the caller syncs the warp before slots are used
/// again. Post    : slots are what apply_lfc takes.
__device__ __forceinline__ void look_up_lfc(const u8* lfc, const cell_locator& locator, i64 tile,
                                            int count, dtype meta, lfc_slots& slots) {
  const i64 index = tile * tile_elements;
  if (locator.is_wide()) {
    detail::fill_slots(lfc, locator, count, meta, slots,
                       [&](u32 i) { return locator.cell_by_division(index + i); });
  } else {
    const tile_origin origin = locator.origin(index);
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
