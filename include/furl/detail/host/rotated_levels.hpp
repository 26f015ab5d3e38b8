// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Rotated codes of 3 and 4 bits (FORMAT.md, R4b, R6 and R7) of a tile by columns, on the host.

#include "furl/config.hpp"
#include "furl/detail/host/rotate.hpp"
#include "furl/detail/number.hpp"
#include "furl/detail/rotated.hpp"
#include "furl/types.hpp"

FURL_HIDDEN_BEGIN

namespace furl::host::detail {

/// Bits 0, 8, 16 and 24 of a word as bits 0, 2, 4 and 6.
inline u32 gather_bits(u32 word) {
  const u32 bits = word & 0x01010101u;
  return (bits | bits >> 6 | bits >> 12 | bits >> 18) & 0x55u;
}

/// Of the four numbers of every lane in columns with the same i: sets the bits of their codes, and
/// adds them, each times its level.
template <int Bits>
void code_fours(const float* __restrict x, const float* __restrict inverse, int i,
                float* __restrict sums, u32* __restrict planes) {
  constexpr u32 highest = (1u << Bits) - 1u;
  const int first_bit = code_bit(i);
  for (int lane = 0; lane < tile_lanes; ++lane) {
    float sum = 0.0f;
    u32 codes = 0;  // in bytes
    FURL_UNROLL
    for (int q = 0; q < 4; ++q) {
      const float y = x[lane + q * tile_lanes];
      const float code = code_at(place_in_range(y, inverse[lane]), float(highest));
      const float level = level_of(code, float(highest));
      sum = q == 0 ? mul_rn(y, level) : fma_rn(y, level, sum);
      codes |= u32(int(code)) << (8 * q);
    }
    sums[lane] = sum;
    FURL_UNROLL
    for (int plane = 0; plane < Bits; ++plane)
      planes[plane * tile_lanes + lane] |= gather_bits(codes >> (Bits - 1 - plane)) << first_bit;
  }
}

/// Codes of a tile by columns, and partial sums of its numbers times their levels: those of columns
/// with the same i are 32 i on, as they are in the tile.
/// energy: of the blocks.
template <int Bits>
void code_levels(const float* by_columns, const float (&energy)[blocks_per_tile],
                 float* __restrict projected, u32* __restrict planes) {
  alignas(64) float inverse[tile_lanes];
  for (int block = 0; block < blocks_per_tile; ++block) {
    const float of_block = inverse_range(energy[block], Bits);
    for (int row = 0; row < rows_per_tile; ++row) inverse[block * rows_per_tile + row] = of_block;
  }
  for (int word = 0; word < Bits * tile_lanes; ++word) planes[word] = 0;
  for (int i = 0; i < 8; ++i)
    code_fours<Bits>(by_columns + i * column_step, inverse, i, projected + i * tile_lanes, planes);
}

}  // namespace furl::host::detail

FURL_HIDDEN_END
