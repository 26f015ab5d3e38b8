// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE GRID. Dropout (README, A10): one warp a tile.

#include "furl/block/codes.cuh"
#include "furl/block/intrinsics.cuh"
#include "furl/block/selection.cuh"
#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/element/dropout.hpp"
#include "furl/element/philox.hpp"
#include "furl/kernel/compress.cuh"
#include "furl/kernel/launch.cuh"
#include "furl/kernel/masked.cuh"

FURL_HIDDEN_BEGIN

namespace furl {

namespace detail {

/// -1 where 16 random bits, the upper ones of `bits`, are at least the threshold, else 0.
__device__ __forceinline__ u32 minus_kept(u32 bits, u32 threshold) {
  u32 r;
  asm("set.ge.u32.u32 %0, %1, %2;" : "=r"(r) : "r"(bits), "r"(threshold << 16));
  return r;
}

/// Row Row of a tile: its random bytes, high and low, decide what is kept.
template <int Row, class T>
__device__ __forceinline__ u32 drop_row(u32 high, u32 low, const dropout_rate& rate, u32 word,
                                        tile_fragment<T>& x) {
  const u32 first_pair = select_bytes(low, high, 0x6240);  // columns 0 and 1: bytes 0 and 2
  const u32 second_pair = select_bytes(low, high, 0x7351);
  const u32 kept[4] = {minus_kept(first_pair << 16, rate.threshold),
                       minus_kept(first_pair & 0xffff0000u, rate.threshold),
                       minus_kept(second_pair << 16, rate.threshold),
                       minus_kept(second_pair & 0xffff0000u, rate.threshold)};
  float v[4];
  unpack_row<T>(x.word[Row], v);
  FURL_UNROLL
  for (int k = 0; k < 4; ++k) v[k] = mul(keep_by_mask(v[k], kept[k]), rate.scale);
  pack_row<T>(v, x.word[Row]);
  word = and_or<0x00000001u << Row>(kept[0], word);
  word = and_or<0x00000100u << Row>(kept[1], word);
  word = and_or<0x00010000u << Row>(kept[2], word);
  return and_or<0x01000000u << Row>(kept[3], word);
}

}  // namespace detail

/// Drops and scales the elements of a tile.
/// Threads : one warp, all lanes; x is each lane's own, of which `count` elements are present.
/// Shapes  : tile : its index in the tensor.
/// Shared  : none. Sync : none.
/// Result  : the lane's mask of what is kept, as the blob of one-bit codes has it; x, replaced.
template <class T>
__device__ __forceinline__ u32 drop_tile(i64 tile, int count, const dropout_rate& rate,
                                         random_key key, tile_fragment<T>& x) {
  const u32 lane = u32(lane_index());
  philox_block high = random_words(u64(tile), 0, lane, key);
  philox_block low = random_words(u64(tile) + low_byte_tiles, 0, lane, key);
  u32 word = detail::drop_row<0>(high.word[0], low.word[0], rate, 0u, x);
  word = detail::drop_row<1>(high.word[1], low.word[1], rate, word, x);
  word = detail::drop_row<2>(high.word[2], low.word[2], rate, word, x);
  word = detail::drop_row<3>(high.word[3], low.word[3], rate, word, x);
  high = random_words(u64(tile), 1, lane, key);
  low = random_words(u64(tile) + low_byte_tiles, 1, lane, key);
  word = detail::drop_row<4>(high.word[0], low.word[0], rate, word, x);
  word = detail::drop_row<5>(high.word[1], low.word[1], rate, word, x);
  word = detail::drop_row<6>(high.word[2], low.word[2], rate, word, x);
  word = detail::drop_row<7>(high.word[3], low.word[3], rate, word, x);
  return count < tile_elements ? word & present_bits(count) : word;
}

namespace kernel {

/// HasMask : whether what is kept is stored too.
template <class T, bool HasMask>
__global__ void __launch_bounds__(block_threads)
    dropout(masked_arrays<T> a, dropout_rate rate, key_argument key_source) {
  const random_key key = key_source.get();
  for_each_masked_tile<true>(a, [&](tile_fragment<T>& x, int count, i64 tile, u32* word) {
    const u32 kept = drop_tile(tile, count, rate, key, x);
    if constexpr (HasMask) store_word(word, kept);
  });
}

}  // namespace kernel
}  // namespace furl

FURL_HIDDEN_END
