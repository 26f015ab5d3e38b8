// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE THREAD. The mean of a cell, for the low-frequency component (FORMAT.md, A2).

#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/detail/cells.hpp"
#include "furl/detail/number.hpp"

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
  /// The sum of all terms so far.
  __device__ __forceinline__ float total() const {
    float sum = 0.0f;
    FURL_UNROLL
    for (int level = 0; level < levels; ++level)
      if ((count_ >> level & 1u) != 0) sum = add_rn(partial_[level], sum);
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
        carry<Level + 1>(add_rn(partial_[Level], term));
      }
    }
  }

  float partial_[levels] = {};
  u32 count_ = 0;
};

/// What lies in a cell: its first element, and its extent along the pooled dimensions.
struct cell_contents {
  i64 first;      // index of an element
  int extent[3];  // elements
};

namespace detail {

// Missing terms of a tree are +0 (FORMAT.md, A2), wherever they are added: that can only turn a sum of
// -0 into +0, which an LFC value is turned into anyway.

__device__ __forceinline__ float sum_of_eight(const float (&v)[8]) {
  return add_rn(add_rn(add_rn(v[0], v[1]), add_rn(v[2], v[3])), add_rn(add_rn(v[4], v[5]), add_rn(v[6], v[7])));
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
  return add_rn(add_rn(v[0], v[1]), add_rn(v[2], v[3]));
}

/// `count` of them, a multiple of four.
template <class T>
__device__ __forceinline__ float sum_vectors(const T* x, int count) {
  register_sum sum;
  for (int i = 0; i < count; i += 4) sum.push<2>(sum_vector(x + i));
  return sum.total();
}

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
      if (two) sum[b] = add_rn(sum[b], sum_vector(row + 4));
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
/// Shapes  : x       : global, the tensor.
///           vectors : whether every row of every cell has a multiple of four elements and begins
///                     at an address aligned to four.
/// Shared  : none. Sync : none.
template <class T>
__device__ __forceinline__ float pool_cell(const T* x, const cell_grid& grid,
                                           const cell_contents& cell, bool vectors, dtype meta) {
  const bool is_small = grid.window[0] == 1 && grid.window[1] <= 8 && grid.window[2] <= 8;
  const float sum = is_small ? detail::sum_small_cell(x, grid, cell, vectors)
                             : detail::sum_cell(x, grid, cell, vectors);
  return lfc_value(cell_mean(sum, cell.extent[0] * cell.extent[1] * cell.extent[2]), meta);
}

}  // namespace furl
