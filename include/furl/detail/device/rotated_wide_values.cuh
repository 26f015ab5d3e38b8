// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE WARP. What rotated_values.cuh does for codes of 1 and 2 bits, for those of 4 bits (FORMAT.md,
// R8). Codes of 3 bits are among these: their levels -7 to 7 are those of the codes 4 to 11.
//
// A sum of 32 levels divided by 2, v / 2 = u - 240, takes 9 bits. But over all columns of a row its
// last bit is the same: whether the sum of the row's codes is odd, since a change of sign does not
// change that. So bytes have 128 + the lower integer of v / 4, and the row is called odd if that
// lacks a half.

#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/detail/device/intrinsics.cuh"
#include "furl/detail/device/rotated_values.cuh"
#include "furl/detail/device/rotation.cuh"
#include "furl/detail/device/wide_planes.cuh"
#include "furl/detail/quantize.hpp"
#include "furl/types.hpp"

namespace furl::detail {

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
