// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE THREAD. Philox4x32, the counter-based generator of Random123 (Salmon et al., "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011), and the map from an element to its 8 random bits
// (README, A6). Stateless: the result depends on seed, offset and the element's index alone.

#include "furl/config.hpp"

namespace furl {

/// A random stream. Every compression takes another pair; offsets need only differ.
struct random_key {
  u64 seed = 0;    // the key of Philox
  u64 offset = 0;  // the upper half of its counter
};

/// A counter, or the four random words that come from it.
struct philox_block {
  u32 word[4];  // the least significant first
};

/// @{
/// Of Philox4x32 (Salmon et al., SC 2011).
inline constexpr int philox_rounds = 7;
inline constexpr u32 philox_multiplier_0 = 0xD2511F53u;
inline constexpr u32 philox_multiplier_1 = 0xCD9E8D57u;
inline constexpr u32 philox_weyl_0 = 0x9E3779B9u;
inline constexpr u32 philox_weyl_1 = 0xBB67AE85u;
/// @}

/// A product of two words.
struct wide_product {
  u32 low;   // the lower 32 bits
  u32 high;  // the upper ones
};

/// a * b.
FURL_HD wide_product multiply_wide(u32 a, u32 b) {
#if defined(__CUDA_ARCH__)
  // Without this, compilers keep both halves in 64-bit registers and mask them.
  wide_product p;
  asm("{\n\t.reg .b64 product;\n\t"
      "mul.wide.u32 product, %2, %3;\n\t"
      "mov.b64 {%0, %1}, product;\n\t}"
      : "=r"(p.low), "=r"(p.high)
      : "r"(a), "r"(b));
  return p;
#else
  const u64 product = u64(a) * b;
  return {u32(product), u32(product >> 32)};
#endif
}

/// a ^ b ^ c.
FURL_HD u32 xor_of_three(u32 a, u32 b, u32 c) {
#if defined(__CUDA_ARCH__)
  u32 r;
  asm("lop3.b32 %0, %1, %2, %3, 0x96;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
  return r;
#else
  return a ^ b ^ c;
#endif
}

/// One round of Philox4x32, with the keys of that round.
FURL_HD philox_block philox_round(philox_block c, u32 key_0, u32 key_1) {
  const wide_product p0 = multiply_wide(philox_multiplier_0, c.word[0]);
  const wide_product p1 = multiply_wide(philox_multiplier_1, c.word[2]);
  return {{xor_of_three(p1.high, c.word[1], key_0), p1.low, xor_of_three(p0.high, c.word[3], key_1),
           p0.low}};
}

/// The random words of a counter, under a key.
template <int Rounds = philox_rounds>
FURL_HD philox_block philox4x32(philox_block counter, u32 key_0, u32 key_1) {
  for (int round = 0; round < Rounds; ++round) {
    counter = philox_round(counter, key_0, key_1);
    key_0 += philox_weyl_0;
    key_1 += philox_weyl_1;
  }
  return counter;
}

/// The counter block of four columns of rows 4 * half .. 4 * half + 3 of a tile. Word j of its
/// output serves row 4 * half + j.
/// Pre: half is 0 or 1; column_quad (column / 4) is 0..31.
FURL_HD philox_block random_words(u64 tile, u32 half, u32 column_quad, random_key key) {
  const u64 m = 64u * tile + 32u * half + column_quad;
  return philox4x32({{u32(m), u32(m >> 32), u32(key.offset), u32(key.offset >> 32)}}, u32(key.seed),
                    u32(key.seed >> 32));
}

/// The 8 random bits of the element at `index`, from the start of the tensor.
FURL_HD u32 random_bits(u64 index, random_key key) {
  const u32 row = u32(index % tile_elements) / row_elements;
  const u32 column = u32(index % row_elements);
  const philox_block block = random_words(index / tile_elements, row / 4, column / 4, key);
  // Columns 4l .. 4l+3 take bytes 0, 2, 1, 3, so that one mask and one shift serve two at once.
  const u32 byte = ((column & 1u) << 1) | ((column >> 1) & 1u);
  return (block.word[row & 3u] >> (8u * byte)) & 0xffu;
}

}  // namespace furl
