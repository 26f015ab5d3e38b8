// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE GRID. Decompression, into an array or added to one: one warp a tile.
//
// ONE GRID. Masks and small integers (FORMAT.md, A8): one byte per element in, `bits` bits out, and
// back. One warp a tile.

#include "furl/block/codes.cuh"
#include "furl/block/decompress.cuh"
#include "furl/block/layout.cuh"
#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/detail/device/launch.cuh"

FURL_HIDDEN_BEGIN

namespace furl::kernel {

/// Whether values take the place of what is there, or are added to it.
enum class output : u8 { replace, accumulate };

/// Four values into the output, or added to it.
template <output Output, class T>
__device__ __forceinline__ void write_row(const float (&values)[4], row_words<T>& out) {
  if constexpr (Output == output::accumulate) {
    add_row<T>(values, out);
  } else {
    saturate_row<T>(values, out);
  }
}

/// Restores elements, without an LFC.
template <class T, output Output>
__global__ void __launch_bounds__(block_threads, 7)
    decompress(blob_layout layout, const u8* blob, T* y) {
  for (i64 tile = first_tile(); tile < layout.num_tiles; tile += tile_stride()) {
    const int count = elements_in_tile(layout.num_elements, tile);
    const tile_place place = layout.place_of(tile);
    if (place.bits == 0) continue;
    tile_fragment<T> out;
    if constexpr (Output == output::accumulate) load_tile(y + tile * tile_elements, count, out);
    const coded_tile coded = load_coded_tile(blob + place.offset, blob + layout.meta_offset, tile,
                                             count, layout.codec_of(place));
    FURL_UNROLL
    for (int row = 0; row < rows_per_tile; ++row) {
      float values[4];
      dequantize_row(coded, row, values);
      write_row<Output, T>(values, out.word[row]);
    }
    store_tile(y + tile * tile_elements, count, out);
  }
}

/// Values of a tile with their means into y, or added to it.
/// Threads : one warp, all lanes.
template <output Output, class T, class ForEachMean>
__device__ __forceinline__ void write_tile(const coded_tile& coded, int count, T* y,
                                           const ForEachMean& for_each_mean) {
  tile_fragment<T> out;
  if constexpr (Output == output::accumulate && sizeof(T) == 2) {
    // Values first: 16-bit elements leave the registers for it, and fewer loads are on their way.
    tile_fragment<float> values;
    for_each_mean([&](int row, float4 mean) {
      dequantize_row(coded, row, values.word[row]);
      add_to_row(values.word[row], mean);
    });
    load_tile(y, count, out);
    FURL_UNROLL
    for (int row = 0; row < rows_per_tile; ++row) add_row<T>(values.word[row], out.word[row]);
  } else {
    if constexpr (Output == output::accumulate) load_tile(y, count, out);
    for_each_mean([&](int row, float4 mean) {
      float values[4];
      dequantize_row(coded, row, values);
      add_to_row(values, mean);
      write_row<Output, T>(values, out.word[row]);
    });
  }
  store_tile(y, count, out);
}

/// Blocks of source.tiles_per_block warps, one for every so many tiles of the range.
template <class T, output Output, lfc_path Path>
__global__ void __launch_bounds__(warp_threads* detail::max_tiles(Path), detail::min_blocks(Path))
    decompress_with_lfc(blob_layout layout, lfc_source source, tile_range tiles, const u8* blob,
                        T* y) {
  extern __shared__ float4 lfc_storage[];
  const u8* const lfc = blob + layout.lfc_offset;
  const i64 first = tiles.begin + i64(blockIdx.x) * source.tiles_per_block;
  const i64 tile = first + warp_index();
  const int count = tile < tiles.end ? elements_in_tile(layout.num_elements, tile) : 0;
  const u32 run_count = source.run_count(layout, first);
  // for_each_mean(function) calls it for each row, with the means of its elements.
  const auto write = [&](const auto& for_each_mean) {
    if (count == 0) return;
    const tile_place place = layout.place_of(tile);
    if (place.bits == 0) return;
    const coded_tile coded = load_coded_tile(blob + place.offset, blob + layout.meta_offset, tile,
                                             count, layout.codec_of(place));
    write_tile<Output>(coded, count, y + tile * tile_elements, for_each_mean);
  };
  if constexpr (Path == lfc_path::slots) {
    const lfc_slots slots(lfc_storage, source.slots, tiles.first_run + blockIdx.x, first,
                          run_count);
    spread_lfc(slots, lfc, layout.meta);
    write([&](const auto& function) { for_each_row(slots, count, function); });
  } else if constexpr (Path == lfc_path::columns) {
    const lfc_columns columns(lfc_storage, source.slots.plane, first, run_count);
    spread_lfc(columns, lfc, layout.meta);
    write([&](const auto& function) { for_each_row(columns, count, function); });
  } else if constexpr (Path == lfc_path::lanes) {
    write([&](const auto& function) {
      for_each_row_of_lanes(source.log2_cell, tile, count, lfc, layout.meta, function);
    });
  } else {
    lfc_table& table = reinterpret_cast<lfc_table*>(lfc_storage)[warp_index()];
    if (count > 0) look_up_lfc(lfc, source.locator, tile, count, layout.meta, table);
    write([&](const auto& function) { for_each_row(table, source.locator, function); });
  }
}

}  // namespace furl::kernel

FURL_HIDDEN_END

FURL_HIDDEN_BEGIN

namespace furl::kernel {

// Templates, so that a program of several translation units has one definition.

/// Keeps the low bits of one code per byte.
template <int Threads = block_threads>
__global__ void __launch_bounds__(Threads) pack(blob_layout layout, const u8* codes, u8* blob) {
  for (i64 tile = first_tile(); tile < layout.num_tiles; tile += tile_stride()) {
    const int count = elements_in_tile(layout.num_elements, tile);
    code_fragment loaded;
    load_tile(codes + tile * tile_elements, count, loaded);
    const u32 mask = in_each_byte(low_bits(layout.bits));
    u32 kept[rows_per_tile];
    FURL_UNROLL
    for (int row = 0; row < rows_per_tile; ++row) kept[row] = loaded.word[row][0] & mask;
    if (count < tile_elements) clear_absent(kept, count);
    store_codes(kept, layout.bits, blob + layout.place_of(tile).offset);
  }
}

/// The inverse of pack.
template <int Threads = block_threads>
__global__ void __launch_bounds__(Threads) unpack(blob_layout layout, const u8* blob, u8* codes) {
  for (i64 tile = first_tile(); tile < layout.num_tiles; tile += tile_stride()) {
    u32 loaded[rows_per_tile];
    load_codes(blob + layout.place_of(tile).offset, layout.bits, loaded);
    code_fragment out;
    FURL_UNROLL
    for (int row = 0; row < rows_per_tile; ++row) out.word[row][0] = loaded[row];
    store_tile(codes + tile * tile_elements, elements_in_tile(layout.num_elements, tile), out);
  }
}

}  // namespace furl::kernel

FURL_HIDDEN_END
