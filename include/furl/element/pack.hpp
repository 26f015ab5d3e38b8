// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE THREAD. Packing of columns (README, Format, "Codes"): the 8 codes of a column become `Bits`
// bytes, row 0 in the lowest bits. Four neighbouring columns are handled at once, one per byte of a
// word, so that every operation serves four codes and every width costs about the same.

#include "furl/config.hpp"

namespace furl {

/// A byte repeated in all four columns of a word.
FURL_HD constexpr u32 in_each_byte(u32 byte) {
  return byte * 0x01010101u;
}

/// A mask of `count` bits, 0..31.
FURL_HD constexpr u32 low_bits(int count) {
  return (1u << count) - 1u;
}

/// Packs four columns. codes[r] holds row r's code of column c in byte c; byte k of the packed
/// column c goes to byte c of packed[k].
/// Pre: every code is below 2^Bits.
template <int Bits>
FURL_HD void pack_columns(const u32 (&codes)[rows_per_tile], u32 (&packed)[Bits]) {
  static_assert(Bits >= 1 && Bits <= max_bits, "codes have 1 to 8 bits");
  FURL_UNROLL
  for (int k = 0; k < Bits; ++k) packed[k] = 0;
  FURL_UNROLL
  for (int row = 0; row < rows_per_tile; ++row) {
    const int byte = row * Bits / 8;
    const int shift = row * Bits % 8;
    const int fitting = 8 - shift;  // bits of the code that the byte has room for
    if (Bits <= fitting) {
      packed[byte] |= codes[row] << shift;
    } else {
      packed[byte] |= (codes[row] & in_each_byte(low_bits(fitting))) << shift;
      packed[byte + 1] |= (codes[row] >> fitting) & in_each_byte(low_bits(Bits - fitting));
    }
  }
}

/// The inverse of pack_columns.
template <int Bits>
FURL_HD void unpack_columns(const u32 (&packed)[Bits], u32 (&codes)[rows_per_tile]) {
  static_assert(Bits >= 1 && Bits <= max_bits, "codes have 1 to 8 bits");
  FURL_UNROLL
  for (int row = 0; row < rows_per_tile; ++row) {
    const int byte = row * Bits / 8;
    const int shift = row * Bits % 8;
    const int fitting = 8 - shift;
    if (Bits <= fitting) {
      codes[row] = (packed[byte] >> shift) & in_each_byte(low_bits(Bits));
    } else {
      codes[row] = (packed[byte] >> shift) & in_each_byte(low_bits(fitting));
      codes[row] |= (packed[byte + 1] & in_each_byte(low_bits(Bits - fitting))) << fitting;
    }
  }
}

}  // namespace furl
