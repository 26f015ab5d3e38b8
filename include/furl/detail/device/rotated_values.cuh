// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE WARP. From rotated codes of 1 and 2 bits to values (FORMAT.md, R8); those of 3 and 4 bits
// join them after the columns. Until the last step these are integers, exact in any order of
// operations, and several to a word. The steps of coding are undone in the order in which they lie
// in the lanes: R2b and the columns of R2 by rows, in fields of 1 to 8 bits and then in halves of
// words; after an exchange the rows of R2 by columns.
//
// An integer v that is a sum or difference of n levels q = 2 code - M, with M = 2^bits - 1, is kept
// as u = (v + n M) / 2, which is 0 to n M, in a field of a word that is just wide enough. For
// v1 + v2 that is u1 + u2, for v1 - v2 it is u1 - u2 + n M.

#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/detail/device/intrinsics.cuh"
#include "furl/detail/device/pairs.cuh"
#include "furl/detail/device/rotation.cuh"
#include "furl/detail/number.hpp"
#include "furl/types.hpp"

namespace furl::detail {

// ---- R2b undone, but for the signs --------------------------------------------------------------

/// Mask of the lower of every two fields of Width bits.
template <int Width>
inline constexpr u32 lower_fields = Width == 1   ? 0x55555555u
                                    : Width == 2 ? 0x33333333u
                                                 : 0x0f0f0f0fu;

/// Fields of twice the width: the lower and the upper of every two.
template <int Width>
__device__ __forceinline__ void split_fields(u32 word, u32& lower, u32& upper) {
  lower = word & lower_fields<Width>;
  upper = word >> Width & lower_fields<Width>;
}

/// (a, b) becomes (a + b, a - b + bias) in all fields. Bias : n M in every field.
template <u32 Bias>
__device__ __forceinline__ void field_butterfly(u32& a, u32& b) {
  const u32 difference = a + Bias - b;
  a += b;
  b = difference;
}

/// The transform of a lane's codes over columns 4, 8 and 16 apart: byte k of word i is column
/// 4 i + k, 0 to 8 M.
template <int Bits>
__device__ __forceinline__ void transform_codes(const u32 (&plane)[Bits], u32 (&word)[8]) {
  u32 nibbles[4];
  if constexpr (Bits == 1) {
    u32 pairs[2];
    split_fields<1>(plane[0], pairs[0], pairs[1]);
    field_butterfly<0x55555555u>(pairs[0], pairs[1]);
    FURL_UNROLL
    for (int i = 0; i < 2; ++i) split_fields<2>(pairs[i], nibbles[i], nibbles[i + 2]);
  } else {
    // Both bits of every second code side by side. A sum of two needs a third.
    constexpr u32 low = lower_fields<1>;
    const u32 even = (plane[0] << 1 & ~low) | (plane[1] & low);
    const u32 odd = (plane[0] & ~low) | (plane[1] >> 1 & low);
    split_fields<2>(even, nibbles[0], nibbles[2]);
    split_fields<2>(odd, nibbles[1], nibbles[3]);
    field_butterfly<0x33333333u>(nibbles[0], nibbles[1]);
    field_butterfly<0x33333333u>(nibbles[2], nibbles[3]);
  }
  constexpr u32 levels = (1u << Bits) - 1u;  // M
  FURL_UNROLL
  for (int i = 0; i < 2; ++i) field_butterfly<2 * levels * 0x11111111u>(nibbles[i], nibbles[i + 2]);
  FURL_UNROLL
  for (int i = 0; i < 4; ++i) {
    split_fields<4>(nibbles[i], word[i], word[i + 4]);
    field_butterfly<4 * levels * 0x01010101u>(word[i], word[i + 4]);
  }
}

/// The transform of two of these words over columns 1 and 2 apart. Bytes are v / 2 + 128 then:
/// those of a are column 0 of a, of b, column 1 of a, of b; those of b are columns 2 and 3
/// likewise.
template <int Bits>
__device__ __forceinline__ void transform_bytes(u32& a, u32& b) {
  constexpr u32 levels = (1u << Bits) - 1u;  // M
  u32 even = select_bytes(a, b, 0x6420);
  u32 odd = select_bytes(a, b, 0x7531);
  field_butterfly<8 * levels * 0x01010101u>(even, odd);
  a = select_bytes(even, odd, 0x6420);
  b = select_bytes(even, odd, 0x7531);
  const u32 difference = a + 128u * 0x01010101u - b;
  a += b + (128u - 16u * levels) * 0x01010101u;
  b = difference;
}

// ---- The signs of R2b --------------------------------------------------------------------------

/// Where `mask` has set bits, 256 minus the bytes: that changes the sign of v. With 0 in place of
/// 1 in the bytes of `ones` it is 255 minus the bytes.
__device__ __forceinline__ u32 negate_bytes(u32 bytes, u32 mask, u32 ones) {
  return (bytes ^ mask) + (mask & ones);
}

/// Flips the signs of two words that transform_bytes has made, of a lane that has a row, with
/// `ones` as negate_bytes takes them.
__device__ __forceinline__ void flip_bytes(u32 signs_of_a, u32 signs_of_b, int row, u32 ones,
                                           u32& a, u32& b) {
  FURL_UNROLL
  for (int half = 0; half < 2; ++half) {  // columns 0 and 1, 2 and 3: their bits are 16 apart
    const u32 at_7_and_23 = rotate_left(signs_of_a, 7 - 2 * row - half);
    const u32 at_15_and_31 = rotate_left(signs_of_b, 15 - 2 * row - half);
    const u32 mask = select_byte_signs(at_7_and_23, at_15_and_31, 0xfad8);
    (half == 0 ? a : b) = negate_bytes(half == 0 ? a : b, mask, ones);
  }
}

// ---- R2 undone ---------------------------------------------------------------------------------

// From here on words hold two numbers as high * 65536 + low, modulo 2^32. Either may be negative:
// sums and differences of such words are those of the numbers nevertheless.

/// What eight bytes have added, in halves.
inline constexpr u32 bias_of_eight = 8 * 128 * 0x00010001u;

/// The bytes of two words that transform_bytes has made: halves of columns 0 and 1, and 2 and 3.
__device__ __forceinline__ void spread_bytes(u32 a, u32 b, u32 (&of_a)[2], u32 (&of_b)[2]) {
  of_a[0] = a & 0x00ff00ffu;             // bytes 0 and 2
  of_b[0] = select_bytes(a, 0, 0x4341);  // bytes 1 and 3
  of_a[1] = b & 0x00ff00ffu;
  of_b[1] = select_bytes(b, 0, 0x4341);
}

/// From codes to pairs of columns by rows, but for the transforms of R2 over columns 1 and 2 apart.
template <int Bits>
__device__ __forceinline__ void transform_columns(const u32 (&plane)[Bits],
                                                  const u32 (&second_signs)[warp_threads],
                                                  u32 (&word)[8][2]) {
  u32 bytes[8];
  transform_codes<Bits>(plane, bytes);
  u32 signs[8];
  load_signs(second_signs, signs);
  const int row = lane_index() % 8;
  FURL_UNROLL
  for (int i = 0; i < 8; i += 2) {
    transform_bytes<Bits>(bytes[i], bytes[i + 1]);
    flip_bytes(signs[i], signs[i + 1], row, 0x01010101u, bytes[i], bytes[i + 1]);
    spread_bytes(bytes[i], bytes[i + 1], word[i], word[i + 1]);
  }
  transform_first(word);  // columns 4, 8 and 16 apart
  // A constant goes to the first element of a transform alone.
  word[0][0] -= bias_of_eight;
  word[0][1] -= bias_of_eight;
}

/// Turns pairs of columns by rows into pairs by columns: word[i][w] has columns 2 w and 2 w + 1.
template <int Words>
__device__ __forceinline__ void exchange_pairs(u32 (&word)[8][2], u32 (&exchange)[Words]) {
  constexpr int rounds = Words >= decoding_words(1) ? 1 : 2;
  static_assert(Words >= decoding_words(rounds), "too few words");
  constexpr int count = 2 / rounds;  // words at once
  constexpr int pitch = decoding_words(rounds) / rows_per_tile;
  const int lane = lane_index();
  u32* const by_rows = exchange + lane % 8 * pitch + lane / 8 * (8 * count);
  const u32* const by_columns = exchange + count * lane;
  FURL_UNROLL
  for (int round = 0; round < rounds; ++round) {
    __syncwarp();
    FURL_UNROLL
    for (int i = 0; i < 8; i += 4 / count) {
      u32 four[4];
      FURL_UNROLL
      for (int j = 0; j < 4; ++j) four[j] = word[i + j / count][round + j % count];
      put_words(by_rows + i * count, four);
    }
    __syncwarp();
    FURL_UNROLL
    for (int row = 0; row < 8; ++row) {
      u32 loaded[count];
      get_words(by_columns + row * pitch, loaded);
      FURL_UNROLL
      for (int j = 0; j < count; ++j) word[row][round + j] = loaded[j];
    }
  }
}

/// A tile by columns as v / 2, or v / 4 of codes of 3 and 4 bits, but for the transform over
/// columns 1 apart: of the halves of a word the sum is the first column, the difference the second.
/// Halves have 32768 added.
struct rotated_integers {
  u32 word[8][2];  // by row; columns 0 and 1, and 2 and 3
};
inline constexpr u32 bias_of_halves = 32768;

/// From what transform_columns has made.
/// Threads : one warp, all lanes. Shared : exchange, of the warp. Sync : within the warp.
template <int Words>
__device__ __forceinline__ void restore_integers(rotated_integers& v, u32 (&exchange)[Words]) {
  exchange_pairs(v.word, exchange);
  // What is added to the first element of a transform is added to all that come out of it.
  v.word[0][0] += bias_of_halves << 16 | bias_of_halves;
  FURL_UNROLL
  for (int r = 0; r < 8; ++r) butterfly(v.word[r][0], v.word[r][1]);  // columns 2 apart
  transform_first(v.word);                                            // rows
}

}  // namespace furl::detail
