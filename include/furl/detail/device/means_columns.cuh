// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE BLOCK. Means of windows along one dimension with others behind it (FORMAT.md, A2). Cells are
// columns of at most 8 elements far from each other: a block pools what its tiles touch, keeps the
// means in shared memory, and then loads its tiles, which a cache has by now.

#include "furl/block/codes.cuh"
#include "furl/block/elements.cuh"
#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/detail/cell_index.hpp"
#include "furl/detail/device/intrinsics.cuh"
#include "furl/detail/number.hpp"

namespace furl {

/// Means of columns: of a window along one dimension with others behind it, such as {1, 8, 1} over
/// (batch, sequence, features). A plane is then rows of whole features, and a cell a column of at
/// most 8 of them. Threads take four neighbouring cells at once.
struct lfc_columns {
  /// Threads : one block, all threads with the same arguments: one warp for each tile.
  /// Shapes  : plane : windows of one column and at most 8 rows; rows of a multiple of 4 elements.
  ///           The run begins with tile `first` and has `count` elements in the tensor.
  /// Shared  : storage: a float4, then a float for each cell that the run touches, and a u32 for
  ///           each of its rows.
  /// Sync    : none.
  __device__ __forceinline__ lfc_columns(float4* storage, const cell_plane& p, i64 first, u32 count)
      : plane(p),
        run(p.run_of(first * tile_elements, count)),
        repeated(reinterpret_cast<float*>(storage)),
        mean(reinterpret_cast<float*>(storage + 1)),
        cell_of_row(reinterpret_cast<u32*>(mean + run.num_cells)) {}

  /// Four cells side by side.
  struct four_cells {
    u32 cell;       // the first, of the run's
    u32 begin;      // its first element, from the first of the run's first band on
    u32 num_rows;   // of each
    bool is_owned;  // whether it is this run that has their band's first element
  };

  /// Calls function for each four cells, and notes where the cells of rows begin.
  template <class Function>
  __device__ __forceinline__ void for_each_four(const Function& function) const {
    for (u32 cell = 4 * threadIdx.x; cell < run.num_cells; cell += 4 * blockDim.x) {
      const u32 band = plane.band_of_cell(cell);
      const u32 column = cell - band * plane.num_columns();
      const cell_plane::row_span rows = plane.rows_of(run, band);
      if (column == 0)
        for (u32 r = 0; r < rows.count; ++r) cell_of_row[rows.begin + r] = cell;
      function(
          {cell, rows.begin * plane.num_columns() + column, rows.count, run.head == 0 || band > 0});
    }
  }

  /// The means of elements side by side.
  struct row_means {
    const float* first;  // shared, of the first of them
    u32 rest;            // elements from that to the end of their row
  };
  /// Of the element at a distance behind the first of the run's first band.
  __device__ __forceinline__ row_means mean_of(u32 distance) const {
    const u32 row = plane.row_of(distance);
    const u32 column = distance - row * plane.num_columns();
    return {mean + (cell_of_row[row] + column), plane.num_columns() - column};
  }
  /// Notes the mean that elements behind the tensor have.
  __device__ __forceinline__ void repeat(float of_last) const {
    *reinterpret_cast<float4*>(repeated) = {of_last, of_last, of_last, of_last};
  }

  const cell_plane& plane;  // of the tensor
  cell_run run;             // the cells that the block's tiles touch
  float* repeated;          // shared, four times the same
  float* mean;              // shared, of each of them
  u32* cell_of_row;         // shared, of each row: its first cell
};

namespace detail {

/// Four neighbouring elements, of an address that is a multiple of four if Vector.
template <bool Vector, class Source>
__device__ __forceinline__ void load_four(const Source& x, float (&v)[4]) {
  if constexpr (Vector) {
    x.first_four(v);
  } else {
    FURL_UNROLL
    for (int k = 0; k < 4; ++k) v[k] = x.at(k);
  }
}

/// @{
/// The elements from the one at a distance on; of an array in one instruction.
template <class Source>
__device__ __forceinline__ Source behind(const Source& x, u32 distance) {
  return x.from(i64(distance));
}
template <class T>
__device__ __forceinline__ array_elements<T> behind(const array_elements<T>& x, u32 distance) {
  return {static_cast<const T*>(__cvta_global_to_generic(
      multiply_add(distance, u32(sizeof(T)), __cvta_generic_to_global(x.x))))};
}
/// @}

/// Means of four neighbouring columns of at most 8 rows, or of 8 if Full.
template <bool Vector, bool Full, class Source>
__device__ __forceinline__ float4 mean_of_columns(Source x, u32 num_rows, u32 pitch, dtype meta) {
  float v[8][4];
  FURL_UNROLL
  for (int row = 0; row < 8; ++row, x = behind(x, pitch)) {
    if (Full || u32(row) < num_rows) {
      load_four<Vector>(x, v[row]);
    } else {
      FURL_UNROLL
      for (int k = 0; k < 4; ++k) v[row][k] = 0.0f;
    }
  }
  float mean[4];
  FURL_UNROLL
  for (int k = 0; k < 4; ++k) {
    const float column[8] = {v[0][k], v[1][k], v[2][k], v[3][k],
                             v[4][k], v[5][k], v[6][k], v[7][k]};
    const float sum = sum_of_eight(column);
    // The product has one rounding, as the division has.
    mean[k] = lfc_value(Full ? mul_rn(sum, 0x1p-3f) : cell_mean(sum, int(num_rows)), meta);
  }
  return {mean[0], mean[1], mean[2], mean[3]};
}

/// Works out the means of a run; Vector: its elements' rows are aligned to four.
template <bool Vector, class Source>
__device__ __forceinline__ void pool_columns(const lfc_columns& c, const Source& first, u8* lfc,
                                             dtype meta) {
  const u32 pitch = c.plane.num_columns();
  c.for_each_four([&](const lfc_columns::four_cells& four) {
    const Source x = behind(first, four.begin);
    const float4 mean = four.num_rows == 8
                            ? mean_of_columns<Vector, true>(x, 8, pitch, meta)
                            : mean_of_columns<Vector, false>(x, four.num_rows, pitch, meta);
    *reinterpret_cast<float4*>(c.mean + four.cell) = mean;
    if (four.is_owned) store_four_lfc(lfc, c.run.first_cell + four.cell, meta, mean);
  });
}

}  // namespace detail

/// Works out the means of a run, and writes those that the run owns.
/// Threads : one block, all threads.
/// Shapes  : run_begin : the elements from the first of the run on.
///           lfc       : global, the blob's LFC part.
/// Shared  : that of the columns. Sync : the block, at the end; once more before it is used again.
template <class Source>
__device__ __forceinline__ void pool_lfc(const lfc_columns& c, const Source& run_begin, u8* lfc,
                                         dtype meta) {
  const Source first = run_begin.from(-i64(c.run.head));
  if (first.is_vector_aligned()) {
    detail::pool_columns<true>(c, first, lfc, meta);
  } else {
    detail::pool_columns<false>(c, first, lfc, meta);
  }
  __syncthreads();
}

/// Loads the means of a run.
/// Threads, Shapes, Shared : as pool_lfc. Sync : the block, at the end; once more before the
///                           storage is used again.
__device__ __forceinline__ void spread_lfc(const lfc_columns& c, const u8* lfc, dtype meta) {
  c.for_each_four([&](const lfc_columns::four_cells& four) {
    *reinterpret_cast<float4*>(c.mean + four.cell) =
        load_four_lfc(lfc, c.run.first_cell + four.cell, meta);
  });
  __syncthreads();
}

/// Calls function(row, means) for every row of the warp's tile, with the means of the lane's four
/// elements. `count` > 0 elements of the tile are present; others have the mean of the last one.
/// Threads : one warp, all lanes. Shared : that of the columns, from pool_lfc or spread_lfc.
/// Sync    : within the warp.
template <class Function>
__device__ __forceinline__ void for_each_row(const lfc_columns& c, int count,
                                             const Function& function) {
  const u32 tile_begin = c.run.head + u32(warp_index() * tile_elements);
  const bool is_complete = count == tile_elements;
  if (!is_complete) {
    if (lane_index() == 0) c.repeat(*c.mean_of(tile_begin + u32(count) - 1).first);
    __syncwarp();
  }
  // Most rows of a tile go on in the row of features in which the one before was. `first` is where
  // row 0 would have its means then, and `rest` the elements from there to the end of that row.
  const float* first = nullptr;
  int rest = 0;
  FURL_UNROLL
  for (int r = 0; r < rows_per_tile; ++r) {
    const int distance = r * row_elements;
    if (rest <= distance) {
      const int begin = row_begin(r, lane_index());
      const lfc_columns::row_means found = c.mean_of(tile_begin + u32(min(begin, count - 1)));
      first = (begin < count ? found.first : c.repeated) - distance;
      rest = is_complete ? int(found.rest) + distance : 0;
    }
    function(r, *reinterpret_cast<const float4*>(first + distance));
  }
}

}  // namespace furl
