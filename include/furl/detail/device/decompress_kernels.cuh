// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE GRID. Decompression, into an array or added to one: one warp a tile.

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

/// Restores elements, without means. Dithered: whether their codes are.
template <class T, output Output, bool Dithered, class Architectures>
__global__ void __launch_bounds__(block_threads, 7)
    decompress(blob_layout layout, const u8* blob, T* y, key_argument key_source) {
  random_key key;
  if constexpr (Dithered) key = key_source.get();
  for (i64 tile = first_tile(); tile < layout.num_tiles; tile += tile_stride()) {
    const int count = elements_in_tile(layout.num_elements, tile);
    tile_fragment<T> out;
    if constexpr (Output == output::accumulate) load_tile(y + tile * tile_elements, count, out);
    coded_tile coded;
    if (!load_coded_tile(layout, tile, count, blob, coded)) continue;
    const auto write = [&](const auto& loaded) {
      FURL_UNROLL
      for (int row = 0; row < rows_per_tile; ++row) {
        float values[4];
        dequantize_row(loaded, row, values);
        write_row<Output, T>(values, out.word[row]);
      }
    };
    if constexpr (Dithered) {
      write(dither(coded, tile, key));
    } else {
      write(coded);
    }
    store_tile(y + tile * tile_elements, count, out);
  }
}

/// How codes become residuals.
enum class decoding : u8 { plain, dithered, rotated };

/// Blocks that shall fit on a multiprocessor: fewer where what is added to, codes and what takes
/// the key are more than the registers of that many threads.
template <class T, output Output, lfc_path Path, decoding Decoding>
FURL_HD constexpr int min_blocks_of_decompress() {
  if (Output == output::accumulate && Decoding != decoding::plain) {
    if (Path == lfc_path::slots && sizeof(T) == 4) return 1;
#if __CUDA_ARCH__ >= 1000
    if (Path == lfc_path::lanes) return 1;
#endif
  }
  return detail::min_blocks(Path);
}

/// Restores elements from their residuals and means.
template <class T, output Output, lfc_path Path, decoding Decoding, class Architectures>
__global__ void __launch_bounds__(block_decompress<Path>::max_threads,
                                  min_blocks_of_decompress<T, Output, Path, Decoding>())
    decompress_with_lfc(block_layout layout, const u8* blob, T* y, key_argument key_source) {
  extern __shared__ float4 shared[];
  const tile_run run(layout);
  const block_decompress<Path> block(layout, run, shared, blob, detail::known_path{});
  if (run.count == 0) return;
  const auto for_each_row = [&](const auto& function) -> bool {
    if constexpr (Decoding == decoding::rotated) {
      block.for_each_rotated_row(key_source.get(), function);
      return true;
    } else if constexpr (Decoding == decoding::dithered) {
      return block.for_each_row(key_source.get(), function);
    } else {
      return block.for_each_row(function);
    }
  };
  T* const tile = y + run.tile * tile_elements;
  tile_fragment<T> out;
  if constexpr (Output == output::accumulate && sizeof(T) == 2) {
    // Values first: 16-bit elements leave the registers for it, and fewer loads are on their way.
    tile_fragment<float> restored;
    const bool has_place = for_each_row([&](int row, const float(&values)[4]) {
      FURL_UNROLL
      for (int k = 0; k < 4; ++k) restored.word[row][k] = values[k];
    });
    if (!has_place) return;
    load_tile(tile, run.count, out);
    FURL_UNROLL
    for (int row = 0; row < rows_per_tile; ++row) add_row<T>(restored.word[row], out.word[row]);
  } else {
    if constexpr (Output == output::accumulate) load_tile(tile, run.count, out);
    const bool has_place = for_each_row(
        [&](int row, const float(&values)[4]) { write_row<Output, T>(values, out.word[row]); });
    if (!has_place) return;
  }
  store_tile(tile, run.count, out);
}

#if !defined(__CUDACC_RTC__)

/// Decompresses by the kernel that a plan needs.
template <class Architectures, output Output, decoding Decoding, class T>
status launch_decompress_with_lfc(const block_layout& layout, const u8* blob, T* y,
                                  const key_argument& key, cudaStream_t stream) {
  return with_path(layout.means.path, [&](auto chosen) -> status {
    constexpr lfc_path path = decltype(chosen)::value;
    if constexpr (path == lfc_path::none) {
      return {};
    } else {
      return launch(decompress_with_lfc<T, Output, path, Decoding, Architectures>,
                    {layout.num_blocks(), layout.num_threads(), layout.shared_bytes()}, stream,
                    layout, blob, y, key);
    }
  });
}

/// The same for codes that are not rotated.
template <class Architectures, output Output, class T>
status launch_decompress(const plan& p, const options& o, const u8* blob, T* y, random_key key,
                         cudaStream_t stream) {
  const block_layout layout(p, o);
  const key_argument source{key, o.device_key};
  const auto launch_decoding = [&](auto dithered) -> status {
    constexpr bool is_dithered = decltype(dithered)::value;
    constexpr decoding how = is_dithered ? decoding::dithered : decoding::plain;
    if (p.has_lfc())
      return launch_decompress_with_lfc<Architectures, Output, how>(layout, blob, y, source,
                                                                    stream);
    const blob_layout& of_blob = layout;
    return launch(decompress<T, Output, is_dithered, Architectures>, {blocks_for(layout.num_tiles)},
                  stream, of_blob, blob, y, source);
  };
  if (p.needs_key()) return launch_decoding(::std::true_type{});
  return launch_decoding(::std::false_type{});
}

#endif

}  // namespace furl::kernel

FURL_HIDDEN_END
