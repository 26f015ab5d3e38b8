// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE GRID. Values to codes by a codebook, back to levels, and levels times gradients (README, A9).
// One warp a tile.

#include "furl/block/blob_layout.cuh"
#include "furl/block/codebook.cuh"
#include "furl/block/codes.cuh"
#include "furl/block/one_bit.cuh"
#include "furl/block/tile.cuh"
#include "furl/block/unpack_dequantize.cuh"
#include "furl/codebook.hpp"
#include "furl/config.hpp"
#include "furl/kernel/compress.cuh"
#include "furl/kernel/launch.cuh"
#include "furl/kernel/masked.cuh"

FURL_HIDDEN_BEGIN

namespace furl::kernel {

/// Where the codes of a tile begin, in bytes from the blob's base.
__device__ __forceinline__ i64 codes_begin(i64 tile, int bits) {
  return tile * (bits * row_elements);
}

/// Loads a tile of x, whole and four elements at a time if it is before num_vector_tiles, and
/// returns how many of its elements are present.
template <class T>
__device__ __forceinline__ int load_tile_of(const T* x, i64 num_elements, i64 num_vector_tiles,
                                            i64 tile, tile_fragment<T>& elements) {
  if (tile < num_vector_tiles) {
    load_rows(__cvta_generic_to_global(x + tile * tile_elements + 4 * lane_index()), elements);
    return tile_elements;
  }
  const int count = elements_in_tile(num_elements, tile);
  load_tile(x + tile * tile_elements, count, elements);
  return count;
}

/// Codes by thresholds.
/// SearchBits : book.bits(). bits: of a packed code, at least as many.
template <class T, int SearchBits>
__global__ void __launch_bounds__(block_threads)
    pack_nearest(i64 num_elements, i64 num_vector_tiles, int bits,
                 const FURL_GRID_CONSTANT codebook book, const T* x, u8* blob) {
  __shared__ threshold_tree<T> tree;
  load_thresholds<SearchBits>(book, tree);
  __syncthreads();
  const u32 magnitudes = forgotten(book.of_magnitudes);  // read once
  const i64 stride = tile_stride();
  for (i64 tile = first_tile(); tile * tile_elements < num_elements; tile += stride) {
    tile_fragment<T> elements;
    const int count = load_tile_of(x, num_elements, num_vector_tiles, tile, elements);
    if (magnitudes != 0) take_magnitudes(elements);
    u32 codes[rows_per_tile];
    encode_nearest<SearchBits>(elements, tree, codes);
    if (count < tile_elements) clear_absent(codes, count);
    store_codes(codes, bits, blob + codes_begin(tile, bits));
  }
}

/// Codes between levels; likewise.
template <class T, int SearchBits>
__global__ void __launch_bounds__(block_threads)
    pack_stochastic(i64 num_elements, i64 num_vector_tiles, int bits,
                    const FURL_GRID_CONSTANT codebook book, const T* x, u8* blob,
                    key_argument key_source) {
  __shared__ threshold_tree<float> tree;
  __shared__ interval_table intervals;
  load_thresholds<SearchBits>(book, tree);
  load_intervals(book, intervals);
  __syncthreads();
  const u32 magnitudes = forgotten(book.of_magnitudes);  // read once
  const random_key key = key_source.get();
  const float first = book.level[0];
  const float last = book.level[book.num_levels - 1];
  const i64 stride = tile_stride();
  for (i64 tile = first_tile(); tile * tile_elements < num_elements; tile += stride) {
    tile_fragment<T> elements;
    const int count = load_tile_of(x, num_elements, num_vector_tiles, tile, elements);
    if (magnitudes != 0) take_magnitudes(elements);
    u32 codes[rows_per_tile];
    encode_stochastic<SearchBits>(elements, tree, intervals, first, last, tile, key, codes);
    if (count < tile_elements) clear_absent(codes, count);
    store_codes(codes, bits, blob + codes_begin(tile, bits));
  }
}

/// Two levels in one bit: 1 where x, not its magnitude, is at least the threshold.
template <class T>
__global__ void __launch_bounds__(block_threads) pack_binary(masked_arrays<T> a, float threshold) {
  const u32 least = threshold_word<T>(threshold);
  for_each_masked_tile<false>(a, [&](const tile_fragment<T>& x, int count, i64, u32* word) {
    store_word(word, encode_binary(x, count, least));
  });
}

/// Levels of codes.
template <class T>
__global__ void __launch_bounds__(block_threads)
    unpack_levels(i64 num_elements, int bits, const FURL_GRID_CONSTANT codebook book,
                  const u8* blob, T* y) {
  __shared__ level_table table;
  load_levels(book, table);
  __syncthreads();
  const i64 stride = tile_stride();
  for (i64 tile = first_tile(); tile * tile_elements < num_elements; tile += stride) {
    u32 codes[rows_per_tile];
    load_codes(blob + codes_begin(tile, bits), bits, codes);
    tile_fragment<T> out;
    FURL_UNROLL
    for (int row = 0; row < rows_per_tile; ++row) {
      float level[4];
      look_up_row(codes[row], table, level);
      saturate_row<T>(level, out.word[row]);
    }
    store_tile(y + tile * tile_elements, elements_in_tile(num_elements, tile), out);
  }
}

/// Gradients times levels of codes. out may be g.
template <class T>
__global__ void __launch_bounds__(block_threads)
    multiply_levels(i64 num_elements, int bits, const FURL_GRID_CONSTANT codebook book,
                    const u8* blob, const T* g, T* out) {
  __shared__ level_table table;
  load_levels(book, table);
  __syncthreads();
  const i64 stride = tile_stride();
  for (i64 tile = first_tile(); tile * tile_elements < num_elements; tile += stride) {
    const int count = elements_in_tile(num_elements, tile);
    tile_fragment<T> gradient;
    load_tile(g + tile * tile_elements, count, gradient);
    u32 codes[rows_per_tile];
    load_codes(blob + codes_begin(tile, bits), bits, codes);
    FURL_UNROLL
    for (int row = 0; row < rows_per_tile; ++row)
      scale_row<T>(codes[row], table, gradient.word[row]);
    store_tile(out + tile * tile_elements, count, gradient);
  }
}

/// One bit with levels 0 and `level`, which is not 0.
/// Scales : false if level is 1.
template <class T, bool Scales>
__global__ void __launch_bounds__(block_threads) multiply_binary(masked_arrays<T> a, float level) {
  for_each_masked_tile<true>(a, [&](tile_fragment<T>& x, int, i64, const u32* word) {
    scale_binary<Scales>(load_word(word), level, x);
  });
}

}  // namespace furl::kernel

FURL_HIDDEN_END
