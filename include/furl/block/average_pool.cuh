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

/// Elements x[0], x[stride], ..., `count` of them.
template <class T>
__device__ __forceinline__ float sum_run(const T* x, int count, i64 stride) {
  register_sum sum;
  for (int i = 0; i < count; i += 8) {
    float v[8];
    FURL_UNROLL
    for (int j = 0; j < 8; ++j) v[j] = i + j < count ? to_f32(x[(i + j) * stride]) : 0.0f;
    FURL_UNROLL
    for (int terms = 8; terms > 1; terms /= 2) {
      FURL_UNROLL
      for (int j = 0; j < terms / 2; ++j) v[j] = add(v[2 * j], v[2 * j + 1]);
    }
    if (count <= 8) return v[0];
    sum.push<3>(v[0]);
  }
  return sum.total();
}

/// The same for adjacent elements whose number and address are multiples of four.
template <class T>
__device__ __forceinline__ float sum_vectors(const T* x, int count) {
  register_sum sum;
  for (int i = 0; i < count; i += 4) {
    tile_fragment<T> loaded;
    load_cached_vector(x + i, loaded.word[0]);
    float v[4];
    unpack_row<T>(loaded.word[0], v);
    sum.push<2>(add(add(v[0], v[1]), add(v[2], v[3])));
  }
  return sum.total();
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
  const i64 row_stride = grid.extent[2] * grid.inner;
  const i64 plane_stride = grid.extent[1] * row_stride;
  const T* plane = x + cell.first;
  register_sum planes;
  for (int a = 0; a < cell.extent[0]; ++a, plane += plane_stride) {
    const T* row = plane;
    register_sum rows;
    for (int b = 0; b < cell.extent[1]; ++b, row += row_stride)
      rows.push(vectors ? detail::sum_vectors(row, cell.extent[2])
                        : detail::sum_run(row, cell.extent[2], grid.inner));
    planes.push(rows.total());
  }
  const int count = cell.extent[0] * cell.extent[1] * cell.extent[2];
  return lfc_value(cell_mean(planes.total(), count), meta);
}

/// The LFC of a tile in shared memory, one slot for every element, or for two or four that share
/// it.
struct lfc_slots {
  float4 value[tile_elements / 4];
};

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
  float* const slot = reinterpret_cast<float*>(slots.value);
  const i64 index = tile * tile_elements;
  const tile_origin origin = locator.origin(index);
  const int granule = int(locator.granule());
  const int lane = lane_index();
  for (int i = lane; i * granule < tile_elements; i += warp_threads) {
    const int begin = i * granule;
    const u32 element = u32(min(begin, count - 1));
    const i64 cell = locator.is_wide() ? locator.cell_by_division(index + element)
                                       : locator.cell(origin, element);
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
  FURL_UNROLL
  for (int row = 0; row < rows_per_tile; ++row) {
    const int i = row * warp_threads + lane;
    if (elements_per_slot == 4) {
      function(row, float4{slot[i], slot[i], slot[i], slot[i]});
    } else if (elements_per_slot == 2) {
      const float2 v = reinterpret_cast<const float2*>(slot)[i];
      function(row, float4{v.x, v.x, v.y, v.y});
    } else {
      function(row, slots.value[i]);
    }
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
