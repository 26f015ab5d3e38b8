// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE GRID. Decompression, into an array or added to one, and masks and small integers (FORMAT.md,
// A8): one warp a tile.

#include "furl/block/codes.cuh"
#include "furl/block/decompress.cuh"
#include "furl/block/layout.cuh"
#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/detail/device/launch.cuh"
#include "furl/detail/quantize.hpp"

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

/// Restores elements, without means.
template <class T, output Output, class Architectures>
__global__ void __launch_bounds__(block_threads, 7)
    decompress(blob_layout layout, const u8* blob, T* y) {
  for (i64 tile = first_tile(); tile < layout.num_tiles; tile += tile_stride()) {
    const int count = elements_in_tile(layout.num_elements, tile);
    tile_fragment<T> out;
    if constexpr (Output == output::accumulate) load_tile(y + tile * tile_elements, count, out);
    coded_tile coded;
    if (!load_coded_tile(layout, tile, count, blob, coded)) continue;
    FURL_UNROLL
    for (int row = 0; row < rows_per_tile; ++row) {
      float values[4];
      dequantize_row(coded, row, values);
      write_row<Output, T>(values, out.word[row]);
    }
    store_tile(y + tile * tile_elements, count, out);
  }
}

/// Restores elements from their residuals and means.
template <class T, output Output, lfc_path Path, class Architectures>
__global__ void __launch_bounds__(block_decompress<Path>::max_threads, detail::min_blocks(Path))
    decompress_with_lfc(block_layout layout, const u8* blob, T* y) {
  extern __shared__ float4 shared[];
  const tile_run run(layout);
  const block_decompress<Path> block(layout, run, shared, blob);
  if (run.count == 0) return;
  T* const tile = y + run.tile * tile_elements;
  tile_fragment<T> out;
  if constexpr (Output == output::accumulate && sizeof(T) == 2) {
    // Values first: 16-bit elements leave the registers for it, and fewer loads are on their way.
    tile_fragment<float> values;
    if (!block.load(values)) return;
    load_tile(tile, run.count, out);
    FURL_UNROLL
    for (int row = 0; row < rows_per_tile; ++row) add_row<T>(values.word[row], out.word[row]);
  } else {
    if constexpr (Output == output::accumulate) load_tile(tile, run.count, out);
    const bool has_place = block.for_each_row(
        [&](int row, const float(&values)[4]) { write_row<Output, T>(values, out.word[row]); });
    if (!has_place) return;
  }
  store_tile(tile, run.count, out);
}

/// Keeps the low bits of one code per byte.
template <class Architectures>
__global__ void __launch_bounds__(block_threads)
    pack(blob_layout layout, const u8* codes, u8* blob) {
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
template <class Architectures>
__global__ void __launch_bounds__(block_threads)
    unpack(blob_layout layout, const u8* blob, u8* codes) {
  for (i64 tile = first_tile(); tile < layout.num_tiles; tile += tile_stride()) {
    u32 loaded[rows_per_tile];
    load_codes(blob + layout.place_of(tile).offset, layout.bits, loaded);
    code_fragment out;
    FURL_UNROLL
    for (int row = 0; row < rows_per_tile; ++row) out.word[row][0] = loaded[row];
    store_tile(codes + tile * tile_elements, elements_in_tile(layout.num_elements, tile), out);
  }
}

#if !defined(__CUDACC_RTC__)

/// Decompresses by the kernel that the plan needs.
template <class Architectures, output Output, class T>
status launch_decompress(const plan& p, const options& o, const u8* blob, T* y,
                         cudaStream_t stream) {
  const block_layout layout(p, o);
  return with_path(layout.means.path, [&](auto chosen) -> status {
    constexpr lfc_path path = decltype(chosen)::value;
    if constexpr (path == lfc_path::none) {
      const blob_layout& of_blob = layout;
      return launch(decompress<T, Output, Architectures>, {blocks_for(layout.num_tiles)}, stream,
                    of_blob, blob, y);
    } else {
      return launch(decompress_with_lfc<T, Output, path, Architectures>,
                    {layout.num_blocks(), layout.num_threads(), layout.shared_bytes()}, stream,
                    layout, blob, y);
    }
  });
}

#endif

}  // namespace furl::kernel

FURL_HIDDEN_END
