// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE GRID. Codes of positives (FORMAT.md, R9): compression, with the ReLU or without, and
// decompression.

#include "furl/block/layout.cuh"
#include "furl/block/positives.cuh"
#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/detail/device/decompress_kernels.cuh"
#include "furl/detail/device/launch.cuh"
#include "furl/detail/device/rotated_kernels.cuh"

FURL_HIDDEN_BEGIN

namespace furl::kernel {

/// Compresses elements, and writes what a ReLU makes of them to y unless that is null. y may be x.
template <class T, class Architectures>
__global__ void __launch_bounds__(block_threads, 7)
    compress_positives(blob_layout layout, int run, const T* x, T* y, u8* blob,
                       key_argument key_source) {
  __shared__ compress_rotation_storage of_warps[warps_per_block];
  compress_rotation_storage& storage = of_warps[warp_index()];
  for_each_rotated_tile(layout.num_tiles, run, key_source.get(), storage, [&](i64 tile) {
    const int count = elements_in_tile(layout.num_elements, tile);
    tile_fragment<T> elements;
    load_tile(x + tile * tile_elements, count, elements);
    const u32 mask = relu_tile(elements, count);
    if (y != nullptr) store_tile(y + tile * tile_elements, count, elements);
    compress_positives_tile(layout, tile, count, mask, elements, storage, blob);
  });
}

/// Blocks that shall fit on a multiprocessor without spills.
template <output Output>
FURL_HD constexpr int min_blocks_of_positives() {
#if __CUDA_ARCH__ >= 1000
  if (Output == output::accumulate) return 5;
#endif
  return min_blocks_of_rotated<Output>();
}

/// Restores elements.
template <class T, output Output, class Architectures>
__global__ void __launch_bounds__(block_threads, min_blocks_of_positives<Output>())
    decompress_positives(blob_layout layout, int run, const u8* blob, T* y,
                         key_argument key_source) {
  __shared__ decompress_rotation_storage of_warps[warps_per_block];
  decompress_rotation_storage& storage = of_warps[warp_index()];
  for_each_rotated_tile(layout.num_tiles, run, key_source.get(), storage, [&](i64 tile) {
    const int count = elements_in_tile(layout.num_elements, tile);
    tile_fragment<T> out;
    if constexpr (Output == output::accumulate) load_tile(y + tile * tile_elements, count, out);
    const positives_tile loaded = load_positives_tile(layout, tile, blob, storage);
    FURL_UNROLL
    for (int row = 0; row < rows_per_tile; ++row) {
      float values[4];
      dequantize_row(loaded, row, values);
      write_row<Output, T>(values, out.word[row]);
    }
    store_tile(y + tile * tile_elements, count, out);
  });
}

#if !defined(__CUDACC_RTC__)

/// y: see compress_positives.
template <class Architectures, class T>
status launch_compress_positives(const plan& p, const options& o, const T* x, T* y, u8* blob,
                                 random_key key, cudaStream_t stream) {
  return launch(compress_positives<T, Architectures>, rotated_grid(p.num_tiles()), stream,
                blob_layout(p), rotated_run(p.num_tiles()), x, y, blob,
                key_argument{key, o.device_key});
}

template <class Architectures, output Output, class T>
status launch_decompress_positives(const plan& p, const options& o, const u8* blob, T* y,
                                   random_key key, cudaStream_t stream) {
  return launch(decompress_positives<T, Output, Architectures>, rotated_grid(p.num_tiles()), stream,
                blob_layout(p), rotated_run(p.num_tiles()), blob, y,
                key_argument{key, o.device_key});
}

#endif

}  // namespace furl::kernel

FURL_HIDDEN_END
