// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE THREAD. The random words of tiles, with what they have in common worked out once.

#include "furl/config.hpp"
#include "furl/detail/quantize.hpp"
#include "furl/types.hpp"

namespace furl::detail {

/// What the random words of a tensor's tiles have in common. Of a counter only the lowest word
/// differs, if tiles are below max_tiles: so a part of the first three rounds is the same for all.
class tile_random {
 public:
  static constexpr i64 max_tiles = i64(1) << 26;

  FURL_HD explicit tile_random(const random_key& key) {
    const u32 seed[2] = {u32(key.seed), u32(key.seed >> 32)};
    FURL_UNROLL
    for (u32 round = 2; round < u32(philox_rounds); ++round) {
      key_0_[round - 2] = seed[0] + round * philox_weyl_0;
      key_1_[round - 2] = seed[1] + round * philox_weyl_1;
    }
    const wide_product first = multiply_wide(philox_multiplier_1, u32(key.offset));
    const wide_product second = multiply_wide(philox_multiplier_0, first.high ^ seed[0]);
    first_ = u32(key.offset >> 32) ^ seed[1];
    second_[0] = first.low ^ (seed[0] + philox_weyl_0);
    second_[1] = second.high ^ (seed[1] + philox_weyl_1);
    key_1_[0] ^= second.low;
  }

  /// As random_words. Pre: tile is below max_tiles.
  __device__ __forceinline__ philox_block words(u32 tile, u32 half, u32 column_quad) const {
    const wide_product a =
        multiply_wide(philox_multiplier_0, 64u * tile + (32u * half + column_quad));
    const wide_product b = multiply_wide(philox_multiplier_1, a.high ^ first_);
    philox_block block{{b.high ^ second_[0], b.low, a.low ^ second_[1], 0}};
    FURL_UNROLL
    for (int round = 2; round < philox_rounds; ++round)
      block = philox_round(block, key_0_[round - 2], key_1_[round - 2]);
    return block;
  }

 private:
  // Words of the key, and what of the constant words of counters meets them in the same sum.
  u32 first_;                     // of the first round, for the third word
  u32 second_[2];                 // of the second round, for the first and the third word
  u32 key_0_[philox_rounds - 2];  // from the third round on
  u32 key_1_[philox_rounds - 2];  // likewise; with the fourth word of the second round
};

}  // namespace furl::detail
