// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE THREAD. The mean of a cell, for the low-frequency component (FORMAT.md, A2).

#include "furl/block/codes.cuh"
#include "furl/block/elements.cuh"
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

// Missing terms of a tree are +0 (FORMAT.md, A2), wherever they are added: that can only turn a sum
// of -0 into +0, which an LFC value is turned into anyway.

__device__ __forceinline__ float sum_of_eight(const float (&v)[8]) {
  return add_rn(add_rn(add_rn(v[0], v[1]), add_rn(v[2], v[3])),
                add_rn(add_rn(v[4], v[5]), add_rn(v[6], v[7])));
}

/// Elements 0, stride, ..., `count` of them or the first 8.
template <class Source>
__device__ __forceinline__ float sum_up_to_eight(const Source& x, int count, i64 stride) {
  float v[8];
  FURL_UNROLL
  for (int j = 0; j < 8; ++j) v[j] = j < count ? x.at(j * stride) : 0.0f;
  return sum_of_eight(v);
}

/// Elements 0, stride, ..., `count` of them.
template <class Source>
__device__ __forceinline__ float sum_run(const Source& x, int count, i64 stride) {
  register_sum sum;
  for (int i = 0; i < count; i += 8)
    sum.push<3>(sum_up_to_eight(x.from(i * stride), count - i, stride));
  return sum.total();
}

/// The first four elements, whose address is a multiple of four.
template <class Source>
__device__ __forceinline__ float sum_vector(const Source& x) {
  float v[4];
  x.first_four(v);
  return add_rn(add_rn(v[0], v[1]), add_rn(v[2], v[3]));
}

/// `count` of them, a multiple of four.
template <class Source>
__device__ __forceinline__ float sum_vectors(const Source& x, int count) {
  register_sum sum;
  for (int i = 0; i < count; i += 4) sum.push<2>(sum_vector(x.from(i)));
  return sum.total();
}

/// Sum of a cell, whatever its size.
template <class Source>
__device__ __forceinline__ float sum_cell(const Source& x, const cell_grid& grid,
                                          const cell_contents& cell, bool vectors) {
  const i64 row_stride = grid.extent[2] * grid.inner;
  const i64 plane_stride = grid.extent[1] * row_stride;
  i64 plane = cell.first;
  register_sum planes;
  for (int a = 0; a < cell.extent[0]; ++a, plane += plane_stride) {
    i64 row = plane;
    register_sum rows;
    for (int b = 0; b < cell.extent[1]; ++b, row += row_stride)
      rows.push(vectors ? sum_vectors(x.from(row), cell.extent[2])
                        : sum_run(x.from(row), cell.extent[2], grid.inner));
    planes.push(rows.total());
  }
  return planes.total();
}

/// The same for cells of one plane and at most 8 x 8 elements, with all loads under way at once.
template <class Source>
__device__ __forceinline__ float sum_small_cell(const Source& x, const cell_grid& grid,
                                                const cell_contents& cell, bool vectors) {
  const i64 row_stride = grid.extent[2] * grid.inner;
  i64 row = cell.first;
  float sum[8] = {};
  if (vectors) {
    const bool two = cell.extent[2] > 4;
    FURL_UNROLL
    for (int b = 0; b < 8; ++b, row += row_stride) {
      if (b >= cell.extent[1]) continue;
      sum[b] = sum_vector(x.from(row));
      if (two) sum[b] = add_rn(sum[b], sum_vector(x.from(row + 4)));
    }
  } else {
    FURL_UNROLL
    for (int b = 0; b < 8; ++b, row += row_stride)
      if (b < cell.extent[1]) sum[b] = sum_up_to_eight(x.from(row), cell.extent[2], grid.inner);
  }
  return sum_of_eight(sum);
}

}  // namespace detail

/// The cells of a grid, with what finding their elements takes: to be made on the host.
struct cell_list {
  cell_grid grid{};       // of the cells
  divisor64 inner;        // of the grid's inner
  divisor64 cells[3];     // of the grid's cells
  bool in_fours = false;  // whether rows of cells are whole multiples of four elements

  cell_list() = default;
  /// All cells of a grid.
  FURL_HD explicit constexpr cell_list(const cell_grid& g)
      : grid(normalised(g)),
        inner(u64(grid.inner)),
        cells{divisor64(u64(grid.cells[0])), divisor64(u64(grid.cells[1])),
              divisor64(u64(grid.cells[2]))},
        in_fours(grid.inner == 1 && grid.window[2] % 4 == 0 && grid.extent[2] % 4 == 0) {}

  /// What lies in the cell with an index, 0 <= cell < num_cells.
  __device__ __forceinline__ cell_contents contents(i64 cell) const {
    u64 rest = inner.divide(u64(cell));
    const i64 in_inner = cell - i64(rest * inner.value);
    cell_contents found;
    i64 begin[3];
    FURL_UNROLL
    for (int d = 2; d >= 0; --d) {
      const u64 next = cells[d].divide(rest);
      begin[d] = i64(rest - next * cells[d].value) * grid.window[d];
      const i64 left = grid.extent[d] - begin[d];
      found.extent[d] = left < grid.window[d] ? int(left) : grid.window[d];
      rest = next;
    }
    i64 row = i64(rest);
    FURL_UNROLL
    for (int d = 0; d < 3; ++d) row = row * grid.extent[d] + begin[d];
    found.first = row * grid.inner + in_inner;
    return found;
  }
};

/// Works out the LFC value of a cell.
/// Threads : one; lanes with neighbouring cells read neighbouring memory.
/// Shapes  : x : array_elements or mapped_elements of all elements of the tensor.
/// Shared  : none.
/// Sync    : none.
/// Result  : the mean, rounded to the type `meta`: finite, never -0.
template <class Source>
__device__ __forceinline__ float pool_cell(const Source& x, const cell_list& cells, i64 cell,
                                           dtype meta) {
  const cell_contents found = cells.contents(cell);
  const cell_grid& grid = cells.grid;
  const bool vectors = cells.in_fours && x.is_vector_aligned();
  const bool is_small = grid.window[0] == 1 && grid.window[1] <= 8 && grid.window[2] <= 8;
  const float sum = is_small ? detail::sum_small_cell(x, grid, found, vectors)
                             : detail::sum_cell(x, grid, found, vectors);
  return lfc_value(cell_mean(sum, found.extent[0] * found.extent[1] * found.extent[2]), meta);
}

/// Writes the LFC of cells begin .. end - 1, as a kernel must before one that is compiled for
/// lfc_path::table.
/// Threads : all of a grid of one-dimensional blocks, however many; each takes a cell at a time.
/// Shapes  : x     : array_elements or mapped_elements of all elements of the tensor.
///           cells : made on the host of the plan's grid.
///           lfc   : global, the blob's LFC part (layout.lfc_offset), aligned to 16.
/// Shared  : none.
/// Sync    : none.
/// Post    : the values of the cells are written in the type `meta` (layout.meta).
/// @code
/// // Writes all means of a tensor, before a kernel with lfc_path::table: a thread for each cell.
/// __global__ void pool_all(furl::cell_list cells, furl::block_layout layout, const float* x,
///                          unsigned char* blob) {
///   const furl::array_elements<float> elements{x};
///   furl::pool_cells(elements, cells, 0, cells.grid.num_cells(), layout.meta,
///                    blob + layout.lfc_offset);
/// }
/// @endcode
template <class Source>
__device__ __forceinline__ void pool_cells(const Source& x, const cell_list& cells, i64 begin,
                                           i64 end, dtype meta, u8* lfc) {
  const i64 stride = i64(gridDim.x) * blockDim.x;
  for (i64 cell = begin + i64(blockIdx.x) * blockDim.x + threadIdx.x; cell < end; cell += stride)
    store_lfc(lfc, cell, meta, pool_cell(x, cells, cell, meta));
}

}  // namespace furl
