// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE GRID. Compression of normalised elements, and decompression that takes that back (FORMAT.md,
// A14): one warp a tile, every element read and written once.

#include "furl/block/compress.cuh"
#include "furl/block/decompress.cuh"
#include "furl/block/layout.cuh"
#include "furl/block/rotated.cuh"
#include "furl/block/statistics.cuh"
#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/detail/device/decompress_kernels.cuh"
#include "furl/detail/device/launch.cuh"
#include "furl/detail/device/rotated_kernels.cuh"

FURL_HIDDEN_BEGIN

namespace furl::kernel {

/// Blocks that shall fit on a multiprocessor without spills.
FURL_HD constexpr int min_blocks_of_normalised() {
#if __CUDA_ARCH__ >= 1200
  return 5;
#else
  return 6;
#endif
}
/// The same with rotated codes of elements of a type.
template <class T>
FURL_HD constexpr int min_blocks_of_rotated_normalised() {
#if __CUDA_ARCH__ >= 1000 && __CUDA_ARCH__ < 1200
  return sizeof(T) == 4 ? 4 : 5;
#else
  return 5;
#endif
}

/// Compresses normalised elements to min-max codes.
template <class T, class Architectures>
__global__ void __launch_bounds__(block_threads, min_blocks_of_normalised())
    compress_normalised(blob_layout layout, const T* x, u8* blob, key_argument key_source,
                        statistics_map given) {
  for (i64 tile = first_tile(); tile < layout.num_tiles; tile += tile_stride()) {
    const int count = elements_in_tile(layout.num_elements, tile);
    tile_fragment<float> elements;
    load_tile_as_f32(x + tile * tile_elements, count, elements);
    normalise_tile(given, tile, count, elements);
    compress_tile(layout, tile, count, elements, key_source.get(), blob);
  }
}

/// The same to rotated codes.
template <class T, class Architectures>
__global__ void __launch_bounds__(block_threads, min_blocks_of_rotated_normalised<T>())
    compress_rotated_normalised(blob_layout layout, int run, const T* x, u8* blob,
                                key_argument key_source, statistics_map given) {
  __shared__ compress_rotation_storage of_warps[warps_per_block];
  compress_rotation_storage& storage = of_warps[warp_index()];
  for_each_rotated_tile(layout.num_tiles, run, key_source.get(), storage, [&](i64 tile) {
    const int count = elements_in_tile(layout.num_elements, tile);
    tile_fragment<float> elements;
    load_tile_as_f32(x + tile * tile_elements, count, elements);
    normalise_tile(given, tile, count, elements);
    compress_rotated_tile(layout, tile, count, elements, storage, blob);
  });
}

/// Writes a tile of normalised values as what they stand for, or adds that to what is there.
template <output Output, class T>
__device__ __forceinline__ void write_denormalised(const statistics_map& given, i64 tile, int count,
                                                   tile_fragment<float>& values, T* y) {
  denormalise_tile(given, tile, count, values);
  T* const at = y + tile * tile_elements;
  tile_fragment<T> out;
  if constexpr (Output == output::accumulate) load_tile(at, count, out);
  FURL_UNROLL
  for (int row = 0; row < rows_per_tile; ++row)
    write_row<Output, T>(values.word[row], out.word[row]);
  store_tile(at, count, out);
}

/// Restores elements from min-max codes of normalised ones.
template <class T, output Output, class Architectures>
__global__ void __launch_bounds__(block_threads,
                                  Output == output::accumulate ? 5 : min_blocks_of_normalised())
    decompress_normalised(blob_layout layout, bool dithered, const u8* blob, T* y,
                          key_argument key_source, statistics_map given) {
  for (i64 tile = first_tile(); tile < layout.num_tiles; tile += tile_stride()) {
    const int count = elements_in_tile(layout.num_elements, tile);
    coded_tile coded;
    if (!load_coded_tile(layout, tile, count, blob, coded)) continue;
    tile_fragment<float> values;
    const auto restore = [&](const auto& loaded) {
      FURL_UNROLL
      for (int row = 0; row < rows_per_tile; ++row) dequantize_row(loaded, row, values.word[row]);
    };
    if (dithered) {
      restore(dither(coded, tile, key_source.get()));
    } else {
      restore(coded);
    }
    write_denormalised<Output>(given, tile, count, values, y);
  }
}

/// The same from rotated codes.
template <class T, output Output, class Architectures>
__global__ void __launch_bounds__(block_threads, Output == output::accumulate ? 4 : 5)
    decompress_rotated_normalised(blob_layout layout, int run, const u8* blob, T* y,
                                  key_argument key_source, statistics_map given) {
  __shared__ decompress_rotation_storage of_warps[warps_per_block];
  decompress_rotation_storage& storage = of_warps[warp_index()];
  for_each_rotated_tile(layout.num_tiles, run, key_source.get(), storage, [&](i64 tile) {
    const int count = elements_in_tile(layout.num_elements, tile);
    const rotated_tile loaded = load_rotated_tile(layout, tile, blob, storage);
    tile_fragment<float> values;
    FURL_UNROLL
    for (int row = 0; row < rows_per_tile; ++row) dequantize_row(loaded, row, values.word[row]);
    write_denormalised<Output>(given, tile, count, values, y);
  });
}

#if !defined(__CUDACC_RTC__)

/// Compresses normalised elements by the kernel that their plan needs.
template <class Architectures, class T>
status launch_compress_normalised(const plan& p, const options& o, const T* x, u8* blob,
                                  random_key key, cudaStream_t stream) {
  const blob_layout layout(p);
  const key_argument source{key, o.device_key};
  const statistics_map given(o.statistics);
  if (p.is_rotated())
    return launch(compress_rotated_normalised<T, Architectures>, rotated_grid(layout.num_tiles),
                  stream, layout, rotated_run(layout.num_tiles), x, blob, source, given);
  return launch(compress_normalised<T, Architectures>, {blocks_for(layout.num_tiles)}, stream,
                layout, x, blob, source, given);
}

/// Decompresses to what was normalised, likewise.
template <class Architectures, output Output, class T>
status launch_decompress_normalised(const plan& p, const options& o, const u8* blob, T* y,
                                    random_key key, cudaStream_t stream) {
  const blob_layout layout(p);
  const key_argument source{key, o.device_key};
  const statistics_map given(o.statistics);
  if (p.is_rotated())
    return launch(decompress_rotated_normalised<T, Output, Architectures>,
                  rotated_grid(layout.num_tiles), stream, layout, rotated_run(layout.num_tiles),
                  blob, y, source, given);
  return launch(decompress_normalised<T, Output, Architectures>, {blocks_for(layout.num_tiles)},
                stream, layout, p.needs_key(), blob, y, source, given);
}

#endif

}  // namespace furl::kernel

FURL_HIDDEN_END
