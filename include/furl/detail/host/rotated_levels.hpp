// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Rotated codes of 3 and 4 bits (FORMAT.md, R4 and R6) of a tile by columns, on the host.

#include "furl/config.hpp"
#include "furl/detail/host/rotate.hpp"
#include "furl/detail/number.hpp"
#include "furl/detail/rotated.hpp"
#include "furl/types.hpp"

FURL_HIDDEN_BEGIN

namespace furl::host::detail {

/// Where column 8 q + i of a block has its bit in a word of codes.
constexpr int code_bit(int q, int i) {
  return 2 * q + i / 4 + 8 * (i % 4);
}

/// Sets the bits of the codes of a column of every lane, and makes the levels of these.
template <int Bits>
void put_codes(const float* __restrict x, const float* __restrict inverse, int bit,
               float* __restrict levels, u32* __restrict planes) {
  constexpr u32 highest = (1u << Bits) - 1u;
  for (int lane = 0; lane < tile_lanes; ++lane) {
    const float code = code_at(place_in_range(x[lane], inverse[lane]), float(highest));
    levels[lane] = level_of(code, float(highest));
    // An integer below 2^23 is in the last bits of the pattern of its sum with 2^23.
    const u32 pattern = bits_of(add_rn(code, 0x1p23f));
    for (int plane = 0; plane < Bits; ++plane)
      planes[plane * tile_lanes + lane] |= (pattern >> (Bits - 1 - plane) & 1u) << bit;
  }
}

/// Adds the four numbers of every lane, each times its level, in columns with the same i.
inline void project_fours(const float* __restrict x, const float* __restrict levels,
                          float* __restrict sums) {
  for (int lane = 0; lane < tile_lanes; ++lane) {
    float sum = mul_rn(x[lane], levels[lane]);
    for (int q = 1; q < 4; ++q)
      sum = fma_rn(x[lane + q * tile_lanes], levels[lane + q * tile_lanes], sum);
    sums[lane] = sum;
  }
}

/// Codes of a tile by columns, and partial sums of its numbers times their levels: those of columns
/// with the same i are 32 i on, as they are in the tile.
/// energy: of the blocks.
template <int Bits>
void code_levels(const float* by_columns, const float (&energy)[blocks_per_tile],
                 float* __restrict projected, u32* __restrict planes) {
  alignas(64) float inverse[tile_lanes];
  alignas(64) float levels[4 * tile_lanes];
  for (int lane = 0; lane < tile_lanes; ++lane)
    inverse[lane] = inverse_range(energy[lane / rows_per_tile], Bits);
  for (int i = 0; i < Bits * tile_lanes; ++i) planes[i] = 0;
  for (int i = 0; i < 8; ++i) {
    const float* const x = by_columns + i * column_step;
    for (int q = 0; q < 4; ++q)
      put_codes<Bits>(x + q * tile_lanes, inverse, code_bit(q, i), levels + q * tile_lanes, planes);
    project_fours(x, levels, projected + i * tile_lanes);
  }
}

}  // namespace furl::host::detail

FURL_HIDDEN_END
