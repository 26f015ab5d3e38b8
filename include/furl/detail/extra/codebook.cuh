// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE WARP. Tiles of values to codes by a codebook, and back to levels (FORMAT.md, A9).
// ONE GRID. The kernels of extra/codebook.cuh, one warp a tile.

#include "furl/block/codes.cuh"
#include "furl/block/compress.cuh"
#include "furl/block/decompress.cuh"
#include "furl/block/layout.cuh"
#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/detail/device/intrinsics.cuh"
#include "furl/detail/device/launch.cuh"
#include "furl/detail/device/one_bit.cuh"
#include "furl/detail/device/vectors.cuh"
#include "furl/detail/extra/threshold_search.cuh"
#include "furl/detail/quantize.hpp"
#include "furl/extra/codebook.hpp"

FURL_HIDDEN_BEGIN

namespace furl {

/// Levels. A code that names none stands for 0.
struct level_table {
  float level[max_levels];  // by code
};
/// Where intervals between levels begin, and 1 over their lengths.
struct interval_table {
  float2 begin[max_levels];  // level, inverse
};

/// @{
/// Fills a table from a codebook. Threads, Shared, Sync, Pre : as load_thresholds.
__device__ __forceinline__ void load_levels(const codebook& book, level_table& table) {
  FURL_NO_UNROLL
  for (int i = int(threadIdx.x); i < max_levels; i += int(blockDim.x))
    table.level[i] = i < book.num_levels ? book.level[i] : 0.0f;
}
__device__ __forceinline__ void load_intervals(const codebook& book, interval_table& table) {
  FURL_NO_UNROLL
  for (int i = int(threadIdx.x); i < book.num_levels - 1; i += int(blockDim.x)) {
    const float inverse = div_rn(1.0f, sub_rn(book.level[i + 1], book.level[i]));
    table.begin[i] = make_float2(book.level[i], inverse);
  }
}
/// @}

/// Elements without their signs: a codebook of magnitudes codes them.
/// Threads : any; x is each lane's own.
template <class T>
__device__ __forceinline__ void take_magnitudes(tile_fragment<T>& x) {
  FURL_UNROLL
  for (int row = 0; row < rows_per_tile; ++row) {
    if constexpr (sizeof(T) == 4) {
      for (float& element : x.word[row]) element = keep_by_mask(element, 0x7fffffffu);
    } else {
      for (u32& pair : x.word[row]) pair &= 0x7fff7fffu;
    }
  }
}

/// Rounds codes up or down to one of the two levels around x, at random.
/// Threads : one warp, all lanes; inside and codes are each lane's own.
/// Shapes  : inside : a tile within the range of the levels.
///           tile   : its index in the tensor.
///           codes  : of the levels below, as encode_nearest counts them; they are changed.
/// Shared  : intervals, filled. Sync : none.
__device__ __forceinline__ void round_between(const tile_fragment<float>& inside,
                                              const interval_table& intervals, i64 tile,
                                              random_key key, u32 (&codes)[rows_per_tile]) {
  FURL_UNROLL
  for (int half = 0; half < 2; ++half) {
    const philox_block random = random_words(u64(tile), u32(half), u32(lane_index()), key);
    FURL_UNROLL
    for (int r = 0; r < 4; ++r) {
      const int row = 4 * half + r;
      float y[4];
      FURL_UNROLL
      for (int k = 0; k < 4; ++k) {
        const float2 begin = intervals.begin[select_bytes(codes[row], 0u, 0x4440u + u32(k))];
        y[k] = fma_rn(sub_rn(inside.word[row][k], begin.x), begin.y, 32768.0f);
      }
      const detail::fixed_row fixed{select_bytes(y[0], y[1], 0x5410),
                                    select_bytes(y[2], y[3], 0x5410)};
      codes[row] += detail::round_row(fixed, random.word[r]);  // at most 255 in each byte
    }
  }
}

/// Codes of a tile by stochastic rounding between levels. Bits, Threads, Result: as
/// encode_nearest.
/// Shapes  : first, last : the first and the last level.
///           tile        : its index in the tensor.
/// Shared  : tree and intervals, filled. Sync : none.
template <int Bits, class T>
__device__ __forceinline__ void encode_stochastic(const tile_fragment<T>& x,
                                                  const threshold_tree<float>& tree,
                                                  const interval_table& intervals, float first,
                                                  float last, i64 tile, random_key key,
                                                  u32 (&codes)[rows_per_tile]) {
  tile_fragment<float> inside;
  FURL_UNROLL
  for (int row = 0; row < rows_per_tile; ++row) {
    unpack_row<T>(x.word[row], inside.word[row]);
    FURL_UNROLL
    for (int k = 0; k < 4; ++k)
      inside.word[row][k] = clamp_to_range(inside.word[row][k], first, last);
  }
  encode_nearest<Bits>(inside, tree, codes);
  round_between(inside, intervals, tile, key, codes);
}

/// Levels of a row's four codes.
__device__ __forceinline__ void look_up_row(u32 codes, const level_table& table,
                                            float (&level)[4]) {
  const int begin = int(__cvta_generic_to_shared(table.level));
  FURL_UNROLL
  for (int k = 0; k < 4; ++k) {
    const int code = int(select_bytes(codes, 0u, 0x4440u + u32(k)));
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(level[k]) : "r"(multiply_add<4>(code, begin)));
  }
}

/// A row's elements times the levels of their codes; a level of 0 gives +0.
template <class T>
__device__ __forceinline__ void scale_row(u32 codes, const level_table& table, row_words<T>& word) {
  float v[4];
  float level[4];
  unpack_row<T>(word, v);
  look_up_row(codes, table, level);
  FURL_UNROLL
  for (int k = 0; k < 4; ++k) v[k] = keep_by_factor(mul_rn(v[k], level[k]), level[k]);
  pack_row<T>(v, word);
}

namespace kernel {

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
template <class T, int SearchBits, class Architectures>
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
template <class T, int SearchBits, class Architectures>
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
template <class T, class Architectures>
__global__ void __launch_bounds__(block_threads) pack_binary(masked_arrays<T> a, float threshold) {
  const u32 least = threshold_word<T>(threshold);
  for_each_masked_tile<false>(a, [&](const tile_fragment<T>& x, int count, i64, u32* word) {
    store_blob_word<0>(u64(word), encode_binary(x, count, least));
  });
}

/// Levels of codes.
template <class T, class Architectures>
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
template <class T, class Architectures>
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
template <class T, bool Scales, class Architectures>
__global__ void __launch_bounds__(block_threads) multiply_binary(masked_arrays<T> a, float level) {
  for_each_masked_tile<true>(a, [&](tile_fragment<T>& x, int, i64, const u32* word) {
    scale_binary<Scales>(load_blob_word<0>(u64(word)), level, x);
  });
}

}  // namespace kernel
}  // namespace furl

FURL_HIDDEN_END
