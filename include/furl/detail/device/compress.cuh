// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE GRID. Compression: one warp a tile, every element read from device memory once. With an LFC
// whose cells no block can hold, a second time from the cache, after kernel/pool.cuh.
//
// ONE GRID. Compression with ranges that are given, without an LFC: one warp a tile, every element
// read once. kernel/compress.cuh has that with an LFC.
//
// ONE GRID. The LFC part of a blob: one thread a cell, neighbouring threads on neighbouring cells.

#include "furl/block/average_pool.cuh"
#include "furl/block/compress.cuh"
#include "furl/block/layout.cuh"
#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/detail/cells.hpp"
#include "furl/detail/device/launch.cuh"
#include "furl/detail/number.hpp"
#include "furl/detail/quantize.hpp"
#include "furl/detail/ranges.hpp"

FURL_HIDDEN_BEGIN

namespace furl::kernel {

/// Zeroes what the parts of the blob are padded with.
/// Threads : one warp, all lanes.
__device__ __forceinline__ void clear_padding(const blob_layout& layout, u8* blob) {
  const int lane = lane_index();
  const u64 end = lane < blob_alignment ? layout.lfc_offset : layout.size_bytes;
  const u64 begin = lane < blob_alignment ? layout.meta_end : layout.lfc_end;
  const u64 at = begin + u64(lane % blob_alignment);
  if (at < end) blob[at] = 0;
}

/// Compresses elements, without an LFC.
template <class T>
__global__ void __launch_bounds__(block_threads, 7)
    compress(blob_layout layout, const T* x, u8* blob, key_argument key_source) {
  const random_key key = key_source.get();
  for (i64 tile = first_tile(); tile < layout.num_tiles; tile += tile_stride()) {
    const int count = elements_in_tile(layout.num_elements, tile);
    tile_fragment<T> elements;
    load_tile(x + tile * tile_elements, count, elements);
    if (tile == 0) clear_padding(layout, blob);
    const tile_place place = layout.place_of(tile);
    if (place.bits == 0) continue;
    compress_tile(elements, count, tile, layout.codec_of(place), key, blob + place.offset,
                  blob + layout.meta_offset);
  }
}

/// Residuals of the warp's tile, of which `count` elements are present, or 0 beyond the tensor.
/// Threads : one block of source.tiles_per_block warps, whose first has tile `first`.
/// Sync    : the block.
template <lfc_path Path, class T>
__device__ __forceinline__ void load_residuals(const blob_layout& layout, const lfc_source& source,
                                               i64 run_number, i64 first, int count, const T* x,
                                               u8* lfc, tile_fragment<float>& residuals) {
  extern __shared__ float4 lfc_storage[];
  const int warp = warp_index();
  const T* const run = x + first * tile_elements;
  const T* const mine = run + warp * tile_elements;
  const auto subtract = [&](int row, float4 mean) { subtract_from_row(residuals.word[row], mean); };
  if constexpr (Path == lfc_path::slots) {
    if (count > 0) load_tile_as_f32(mine, count, residuals);
    const lfc_slots slots(lfc_storage, source.slots, run_number, first,
                          source.run_count(layout, first));
    pool_lfc(slots, run, lfc, layout.meta, residuals);
    if (count == 0) return;
    for_each_row(slots, count, subtract);
  } else if constexpr (Path == lfc_path::columns) {
    const u32 run_count = source.run_count(layout, first);
    const lfc_columns columns(lfc_storage, source.slots.plane, first, run_count);
    pool_lfc(columns, run, lfc, layout.meta);
    if (count == 0) return;
    load_tile_as_f32(mine, count, residuals);
    for_each_row(columns, count, subtract);
  } else if constexpr (Path == lfc_path::lanes) {
    if (count == 0) return;
    load_tile_as_f32(mine, count, residuals);
    subtract_lfc_of_lanes(source.log2_cell, first + warp, count, lfc, layout.meta, residuals);
  } else {
    if (count == 0) return;
    lfc_table& table = reinterpret_cast<lfc_table*>(lfc_storage)[warp];
    look_up_lfc(lfc, source.locator, first + warp, count, layout.meta, table);
    load_tile_as_f32(mine, count, residuals);
    for_each_row(table, source.locator, subtract);
  }
}

/// Blocks of source.tiles_per_block warps, one for every so many tiles of the range.
/// InRanges: whether the ranges of residuals are given; measured otherwise.
/// Pre: for lfc_path::table the LFC part of the blob is written, as far as the tiles need it.
template <class T, lfc_path Path, bool InRanges>
__global__ void __launch_bounds__(warp_threads* detail::max_tiles(Path), detail::min_blocks(Path))
    compress_with_lfc(blob_layout layout, lfc_source source, tile_range tiles, const T* x, u8* blob,
                      key_argument key_source, range_map given) {
  const i64 first = tiles.begin + i64(blockIdx.x) * source.tiles_per_block;
  const i64 tile = first + warp_index();
  const int count = tile < tiles.end ? elements_in_tile(layout.num_elements, tile) : 0;
  tile_fragment<float> residuals;
  load_residuals<Path>(layout, source, tiles.first_run + blockIdx.x, first, count, x,
                       blob + layout.lfc_offset, residuals);
  if (count == 0) return;
  if (tile == 0) clear_padding(layout, blob);
  const tile_place place = layout.place_of(tile);
  if (place.bits == 0) return;
  const tile_codec codec = layout.codec_of(place);
  u8* const codes = blob + place.offset;
  u8* const metadata = blob + layout.meta_offset;
  if constexpr (InRanges) {
    const min_max ends = saturate_tile(given, tile, count, codec.group, residuals);
    compress_tile_in_range(residuals, ends, count, tile, codec, key_source.get(), codes, metadata);
  } else {
    compress_tile(residuals, count, tile, codec, key_source.get(), codes, metadata);
  }
}

}  // namespace furl::kernel

FURL_HIDDEN_END

FURL_HIDDEN_BEGIN

namespace furl::kernel {

/// Compresses elements with ranges that are given.
template <class T>
__global__ void __launch_bounds__(block_threads, 6)
    compress_in_ranges(blob_layout layout, const T* x, u8* blob, key_argument key_source,
                       range_map given) {
  const random_key key = key_source.get();
  for (i64 tile = first_tile(); tile < layout.num_tiles; tile += tile_stride()) {
    const int count = elements_in_tile(layout.num_elements, tile);
    tile_fragment<float> elements;
    load_tile_as_f32(x + tile * tile_elements, count, elements);
    if (tile == 0) clear_padding(layout, blob);
    const tile_place place = layout.place_of(tile);
    if (place.bits == 0) continue;
    const tile_codec codec = layout.codec_of(place);
    const min_max ends = saturate_tile(given, tile, count, codec.group, elements);
    compress_tile_in_range(elements, ends, count, tile, codec, key, blob + place.offset,
                           blob + layout.meta_offset);
  }
}

}  // namespace furl::kernel

FURL_HIDDEN_END

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
