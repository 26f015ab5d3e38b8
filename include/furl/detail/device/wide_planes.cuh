// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE THREAD. Between planes of bits and words of codes of 4 bits (FORMAT.md, R7).

#include "furl/block/codes.cuh"
#include "furl/config.hpp"
#include "furl/types.hpp"

namespace furl::detail {

/// The bits of one word where a mask has them set, of the other elsewhere.
__device__ __forceinline__ u32 merge_bits(u32 mask, u32 where_set, u32 elsewhere) {
  u32 r;
  asm("lop3.b32 %0, %1, %2, %3, 0xCA;" : "=r"(r) : "r"(mask), "r"(where_set), "r"(elsewhere));
  return r;
}

/// Exchanges the bits of a that lie above those of a mask by some distance with those of b that the
/// mask has.
template <int Distance>
__device__ __forceinline__ void exchange_bits(u32 lower, u32& a, u32& b) {
  const u32 first = merge_bits(lower, a, b << Distance);
  b = merge_bits(lower, a >> Distance, b);
  a = first;
}

/// Bit 4 n + b of word w becomes bit 4 n + w of word b. That is its own inverse, and makes planes,
/// the lowest first, of words of codes: nibble n of word w is the code whose bits are 4 n + w of
/// the planes.
__device__ __forceinline__ void transpose_nibbles(u32 (&word)[4]) {
  exchange_bits<2>(0x33333333u, word[0], word[2]);
  exchange_bits<2>(0x33333333u, word[1], word[3]);
  exchange_bits<1>(0x55555555u, word[0], word[1]);
  exchange_bits<1>(0x55555555u, word[2], word[3]);
}

/// Stores the planes of a lane's codes of 3 or 4 bits, of which four are given, the highest first.
__device__ __forceinline__ void store_wide(u64 at, const u32 (&plane)[4], int bits) {
  if (bits == 3) {
    store_words(at, {plane[1], plane[2], plane[3]});
  } else {
    store_words(at, plane);
  }
}

/// Loads the planes of a lane's codes of 4 bits, or of 3 as codes of 4 bits: 4 is added to each
/// code, so that it has the level that it stands for.
__device__ __forceinline__ void load_wide(u64 at, u32 (&plane)[4], int bits) {
  if (bits == 3) {
    u32 of_three[3];
    load_words(at, of_three);
    plane[0] = of_three[0];
    plane[1] = ~of_three[0];
    plane[2] = of_three[1];
    plane[3] = of_three[2];
  } else {
    load_words(at, plane);
  }
}

}  // namespace furl::detail
