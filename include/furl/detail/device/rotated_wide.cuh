// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Rotated codes of 3 and 4 bits (FORMAT.md, R3 to R8), as rotated_codes.cuh and rotated_values.cuh
// have those of 1 and 2. One program makes both: only its constants differ. Codes of 3 bits are
// read as some of 4: their levels -7 to 7 are those of the codes 4 to 11.

#include "furl/block/codes.cuh"
#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/detail/device/intrinsics.cuh"
#include "furl/detail/device/rotated_codes.cuh"
#include "furl/detail/device/rotated_values.cuh"
#include "furl/detail/device/rotation.cuh"
#include "furl/detail/number.hpp"
#include "furl/detail/quantize.hpp"
#include "furl/detail/rotated.hpp"
#include "furl/types.hpp"

namespace furl::detail {

// ---- ONE THREAD. Between planes of bits and words of codes of 4 bits -------------------------

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

// ---- ONE WARP. From the elements of a tile to its codes and the scales of its four blocks ----

/// The codes of a rotated tile by rows.
struct coded_levels {
  float projected;  // sum over the block of elements times their levels
  u32 nibbles[4];   // the lane's codes, as transpose_nibbles takes them
};

__device__ __forceinline__ coded_levels code_levels(const float (&y)[8][4], float inverse,
                                                    float highest) {
  // A code, times a power of 16, is added to a number to which 2^23 was added before, so that the
  // pattern of that ends in four codes.
  float halves[4][2];
  float chain[8];
  FURL_UNROLL
  for (int w = 0; w < 4; ++w) halves[w][0] = halves[w][1] = 0x1p23f;
  FURL_UNROLL
  for (int i = 0; i < 8; ++i) {
    FURL_UNROLL
    for (int m = 0; m < 4; ++m) {
      const int bit = code_bit(8 * m + i);
      const float x = y[2 * m + i / 4][i % 4];
      const float code = code_at(place_in_range(x, inverse), highest);
      const float level = level_of(code, highest);
      chain[i] = m == 0 ? mul_rn(x, level) : fma_rn(x, level, chain[i]);
      float& half = halves[bit % 4][bit / 16];
      half = fma_rn(code, float(1 << bit / 4 % 4 * 4), half);
    }
  }
  coded_levels out;
  out.projected = sum_chains(chain);
  FURL_UNROLL
  for (int w = 0; w < 4; ++w) out.nibbles[w] = select_bytes(halves[w][0], halves[w][1], 0x5410);
  return out;
}

/// Codes of a rotated tile by rows, as those of 4 bits.
/// Threads : one warp, all lanes with the same bits, 3 or 4.
/// Sync    : within the warp.
__device__ __forceinline__ rotated_codes<4> quantize_wide(const float (&y)[8][4], int bits) {
  const float energy = sum_of_squares(y);
  coded_levels coded = code_levels(y, inverse_range(energy, bits), bits == 3 ? 7.0f : 15.0f);
  const u32 scale = block_scale(energy, coded.projected);
  const u32 mask = is_scale(scale) ? ~0u : 0u;
  transpose_nibbles(coded.nibbles);
  rotated_codes<4> out;
  FURL_UNROLL
  for (int plane = 0; plane < 4; ++plane) out.plane[plane] = coded.nibbles[3 - plane] & mask;
  out.scale = scale;
  return out;
}

// ---- ONE WARP. From codes to values ----------------------------------------------------------
// A sum of 32 levels divided by 2, v / 2 = u - 240, takes 9 bits. But over all columns of a row its
// last bit is the same: whether the sum of the row's codes is odd, since a change of sign does not
// change that. So bytes have 128 + the lower integer of v / 4, and the row is called odd if that
// lacks a half.

/// The transform of a lane's codes over columns 4, 8 and 16 apart: byte k of word i is column
/// 4 i + k, 0 to 120.
__device__ __forceinline__ void transform_wide_codes(const u32 (&plane)[4], u32 (&word)[8]) {
  u32 nibbles[4] = {plane[3], plane[2], plane[1], plane[0]};
  transpose_nibbles(nibbles);
  FURL_UNROLL
  for (int i = 0; i < 4; ++i) split_fields<4>(nibbles[i], word[i], word[i + 4]);
  FURL_UNROLL
  for (int i = 0; i < 8; i += 2) field_butterfly<15 * 0x01010101u>(word[i], word[i + 1]);
  FURL_UNROLL
  for (int i = 0; i < 4; ++i) {
    const int even = i + (i & 2);
    field_butterfly<30 * 0x01010101u>(word[even], word[even + 2]);
  }
  FURL_UNROLL
  for (int i = 0; i < 4; ++i) field_butterfly<60 * 0x01010101u>(word[i], word[i + 4]);
}

/// (a + b) / 2 of all bytes, rounded down. odd : in each byte, whether a + b is odd.
__device__ __forceinline__ u32 halve_sums(u32 a, u32 b, u32 odd) {
  return (a & b) + (xor_of_three(a, b, odd) >> 1);
}

/// The transform of two of these words over columns 1 and 2 apart. Bytes are 128 + v / 4 then,
/// rounded down, in the order of transform_bytes.
__device__ __forceinline__ void transform_wide_bytes(u32 odd, u32& a, u32& b) {
  u32 even_columns = select_bytes(a, b, 0x6420);
  u32 odd_columns = select_bytes(a, b, 0x7531);
  field_butterfly<120 * 0x01010101u>(even_columns, odd_columns);
  // Up to 240: with 8 added to both, half of the sum is 128 + v / 4, and so is half of the
  // difference with 256 added, which is a plus what is left of 256.
  a = select_bytes(even_columns, odd_columns, 0x6420) + 8 * 0x01010101u;
  b = select_bytes(even_columns, odd_columns, 0x7531) + 8 * 0x01010101u;
  const u32 difference = halve_sums(a, 0x01010100u - b, odd);
  a = halve_sums(a, b, odd);
  b = difference;
}

/// As transform_columns, of four times the integers.
__device__ __forceinline__ void transform_wide_columns(const u32 (&plane)[4],
                                                       const u32 (&second_signs)[warp_threads],
                                                       u32 (&word)[8][2]) {
  constexpr u32 ones = 0x01010101u;
  u32 bytes[8];
  transform_wide_codes(plane, bytes);
  u32 signs[8];
  load_signs(second_signs, signs);
  const u32 odd = __popc(plane[3]) % 2 != 0 ? ones : 0;
  const int row = lane_index() % 8;
  FURL_UNROLL
  for (int i = 0; i < 8; i += 2) {
    transform_wide_bytes(odd, bytes[i], bytes[i + 1]);
    // Minus the lower integer minus a half is the same of the other sign: without an odd row's one.
    flip_bytes(signs[i], signs[i + 1], row, ones ^ odd, bytes[i], bytes[i + 1]);
    spread_bytes(bytes[i], bytes[i + 1], word[i], word[i + 1]);
  }
  transform_first(word);
  const u32 halves = (odd & 0x00010001u) << 2;  // of the eight columns of an odd row
  word[0][0] += halves - bias_of_eight;
  word[0][1] += halves - bias_of_eight;
}

}  // namespace furl::detail
