// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE GRID. The LFC part of a blob: one thread a cell, neighbouring threads on neighbouring cells.

#include "furl/block/average_pool.cuh"
#include "furl/config.hpp"
#include "furl/dtype.hpp"
#include "furl/element/divisor.hpp"
#include "furl/element/pool.hpp"
#include "furl/kernel/launch.cuh"

FURL_HIDDEN_BEGIN

namespace furl::kernel {

/// The cells of a grid, with what finding their elements takes.
struct cell_list {
  cell_grid grid{};    // as given
  divisor64 inner;     // of the grid's inner
  divisor64 cells[3];  // of the grid's cells

  cell_list() = default;
  /// All cells of a grid.
  FURL_HD explicit constexpr cell_list(const cell_grid& g)
      : grid(g),
        inner(u64(g.inner)),
        cells{divisor64(u64(g.cells[0])), divisor64(u64(g.cells[1])), divisor64(u64(g.cells[2]))} {}

  /// Of the cell with an index, 0 <= cell < num_cells.
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

/// Writes cells begin .. end - 1 of the LFC part of a blob.
/// x : global; vectors : whether four elements may be loaded at once; lfc : global, of type meta.
template <class T>
__global__ void __launch_bounds__(block_threads, 6)
    pool(cell_list cells, i64 begin, i64 end, const T* x, u8* lfc, bool vectors, dtype meta) {
  const i64 stride = i64(gridDim.x) * block_threads;
  for (i64 cell = begin + i64(blockIdx.x) * block_threads + threadIdx.x; cell < end; cell += stride)
    store_lfc(lfc, cell, meta, pool_cell(x, cells.grid, cells.contents(cell), vectors, meta));
}

}  // namespace furl::kernel

FURL_HIDDEN_END
