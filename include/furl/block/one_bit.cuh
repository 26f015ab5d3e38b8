// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE WARP. Codes of one bit (README, A9): masks, signs and what is multiplied by them. A row of
// 16-bit elements is compared and masked in pairs.

#include "furl/block/codes.cuh"
#include "furl/block/intrinsics.cuh"
#include "furl/block/pairs.cuh"
#include "furl/block/selection.cuh"
#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/dtype.hpp"
#include "furl/element/arithmetic.hpp"

FURL_HIDDEN_BEGIN

namespace furl {

namespace detail {

/// Rows from Row on, behind those in `word`.
template <int Row, class T>
__device__ __forceinline__ u32 encode_binary_rows(const tile_fragment<T>& x, u32 threshold,
                                                  u32 word) {
  if constexpr (sizeof(T) == 4) {
    const float least = float_of(threshold);
    const u32 first = u32(minus_at_least(x.word[Row][0], least));
    word = Row == 0 ? first & 1u : and_or<0x00000001u << Row>(first, word);
    word = and_or<0x00000100u << Row>(u32(minus_at_least(x.word[Row][1], least)), word);
    word = and_or<0x00010000u << Row>(u32(minus_at_least(x.word[Row][2], least)), word);
    word = and_or<0x01000000u << Row>(u32(minus_at_least(x.word[Row][3], least)), word);
  } else {
    const u32 row = select_bytes(at_least_pair<T>(x.word[Row][0], threshold),
                                 at_least_pair<T>(x.word[Row][1], threshold), 0x6420);
    word = Row == 0 ? row & 0x01010101u : and_or<0x01010101u << Row>(row, word);
  }
  if constexpr (Row + 1 < rows_per_tile) {
    return encode_binary_rows<Row + 1>(x, threshold, word);
  } else {
    return word;
  }
}

template <int Row, bool Scales, class T>
__device__ __forceinline__ void scale_binary_rows(u32 word, float level, tile_fragment<T>& x) {
  if constexpr (Row < rows_per_tile) {
    auto& row = x.word[Row];
    if constexpr (sizeof(T) == 4) {
      row[0] = mul(keep_by_bit<Row>(row[0], word), level);
      row[1] = mul(keep_by_bit<Row + 8>(row[1], word), level);
      row[2] = mul(keep_by_bit<Row + 16>(row[2], word), level);
      row[3] = mul(keep_by_bit<Row + 24>(row[3], word), level);
    } else {
      if constexpr (Scales) {
        float v[4];
        unpack_row<T>(row, v);
        for (float& element : v) element = mul(element, level);
        pack_row<T>(v, row);
      } else {
        for (u32& pair : row)
          pair = max_nan_pair<T>(pair, minus_infinities<T>);  // NaN is made 7fff
      }
      const u32 signs = word << (rows_per_tile - 1 - Row);
      row[0] &= replicate_signs<0x9988>(signs);
      row[1] &= replicate_signs<0xbbaa>(signs);
    }
    scale_binary_rows<Row + 1, Scales>(word, level, x);
  }
}

}  // namespace detail

/// Codes of one bit of a tile, 1 where x is at least the threshold, 0 also for NaN.
/// Threads : one warp, all lanes; x is each lane's own, of which `count` elements are present.
/// Shapes  : threshold : as threshold_word has it.
/// Shared  : none. Sync : none.
/// Result  : bit r of byte k of the word is that of row r and column 4 * lane + k, as in the blob.
template <class T>
__device__ __forceinline__ u32 encode_binary(const tile_fragment<T>& x, int count, u32 threshold) {
  const u32 word = detail::encode_binary_rows<0>(x, threshold, 0);
  return count < tile_elements ? word & present_bits(count) : word;
}

/// Multiplies by 0 or `level`, as the one-bit codes of a lane say. What is multiplied by 0 becomes
/// +0, whatever it was.
/// Threads : one warp, all lanes; word and x are each lane's own, the word as encode_binary has it.
/// Pre     : level is not 0; if not Scales, it is 1, which takes 16-bit types fewer instructions.
template <bool Scales, class T>
__device__ __forceinline__ void scale_binary(u32 word, float level, tile_fragment<T>& x) {
  detail::scale_binary_rows<0, Scales>(word, level, x);
}

}  // namespace furl

FURL_HIDDEN_END
