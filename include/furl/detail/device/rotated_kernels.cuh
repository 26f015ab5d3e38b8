// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE GRID. Compression to rotated codes and decompression (FORMAT.md, R1 to R8): one warp a tile,
// or four tiles that share their random words.

#include "furl/block/compress.cuh"
#include "furl/block/decompress.cuh"
#include "furl/block/layout.cuh"
#include "furl/block/rotated.cuh"
#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/detail/device/decompress_kernels.cuh"
#include "furl/detail/device/kernels.cuh"
#include "furl/detail/device/launch.cuh"

FURL_HIDDEN_BEGIN

namespace furl::kernel {

/// Calls function(tile) for the tiles of the calling warp, whose signs are in the storage then:
/// runs of `run` tiles, 1 or tiles_per_draw, that the warps of a grid take in turns.
template <class Storage, class Function>
__device__ __forceinline__ void for_each_rotated_tile(i64 num_tiles, int run, random_key key,
                                                      Storage& storage, const Function& function) {
  for (i64 first = first_tile() * run; first < num_tiles; first += tile_stride() * run) {
    draw_signs(first, key, storage);
    const i64 end = first + run < num_tiles ? first + run : num_tiles;
    FURL_NO_UNROLL
    for (i64 tile = first; tile < end; ++tile) function(tile);
  }
}

/// Compresses elements, without means.
template <class T, class Architectures>
__global__ void __launch_bounds__(block_threads, 7)
    compress_rotated(blob_layout layout, int run, const T* x, u8* blob, key_argument key_source) {
  __shared__ compress_rotation_storage of_warps[warps_per_block];
  compress_rotation_storage& storage = of_warps[warp_index()];
  for_each_rotated_tile(layout.num_tiles, run, key_source.get(), storage, [&](i64 tile) {
    const int count = elements_in_tile(layout.num_elements, tile);
    tile_fragment<T> elements;
    load_tile(x + tile * tile_elements, count, elements);
    compress_rotated_tile(layout, tile, count, elements, storage, blob);
  });
}

/// Blocks that shall fit on a multiprocessor without spills.
template <output Output>
FURL_HD constexpr int min_blocks_of_rotated() {
#if __CUDA_ARCH__ >= 1200
  return Output == output::accumulate ? 5 : 7;
#else
  return Output == output::accumulate ? 6 : 7;
#endif
}

/// Restores elements, without means.
template <class T, output Output, class Architectures>
__global__ void __launch_bounds__(block_threads, min_blocks_of_rotated<Output>())
    decompress_rotated(blob_layout layout, int run, const u8* blob, T* y, key_argument key_source) {
  __shared__ decompress_rotation_storage of_warps[warps_per_block];
  decompress_rotation_storage& storage = of_warps[warp_index()];
  for_each_rotated_tile(layout.num_tiles, run, key_source.get(), storage, [&](i64 tile) {
    const int count = elements_in_tile(layout.num_elements, tile);
    tile_fragment<T> out;
    if constexpr (Output == output::accumulate) load_tile(y + tile * tile_elements, count, out);
    const rotated_tile loaded = load_rotated_tile(layout, tile, blob, storage);
    FURL_UNROLL
    for (int row = 0; row < rows_per_tile; ++row) {
      float values[4];
      if constexpr (Output == output::replace && sizeof(T) == 2) {  // signs two at once
        dequantize_unsigned_row(loaded, row, values);
        saturate_row<T>(values, out.word[row]);
        detail::flip_row(loaded.signs, row, out.word[row]);
      } else {
        dequantize_row(loaded, row, values);
        write_row<Output, T>(values, out.word[row]);
      }
    }
    store_tile(y + tile * tile_elements, count, out);
  });
}

/// The same for means.
template <lfc_path Path>
FURL_HD constexpr int min_blocks_of_rotated_with_lfc() {
#if __CUDA_ARCH__ >= 1000
  if (Path == lfc_path::slots) return 1;
#endif
  return detail::min_blocks(Path, true);
}

/// Compresses the residuals of elements and their means.
template <class T, lfc_path Path, class Architectures>
__global__ void __launch_bounds__(block_compress<Path>::max_threads,
                                  min_blocks_of_rotated_with_lfc<Path>())
    compress_rotated_with_lfc(block_layout layout, tile_range tiles, const T* x, u8* blob,
                              key_argument key_source) {
  extern __shared__ float4 shared[];
  const tile_run run(layout, tiles);
  const block_compress<Path> block(layout, run, shared, detail::known_path{});
  tile_fragment<float> elements;
  block.load(array_elements<T>{x}, blob, elements);
  if (run.count > 0) block.compress_rotated(elements, key_source.get(), blob);
}

#if !defined(__CUDACC_RTC__)

/// Warps that are enough for a large device. Where there would be fewer, each takes one tile at a
/// time and draws random words for it alone: two instructions per element more.
inline constexpr i64 enough_warps = 1024;

inline int rotated_run(i64 num_tiles) {
  return num_tiles >= enough_warps * tiles_per_draw ? tiles_per_draw : 1;
}

inline grid_shape rotated_grid(i64 num_tiles) {
  return {blocks_for((num_tiles - 1) / rotated_run(num_tiles) + 1)};
}

/// Compresses elements by the kernel that their plan needs.
template <class Architectures, class T>
status launch_compress_rotated(const plan& p, const options& o, const T* x, u8* blob,
                               random_key key, cudaStream_t stream) {
  const block_layout layout(p, o);
  const key_argument source{key, o.device_key};
  if (p.has_lfc())
    return launch_with_lfc<Architectures>(
        layout, p.grid(), x, blob, stream,
        [&](auto path, const grid_shape& grid, const tile_range& tiles) -> status {
          return launch(compress_rotated_with_lfc<T, decltype(path)::value, Architectures>, grid,
                        stream, layout, tiles, x, blob, source);
        });
  const blob_layout& of_blob = layout;
  return launch(compress_rotated<T, Architectures>, rotated_grid(layout.num_tiles), stream, of_blob,
                rotated_run(layout.num_tiles), x, blob, source);
}

/// Decompresses by the kernel that the plan needs.
template <class Architectures, output Output, class T>
status launch_decompress_rotated(const plan& p, const options& o, const u8* blob, T* y,
                                 random_key key, cudaStream_t stream) {
  const block_layout layout(p, o);
  const key_argument source{key, o.device_key};
  if (p.has_lfc())
    return launch_decompress_with_lfc<Architectures, Output, decoding::rotated>(layout, blob, y,
                                                                                source, stream);
  const blob_layout& of_blob = layout;
  return launch(decompress_rotated<T, Output, Architectures>, rotated_grid(layout.num_tiles),
                stream, of_blob, rotated_run(layout.num_tiles), blob, y, source);
}

#endif

}  // namespace furl::kernel

FURL_HIDDEN_END
