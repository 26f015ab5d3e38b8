// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The path by which the blocks of a kernel get the means of cells (the LFC), chosen from the shape
// alone.

#include "furl/config.hpp"
#include "furl/detail/cell_index.hpp"
#include "furl/detail/cells.hpp"
#include "furl/detail/device/intrinsics.cuh"

namespace furl {

/// The LFC of a tile in shared memory: a slot for every element, or for every few that share it.
struct lfc_table {
  static constexpr int max_rows = 256;  // of the tensor, in a tile
  float4 value[tile_elements / 4];      // the slots
  u32 row_cell[max_rows];               // while they are filled
};

/// What the slots of all blocks have in common.
struct lfc_slot_layout {
  static constexpr u32 max_window = 8;  // along each dimension

  cell_plane plane;       // windows of at most 8 x 8
  u32 log2_granule = 0;   // of the elements that share a slot
  bool is_whole = false;  // every run begins and ends with a band, and no cell is cut off
  u32 cells_per_run = 0;  // if so
  i64 num_cells = 0;      // of the grid
};

/// The slots of a block's run of tiles.
struct lfc_slots {
  /// Threads : one block, all threads with the same arguments: one warp for each tile.
  /// Shapes  : the run, whose number is run_number, begins with tile `first`; `count` of its
  ///           elements are in the tensor: all, but in the last run.
  /// Shared  : storage: as many floats as there are granules in the run, and in the elements of one
  ///           band on either side (of one cell, if planes have one row); and 4 more.
  /// Sync    : none.
  __device__ __forceinline__ lfc_slots(float4* storage, const lfc_slot_layout& l, i64 run_number,
                                       i64 first, u32 count)
      : slot(reinterpret_cast<float*>(storage)), layout(l), run{}, num_elements(count), skew(0) {
    if (l.is_whole) {
      run.first_cell = run_number * l.cells_per_run;
      const i64 left = l.num_cells - run.first_cell;
      run.num_cells = left < l.cells_per_run ? u32(left) : l.cells_per_run;
    } else {
      run = l.plane.run_of(first * tile_elements, count);
      skew = (0u - run.head) & 3u;  // so that vectors of slots are aligned
    }
  }

  /// The slot of element 4 * lane of the calling warp's tile.
  __device__ __forceinline__ float* mine() const {
    const u32 element = run.head + skew + u32(warp_index() * tile_elements + 4 * lane_index());
    return slot + (element >> layout.log2_granule);
  }

  float* slot;                    // in shared memory
  const lfc_slot_layout& layout;  // of all blocks
  cell_run run;                   // the cells that the block's tiles touch
  u32 num_elements;               // of the tensor, in those tiles
  u32 skew;  // elements before the first of the first band that the slots begin with
};

/// The paths by which a kernel gets the means of cells. It has one as a template parameter.
enum class lfc_path : u8 {
  none,     // there are no means
  lanes,    // cells in the registers of neighbouring lanes
  slots,    // two-dimensional cells over a block's tiles, through shared memory
  columns,  // cells across rows of features, read again from a cache
  table,    // any cells; pool_cells has written their means beforehand
};

/// A path with what it needs to know.
struct lfc_source {
  lfc_path path = lfc_path::table;           // which of them
  int tiles_per_block = 7;                   // one warp each
  u32 shared_bytes = 7 * sizeof(lfc_table);  // of a block
  int log2_cell = 0;                         // lanes
  lfc_slot_layout slots = {};                // slots; columns: the plane
  cell_locator locator = {};                 // table

  /// Elements of a block's tiles.
  FURL_HD constexpr u32 run_elements() const { return u32(tiles_per_block * tile_elements); }
};

namespace detail {

inline constexpr u32 shared_limit = 48 << 10;  // bytes, of any device without asking

FURL_HD constexpr bool is_one_dimensional(const cell_grid& g) {
  return g.first_pooled == 2 && g.inner == 1;
}

/// Whether lanes hold whole cells: then log2 of their elements, else 0.
FURL_HD constexpr int log2_lane_cell(const cell_grid& g) {
  if (!is_one_dimensional(g) || g.extent[2] % g.window[2] != 0) return 0;
  for (int log2 = 2; log2 <= 6; ++log2)
    if (g.window[2] == 1 << log2) return log2;
  return 0;
}

/// Most tiles of a block. Registers decide: 64 a thread, but 72 for columns and the table, so
/// that 28 warps or more run on a multiprocessor.
FURL_HD constexpr int max_tiles(lfc_path path) {
  return path == lfc_path::columns ? 14
         : path == lfc_path::table ? 7
         : path == lfc_path::none  ? 4
                                   : 16;
}
/// Blocks of so many tiles that shall fit on a multiprocessor: as many as need no spills.
/// in_ranges: for kernels that compress in ranges which are given.
FURL_HD constexpr int min_blocks(lfc_path path, bool in_ranges = false) {
  if (path == lfc_path::none) return 7;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800  // which has 1024 threads, not 2048
  (void)in_ranges;
  return path == lfc_path::table ? 3 : 1;
#else
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1200
  if (path == lfc_path::columns || (path == lfc_path::slots && in_ranges)) return 1;
#endif
  (void)in_ranges;
  return path == lfc_path::table ? 4 : 2;
#endif
}

/// Tiles of a run. If bands end where every so many tiles end, a multiple of that, for then no
/// element is read twice; else more where a band is long.
FURL_HD constexpr int tiles_per_run(const cell_plane& p, int most, bool& whole) {
  const u32 unit = p.has_one_row() ? p.window_columns() : p.band_elements();
  u32 tiles = unit;  // over the greatest common divisor of unit and tile
  for (int twice = 2; twice <= tile_elements && tiles % 2 == 0; twice *= 2) tiles /= 2;
  whole = p.is_whole() && tiles <= u32(most);
  if (whole) return tiles > 8 ? int(tiles) : int(8 / tiles * tiles);
  return unit > 4096 ? most : 8;
}

/// Bytes of shared memory for the means of a run: a bound on the bands that it touches.
FURL_HD constexpr u64 column_bytes(const cell_plane& p, u32 run_elements) {
  const u64 planes = run_elements / p.num_elements();
  const u64 rest = run_elements % p.num_elements() / p.band_elements();
  const u64 bands = planes * p.num_bands() + rest + 3;
  return 16 + bands * (p.num_columns() + p.window_rows()) * sizeof(float);
}

FURL_HD constexpr u64 slot_bytes(const cell_plane& p, u32 run_elements, int log2_granule) {
  const u64 beside = p.has_one_row() ? p.window_columns() : p.band_elements();
  return ((run_elements + 2 * beside + 8) >> log2_granule) * sizeof(float) + 16;
}

}  // namespace detail

/// The fastest path for a grid, of those that leave some bytes of shared memory to each tile.
FURL_HD constexpr lfc_source choose_lfc_source(const cell_grid& grid, u32 bytes_per_tile = 0) {
  const cell_grid g = normalised(grid);
  lfc_source s;
  s.log2_cell = detail::log2_lane_cell(g);
  if (s.log2_cell > 0) {
    s.path = lfc_path::lanes;
    s.shared_bytes = 0;
    return s;
  }
  s.locator = cell_locator(g);
  if (!cell_plane::fits(g)) return s;
  const cell_plane plane(g);
  const u32 longest = lfc_slot_layout::max_window;
  if (plane.window_rows() > longest || plane.window_columns() > longest) return s;
  if (!plane.has_one_row() && plane.num_columns() > u32(8 * tile_elements)) return s;
  const bool across =
      plane.window_columns() == 1 && plane.num_columns() % 4 == 0 && !plane.has_one_row();
  const lfc_path path = across ? lfc_path::columns : lfc_path::slots;
  bool whole = false;
  const int tiles = detail::tiles_per_run(plane, detail::max_tiles(path), whole);
  const u32 run_elements = u32(tiles) * tile_elements;
  u64 bytes = 0;
  if (across) {
    bytes = detail::column_bytes(plane, run_elements);
    if (plane.band_elements() > 8 * tile_elements) return s;
  } else {
    for (u32 granule = 2; granule <= 4; granule *= 2)
      if (plane.num_columns() % granule == 0 && plane.window_columns() % granule == 0)
        ++s.slots.log2_granule;
    bytes = detail::slot_bytes(plane, run_elements, int(s.slots.log2_granule));
  }
  if (bytes + u64(tiles) * bytes_per_tile + 15 > detail::shared_limit) return s;
  s.path = path;
  s.tiles_per_block = tiles;
  s.shared_bytes = u32(bytes);
  s.slots.plane = plane;
  s.slots.is_whole = whole;
  s.slots.cells_per_run = run_elements / (plane.window_rows() * plane.window_columns());
  s.slots.num_cells = g.num_cells();
  return s;
}

}  // namespace furl
