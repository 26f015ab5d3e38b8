// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE BLOCK. Where the slots of a block's run of tiles are (lfc_slots.cuh).

#include "furl/block/intrinsics.cuh"
#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/element/cell_plane.hpp"

namespace furl {

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

}  // namespace furl
