// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The random bits of a tile (FORMAT.md, A6), and the signs of its rotations (R1), on the host.

#include "furl/config.hpp"
#include "furl/detail/quantize.hpp"
#include "furl/detail/rotated.hpp"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

FURL_HIDDEN_BEGIN

namespace furl::host::detail {

/// Rows 4 * half .. 4 * half + 3 of a tile's random words, four columns to a word.
inline void random_half_portable(u64 tile, u32 half, random_key key, u32* rows) {
  for (u32 quad = 0; quad < words_per_row; ++quad) {
    const philox_block block = random_words(tile, half, quad, key);
    for (u32 row = 0; row < 4; ++row) rows[row * words_per_row + quad] = block.word[row];
  }
}

#if defined(__AVX2__)

/// Four Philox counters, each word in the low half of a 64-bit lane, where the 32 x 32 multiply
/// takes its factors. The high halves hold what is left of products and are never read.
struct philox_lanes {
  __m256i word[4];
};

inline void philox_round_lanes(philox_lanes& c, __m256i key_0, __m256i key_1) {
  const __m256i product_0 =
      _mm256_mul_epu32(c.word[0], _mm256_set1_epi64x(i64(philox_multiplier_0)));
  const __m256i product_1 =
      _mm256_mul_epu32(c.word[2], _mm256_set1_epi64x(i64(philox_multiplier_1)));
  const __m256i high_0 = _mm256_srli_epi64(product_0, 32);
  const __m256i high_1 = _mm256_srli_epi64(product_1, 32);
  c.word[0] = _mm256_xor_si256(high_1, _mm256_xor_si256(c.word[1], key_0));
  c.word[2] = _mm256_xor_si256(high_0, _mm256_xor_si256(c.word[3], key_1));
  c.word[1] = product_1;
  c.word[3] = product_0;
}

/// As random_half_portable, which compilers turn into twice the instructions.
inline void random_half_avx2(u64 tile, u32 half, random_key key, u32* rows) {
  const u64 m = 64u * tile + 32u * half;  // a multiple of 32: adding a column carries nothing
  for (u32 quad = 0; quad < words_per_row; quad += 8) {
    const __m256i first = _mm256_set1_epi64x(i64(u32(m)) + i64(quad));
    philox_lanes even{{_mm256_add_epi64(first, _mm256_setr_epi64x(0, 2, 4, 6)),
                       _mm256_set1_epi64x(i64(m >> 32)), _mm256_set1_epi64x(i64(key.offset)),
                       _mm256_set1_epi64x(i64(key.offset >> 32))}};
    philox_lanes odd = even;
    odd.word[0] = _mm256_add_epi64(first, _mm256_setr_epi64x(1, 3, 5, 7));
    u32 key_0 = u32(key.seed);
    u32 key_1 = u32(key.seed >> 32);
    FURL_UNROLL
    for (int round = 0; round < philox_rounds; ++round) {
      philox_round_lanes(even, _mm256_set1_epi64x(i64(key_0)), _mm256_set1_epi64x(i64(key_1)));
      philox_round_lanes(odd, _mm256_set1_epi64x(i64(key_0)), _mm256_set1_epi64x(i64(key_1)));
      key_0 += philox_weyl_0;
      key_1 += philox_weyl_1;
    }
    for (int row = 0; row < 4; ++row) {
      const __m256i words =
          _mm256_blend_epi32(even.word[row], _mm256_slli_epi64(odd.word[row], 32), 0xaa);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(rows + row * words_per_row + quad), words);
    }
  }
}

#endif

/// Rows 4 * half .. 4 * half + 3 of a tile's random words, four columns to a word.
inline void random_half(u64 tile, u32 half, random_key key, u32* rows) {
#if defined(__AVX2__)
  random_half_avx2(tile, half, key, rows);
#else
  random_half_portable(tile, half, key, rows);
#endif
}

/// The 8 random bits of every element of a tile, in order, four to a word.
inline void random_tile(u64 tile, random_key key, u32 (&words)[rows_per_tile * words_per_row]) {
  for (u32 half = 0; half < 2; ++half)
    random_half(tile, half, key, words + half * 4 * words_per_row);
  // From the order of columns in a word to memory order: swap the middle bytes.
  for (u32& w : words) w = (w & 0xff0000ffu) | ((w & 0xff00u) << 8) | ((w >> 8) & 0xff00u);
}

/// The signs of both rotations of a tile, a word for every four columns (FORMAT.md, R1 and R2b).
/// Four tiles share their counters, so tiles in order are cheapest.
class tile_signs {
 public:
  explicit tile_signs(random_key key) : key_(key) {}

  void move_to(i64 tile) {
    row_ = int(tile % 4);
    if (tile / 4 == four_) return;
    four_ = tile / 4;
    random_half(u64(four_) / 2, u32(four_ % 2), key_, first_);
    random_half(u64(four_) / 2 + second_rotation_tile, u32(four_ % 2), key_, second_);
  }
  /// 32 words each.
  const u32* of_first() const { return first_ + row_ * words_per_row; }
  const u32* of_second() const { return second_ + row_ * words_per_row; }

 private:
  const random_key key_;
  i64 four_ = -1;  // whose words are at hand
  int row_ = 0;
  u32 first_[4 * words_per_row];
  u32 second_[4 * words_per_row];
};

}  // namespace furl::host::detail

FURL_HIDDEN_END
