// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE WARP. Values to codes by a codebook, and back to levels (README, A9).

#include "furl/block/codes.cuh"
#include "furl/block/quantize_pack.cuh"
#include "furl/block/selection.cuh"
#include "furl/block/threshold_search.cuh"
#include "furl/block/tile.cuh"
#include "furl/codebook.hpp"
#include "furl/config.hpp"
#include "furl/element/philox.hpp"
#include "furl/element/quantize.hpp"

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
    const float inverse = div(1.0f, sub(book.level[i + 1], book.level[i]));
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
    for (int k = 0; k < 4; ++k) inside.word[row][k] = clamp(inside.word[row][k], first, last);
  }
  encode_nearest<Bits>(inside, tree, codes);
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
        y[k] = fma(sub(inside.word[row][k], begin.x), begin.y, 32768.0f);
      }
      const detail::fixed_row fixed{select_bytes(y[0], y[1], 0x5410),
                                    select_bytes(y[2], y[3], 0x5410)};
      codes[row] += detail::round_row(fixed, random.word[r]);  // at most 255 in each byte
    }
  }
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
  for (int k = 0; k < 4; ++k) v[k] = keep_by_factor(mul(v[k], level[k]), level[k]);
  pack_row<T>(v, word);
}

}  // namespace furl

FURL_HIDDEN_END
