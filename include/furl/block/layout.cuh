// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a kernel needs to know of a plan, as a small plain value to be passed to it.
//
// Which way a kernel comes by the means of a tile's elements, chosen from the shape alone.

#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/detail/cell_index.hpp"
#include "furl/detail/cells.hpp"
#include "furl/detail/device/intrinsics.cuh"
#include "furl/detail/device/launch.cuh"
#include "furl/detail/device/means_columns.cuh"
#include "furl/detail/device/means_slots.cuh"
#include "furl/detail/device/means_warp.cuh"
#include "furl/detail/number.hpp"

#if !defined(__CUDACC_RTC__)
#include <type_traits>

#include "furl/plan.hpp"
#endif

namespace furl {

/// Tiles whose widths one lane each can add up.
inline constexpr int tiles_per_chunk = warp_threads;

/// Where the codes of a tile are.
struct tile_place {
  int bits;    // of a code; 0 where the widths do not fit the plan
  u64 offset;  // bytes from the blob's base
};

/// What a kernel needs of a plan: where the parts of the blob are, and how they are coded.
struct blob_layout {
  i64 num_elements = 0;             // of the tensor
  i64 num_tiles = 0;                // of it
  u64 meta_offset = 0;              // bytes from the blob's base, as those that follow
  u64 meta_end = 0;                 // where padding begins
  u64 lfc_offset = 0;               // where the LFC begins
  u64 lfc_end = 0;                  // where its padding begins
  u64 size_bytes = 0;               // of the blob
  int bits = 0;                     // of every code; 0: see widths
  int group = 0;                    // elements of a group
  dtype meta = dtype::bf16;         // type of metadata and LFC
  bool stochastic = true;           // otherwise to nearest
  const u8* widths = nullptr;       // for a mixed plan, global: of each tile
  const u64* chunk_sums = nullptr;  // likewise: of the widths before each chunk of 32 tiles

  blob_layout() = default;
#if !defined(__CUDACC_RTC__)
  /// For a mixed plan, widths and chunk_sums are yet to be set.
  FURL_HIDDEN explicit constexpr blob_layout(const plan& p)
      : num_elements(p.num_elements()),
        num_tiles(p.num_tiles()),
        meta_offset(p.meta_offset()),
        meta_end(meta_offset + u64(p.num_groups()) * 2 * u64(furl::size_bytes(p.codec().meta))),
        lfc_offset(p.lfc_offset()),
        lfc_end(lfc_offset + u64(p.num_cells()) * u64(furl::size_bytes(p.codec().meta))),
        size_bytes(p.size_bytes()),
        bits(p.codec().bits),
        group(p.codec().group),
        meta(p.codec().meta),
        stochastic(p.codec().rounding == rounding::stochastic) {}
#endif

  /// Threads : one warp, all lanes with the same tile.
  /// Shared  : none. Sync : within the warp.
  /// Result  : in every lane. bits is 0 if the tile's codes would reach beyond the codes part, as
  ///           they may where widths break their precondition: the tile has no place then.
  __device__ __forceinline__ tile_place place_of(i64 tile) const {
    if (bits != 0) return {bits, u64(tile) * u64(bits * row_elements)};
    const u32 in_chunk = u32(tile) % tiles_per_chunk;
    const u32 lane = u32(lane_index());
    const u8* const chunk = widths + (tile - in_chunk);
    const u32 mine = lane <= in_chunk ? chunk[lane] : 0u;
    const u32 through = warp_sum(mine);  // this tile
    const int width = int(shuffle(mine, int(in_chunk)));
    const u64 offset =
        (chunk_sums[u64(tile) / tiles_per_chunk] + (through - u32(width))) * row_elements;
    const bool fits =
        u32(width - 1) < u32(max_bits) && offset + u64(u32(width) * row_elements) <= meta_offset;
    return {fits ? width : 0, offset};
  }

  /// Of the tile at a place.
  __device__ __forceinline__ tile_codec codec_of(const tile_place& place) const {
    return {place.bits, group, meta, stochastic};
  }
};

/// @{
/// First tile of a warp and distance to its next, for a grid of one-dimensional blocks of whole
/// warps.
__device__ __forceinline__ i64 first_tile() {
  return (i64(blockIdx.x) * i64(blockDim.x) + threadIdx.x) / warp_threads;
}
__device__ __forceinline__ i64 tile_stride() {
  return i64(gridDim.x) * i64(blockDim.x / warp_threads);
}
/// @}

}  // namespace furl

FURL_HIDDEN_BEGIN

namespace furl::kernel {

/// Tiles begin .. end - 1, to be processed by one launch.
struct tile_range {
  i64 begin;          // the first
  i64 end;            // behind the last
  i64 first_run = 0;  // number of the first block's run of tiles, if all runs are of one length
};

/// Ways to come by the means.
enum class lfc_path : u8 {
  lanes,    // cells in the registers of neighbouring lanes
  slots,    // two-dimensional cells over a block's tiles, through shared memory
  columns,  // cells across rows of features, read again from a cache
  table,    // any cells; compress pools them with a kernel of its own first
};

/// A path with what it needs to know, to be passed to a kernel.
struct lfc_source {
  lfc_path path = lfc_path::table;           // which of them
  int tiles_per_block = 7;                   // one warp each
  u32 shared_bytes = 7 * sizeof(lfc_table);  // of a block
  int log2_cell = 0;                         // lanes
  lfc_slot_layout slots = {};                // slots; columns: the plane
  cell_locator locator = {};                 // table

  /// Of a block's tiles.
  FURL_HD constexpr u32 run_elements() const { return u32(tiles_per_block * tile_elements); }
  /// Elements of the tensor in the run that begins with a tile.
  FURL_HD u32 run_count(const blob_layout& layout, i64 first_tile) const {
    const i64 left = layout.num_elements - first_tile * tile_elements;
    return left < run_elements() ? u32(left) : run_elements();
  }
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
  return path == lfc_path::columns ? 14 : path == lfc_path::table ? 7 : 16;
}
/// Blocks of so many tiles that shall fit on a multiprocessor.
FURL_HD constexpr int min_blocks(lfc_path path) {
  return path == lfc_path::table ? 4 : 2;
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
  return bands * (p.num_columns() + p.window_rows()) * sizeof(float);
}

FURL_HD constexpr u64 slot_bytes(const cell_plane& p, u32 run_elements, int log2_granule) {
  const u64 beside = p.has_one_row() ? p.window_columns() : p.band_elements();
  return ((run_elements + 2 * beside + 8) >> log2_granule) * sizeof(float) + 16;
}

}  // namespace detail

/// The fastest path for a grid.
FURL_HD constexpr lfc_source choose_lfc_source(const cell_grid& g) {
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
  if (bytes > detail::shared_limit) return s;
  s.path = path;
  s.tiles_per_block = tiles;
  s.shared_bytes = u32(bytes);
  s.slots.plane = plane;
  s.slots.is_whole = whole;
  s.slots.cells_per_run = run_elements / (plane.window_rows() * plane.window_columns());
  s.slots.num_cells = g.num_cells();
  return s;
}

#if !defined(__CUDACC_RTC__)

/// Calls function(integral constant) with a path.
template <class Function>
status with_path(lfc_path path, const Function& function) {
  switch (path) {
    case lfc_path::lanes:
      return function(std::integral_constant<lfc_path, lfc_path::lanes>{});
    case lfc_path::slots:
      return function(std::integral_constant<lfc_path, lfc_path::slots>{});
    case lfc_path::columns:
      return function(std::integral_constant<lfc_path, lfc_path::columns>{});
    default:
      return function(std::integral_constant<lfc_path, lfc_path::table>{});
  }
}

/// Launches kernel(layout, source, tiles, arguments ...) over a range of tiles, one block for each
/// source.tiles_per_block of them: once, unless that is more than a grid may have.
template <class Kernel, class... Arguments>
status launch_blocks(Kernel kernel, const blob_layout& layout, const lfc_source& source,
                     tile_range tiles, cudaStream_t stream, const Arguments&... arguments) {
  const i64 most = i64(1 << 30) * source.tiles_per_block;
  status s;
  for (i64 end = 0; s && tiles.begin < tiles.end; tiles.begin = end) {
    end = tiles.end - tiles.begin < most ? tiles.end : tiles.begin + most;
    const i64 blocks = (end - tiles.begin - 1) / source.tiles_per_block + 1;
    s = launch_shared(kernel, unsigned(blocks), unsigned(source.tiles_per_block * warp_threads),
                      source.shared_bytes, stream, layout, source,
                      tile_range{tiles.begin, end, tiles.begin / source.tiles_per_block},
                      arguments...);
  }
  return s;
}

#endif

}  // namespace furl::kernel

FURL_HIDDEN_END
