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
  register_sum planes;
  for (int a = 0; a < cell.extent[0]; ++a) {
    register_sum rows;
    for (int b = 0; b < cell.extent[1]; ++b) {
      const i64 row = (a * grid.extent[1] + b) * grid.extent[2] * grid.inner;
      const T* const first = x + cell.first + row;
      rows.push(vectors ? detail::sum_vectors(first, cell.extent[2])
                        : detail::sum_run(first, cell.extent[2], grid.inner));
    }
    planes.push(rows.total());
  }
  const int count = cell.extent[0] * cell.extent[1] * cell.extent[2];
  return lfc_value(cell_mean(planes.total(), count), meta);
}

/// Calls function(row, k, value) with the LFC value of every element that the lane holds of a tile.
/// Threads : one warp, all lanes.
/// Shapes  : lfc : global, the blob's LFC part. `count` elements of the tile are present; for
/// others
///           the value is that of the last one.
/// Shared  : none. Sync : none.
template <class Function>
__device__ __forceinline__ void for_each_lfc(const u8* lfc, const cell_locator& locator, i64 tile,
                                             int count, dtype meta, const Function& function) {
  const i64 index = tile * tile_elements;
  const tile_origin origin = locator.origin(index);
  const u32 granule = locator.granule();
  const u32 step = locator.cell_step();
  const int lane = lane_index();
  FURL_UNROLL
  for (int row = 0; row < rows_per_tile; ++row) {
    const int begin = row_begin(row, lane);
    const bool present = begin < count;
    i64 cell = 0;
    float value = 0.0f;
    FURL_UNROLL
    for (int k = 0; k < 4; ++k) {
      const u32 in_granule = u32(k) & (granule - 1);
      if (in_granule == 0) {
        cell = locator.cell(origin, index, u32(min(begin + k, count - 1)));
        value = load_lfc(lfc, cell, meta);
      } else if (step != 0 && present) {
        value = load_lfc(lfc, cell + in_granule, meta);
      }
      function(row, k, value);
    }
  }
}

/// Residuals of a tile: its elements less their LFC.
/// Threads, Shapes, Shared, Sync : as for_each_lfc.
template <class T>
__device__ __forceinline__ void subtract_lfc(const tile_fragment<T>& x, const u8* lfc,
                                             const cell_locator& locator, i64 tile, int count,
                                             dtype meta, tile_fragment<float>& residuals) {
  FURL_UNROLL
  for (int row = 0; row < rows_per_tile; ++row) unpack_row<T>(x.word[row], residuals.word[row]);
  for_each_lfc(lfc, locator, tile, count, meta, [&](int row, int k, float value) {
    residuals.word[row][k] = sub(residuals.word[row][k], value);
  });
}

/// Adds their LFC to the values of a tile.
/// Threads, Shapes, Shared, Sync : as for_each_lfc.
__device__ __forceinline__ void add_lfc(tile_fragment<float>& x, const u8* lfc,
                                        const cell_locator& locator, i64 tile, int count,
                                        dtype meta) {
  for_each_lfc(lfc, locator, tile, count, meta,
               [&](int row, int k, float value) { x.word[row][k] = add(x.word[row][k], value); });
}

}  // namespace furl
