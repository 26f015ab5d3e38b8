// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE BLOCK. The means of a run's elements (FORMAT.md, A2), by each path, under one
// interface:
//   load(source, lfc, v)      the warp's tile, and what the means take of the block's elements
//   subtract(lfc, v)          residuals of the warp's tile; the means that the run owns are written
//   spread(lfc)               in place of load, where the means are in the blob already
//   for_each_row(lfc, f)      calls f(row, means) for every row of the warp's tile
// load and spread take all threads of the block, subtract and for_each_row warps whose run.count is
// positive.

#include "furl/block/average_pool.cuh"
#include "furl/block/codes.cuh"
#include "furl/block/layout.cuh"
#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/detail/cell_index.hpp"
#include "furl/detail/cells.hpp"
#include "furl/detail/device/means_slots.cuh"
#include "furl/detail/device/means_warp.cuh"
#include "furl/detail/number.hpp"

namespace furl {

/// Means of columns: of a window along one dimension with others behind it, such as {1, 8, 1} over
/// (batch, sequence, features). A plane is then rows of whole features, and a cell a column of at
/// most 8 of them. Threads take four neighbouring cells at once.
struct lfc_columns {
  /// Threads : one block, all threads with the same arguments: one warp for each tile.
  /// Shapes  : plane : windows of one column and at most 8 rows; rows of a multiple of 4 elements.
  ///           The run begins with tile `first` and has `count` elements in the tensor.
  /// Shared  : storage: a float for each cell that the run touches, then a u32 for each row.
  /// Sync    : none.
  __device__ __forceinline__ lfc_columns(float4* storage, const cell_plane& p, i64 first, u32 count)
      : plane(p),
        run(p.run_of(first * tile_elements, count)),
        mean(reinterpret_cast<float*>(storage)),
        cell_of_row(reinterpret_cast<u32*>(mean + run.num_cells)) {}

  /// Calls function(first cell, its box) for each four cells that lie side by side, and notes where
  /// the cells of rows begin.
  template <class Function>
  __device__ __forceinline__ void for_each_four(const Function& function) const {
    for (u32 cell = 4 * threadIdx.x; cell < run.num_cells; cell += 4 * blockDim.x) {
      const cell_box box = plane.box_of(run, cell);
      const u32 row = plane.row_of(box.begin);
      const u32 column = box.begin - row * plane.num_columns();
      if (column == 0)
        for (u32 r = 0; r < box.num_rows; ++r) cell_of_row[row + r] = cell;
      function(cell, box);
    }
  }

  const cell_plane& plane;  // of the tensor
  cell_run run;             // the cells that the block's tiles touch
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

/// Means of four neighbouring columns of at most 8 rows.
template <bool Vector, class Source>
__device__ __forceinline__ float4 mean_of_columns(Source x, u32 num_rows, u32 pitch, dtype meta) {
  float v[8][4];
  FURL_UNROLL
  for (int row = 0; row < 8; ++row, x = x.from(pitch)) {
    FURL_UNROLL
    for (int k = 0; k < 4; ++k) v[row][k] = 0.0f;
    if (u32(row) < num_rows) load_four<Vector>(x, v[row]);
  }
  float mean[4];
  FURL_UNROLL
  for (int k = 0; k < 4; ++k) {
    const float column[8] = {v[0][k], v[1][k], v[2][k], v[3][k],
                             v[4][k], v[5][k], v[6][k], v[7][k]};
    mean[k] = lfc_value(cell_mean(sum_of_eight(column), int(num_rows)), meta);
  }
  return {mean[0], mean[1], mean[2], mean[3]};
}

/// Works out the means of a run; Vector: its elements' rows are aligned to four.
template <bool Vector, class Source>
__device__ __forceinline__ void pool_columns(const lfc_columns& c, const Source& first, u8* lfc,
                                             dtype meta) {
  c.for_each_four([&](u32 cell, const cell_box& box) {
    const float4 mean =
        mean_of_columns<Vector>(first.from(box.begin), box.num_rows, c.plane.num_columns(), meta);
    *reinterpret_cast<float4*>(c.mean + cell) = mean;
    if (box.is_owned) store_four_lfc(lfc, c.run.first_cell + cell, meta, mean);
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
  c.for_each_four([&](u32 cell, const cell_box&) {
    *reinterpret_cast<float4*>(c.mean + cell) = load_four_lfc(lfc, c.run.first_cell + cell, meta);
  });
  __syncthreads();
}

/// Calls function(row, means) for every row of the warp's tile, with the means of the lane's four
/// elements. `count` > 0 elements of the tile are present; others have the mean of the last one.
/// Threads : one warp, all lanes. Shared : that of the columns, from pool_lfc or spread_lfc.
/// Sync    : none.
template <class Function>
__device__ __forceinline__ void for_each_row(const lfc_columns& c, int count,
                                             const Function& function) {
  const u32 tile_begin = c.run.head + u32(warp_index() * tile_elements);
  FURL_UNROLL
  for (int r = 0; r < rows_per_tile; ++r) {
    const int begin = row_begin(r, lane_index());
    const u32 element = tile_begin + u32(min(begin, count - 4));  // count is a multiple of 4
    const u32 row = c.plane.row_of(element);
    const u32 cell = c.cell_of_row[row] + (element - row * c.plane.num_columns());
    float4 v = *reinterpret_cast<const float4*>(c.mean + cell);
    if (begin >= count) v.x = v.y = v.z = v.w;
    function(r, v);
  }
}

}  // namespace furl

namespace furl::detail {

template <lfc_path Path>
class means_of;

template <>
class means_of<lfc_path::none> {
 public:
  __device__ __forceinline__ means_of(const block_layout&, const tile_run& run, void*)
      : run_(run) {}
  template <class Source>
  __device__ __forceinline__ void load(const Source& source, u8*, tile_fragment<float>& v) const {
    if (run_.count > 0) source.from(run_.tile * tile_elements).load_tile(run_.count, v);
  }
  __device__ __forceinline__ void subtract(u8*, tile_fragment<float>&) const {}
  __device__ __forceinline__ void spread(const u8*) const {}

 private:
  const tile_run& run_;
};

template <>
class means_of<lfc_path::lanes> {
 public:
  __device__ __forceinline__ means_of(const block_layout& layout, const tile_run& run, void*)
      : layout_(layout), run_(run) {}
  template <class Source>
  __device__ __forceinline__ void load(const Source& source, u8*, tile_fragment<float>& v) const {
    if (run_.count > 0) source.from(run_.tile * tile_elements).load_tile(run_.count, v);
  }
  __device__ __forceinline__ void subtract(u8* lfc, tile_fragment<float>& v) const {
    subtract_lfc_of_lanes(layout_.means.log2_cell, run_.tile, run_.count, lfc, layout_.meta, v);
  }
  __device__ __forceinline__ void spread(const u8*) const {}
  template <class Function>
  __device__ __forceinline__ void for_each_row(const u8* lfc, const Function& function) const {
    for_each_row_of_lanes(layout_.means.log2_cell, run_.tile, run_.count, lfc, layout_.meta,
                          function);
  }

 private:
  const block_layout& layout_;
  const tile_run& run_;
};

/// What slots and columns share: both keep the means of a block's run in shared memory.
template <class Means>
class means_of_run {
 public:
  __device__ __forceinline__ void subtract(u8*, tile_fragment<float>& v) const {
    furl::for_each_row(means_, run_.count,
                       [&](int row, float4 mean) { subtract_from_row(v.word[row], mean); });
  }
  __device__ __forceinline__ void spread(const u8* lfc) const {
    spread_lfc(means_, lfc, layout_.meta);
  }
  template <class Function>
  __device__ __forceinline__ void for_each_row(const u8*, const Function& function) const {
    furl::for_each_row(means_, run_.count, function);
  }

 protected:
  __device__ __forceinline__ means_of_run(const block_layout& layout, const tile_run& run,
                                          const Means& means)
      : layout_(layout), run_(run), means_(means) {}

  const block_layout& layout_;
  const tile_run& run_;
  const Means means_;
};

template <>
class means_of<lfc_path::slots> : public means_of_run<lfc_slots> {
 public:
  __device__ __forceinline__ means_of(const block_layout& layout, const tile_run& run, void* shared)
      : means_of_run(layout, run,
                     {static_cast<float4*>(shared), layout.means.slots, run.number, run.first,
                      run.num_elements}) {}
  template <class Source>
  __device__ __forceinline__ void load(const Source& source, u8* lfc,
                                       tile_fragment<float>& v) const {
    if (run_.count > 0) source.from(run_.tile * tile_elements).load_tile(run_.count, v);
    pool_lfc(means_, source.from(run_.first * tile_elements), lfc, layout_.meta, v);
  }
};

template <>
class means_of<lfc_path::columns> : public means_of_run<lfc_columns> {
 public:
  __device__ __forceinline__ means_of(const block_layout& layout, const tile_run& run, void* shared)
      : means_of_run(
            layout, run,
            {static_cast<float4*>(shared), layout.means.slots.plane, run.first, run.num_elements}) {
  }
  template <class Source>
  __device__ __forceinline__ void load(const Source& source, u8* lfc,
                                       tile_fragment<float>& v) const {
    pool_lfc(means_, source.from(run_.first * tile_elements), lfc, layout_.meta);
    const tile_run run = run_.located_anew(layout_);
    if (run.count > 0) source.from(run.tile * tile_elements).load_tile(run.count, v);
  }
};

template <>
class means_of<lfc_path::table> {
 public:
  __device__ __forceinline__ means_of(const block_layout& layout, const tile_run& run, void* shared)
      : layout_(layout), run_(run), table_(static_cast<lfc_table*>(shared)[warp_index()]) {}
  template <class Source>
  __device__ __forceinline__ void load(const Source& source, u8* lfc,
                                       tile_fragment<float>& v) const {
    spread(lfc);
    if (run_.count > 0) source.from(run_.tile * tile_elements).load_tile(run_.count, v);
  }
  __device__ __forceinline__ void subtract(u8*, tile_fragment<float>& v) const {
    furl::for_each_row(table_, layout_.means.locator,
                       [&](int row, float4 mean) { subtract_from_row(v.word[row], mean); });
  }
  __device__ __forceinline__ void spread(const u8* lfc) const {
    if (run_.count > 0)
      look_up_lfc(lfc, layout_.means.locator, run_.tile, run_.count, layout_.meta, table_);
  }
  template <class Function>
  __device__ __forceinline__ void for_each_row(const u8*, const Function& function) const {
    furl::for_each_row(table_, layout_.means.locator, function);
  }

 private:
  const block_layout& layout_;
  const tile_run& run_;
  lfc_table& table_;
};

}  // namespace furl::detail
