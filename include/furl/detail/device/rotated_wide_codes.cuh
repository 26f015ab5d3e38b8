// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE WARP. Rotated codes of 3 and 4 bits and the scales of a tile's four blocks (FORMAT.md, R3 to
// R7). One program makes both: only its constants differ.

#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/detail/device/intrinsics.cuh"
#include "furl/detail/device/rotated_codes.cuh"
#include "furl/detail/device/wide_planes.cuh"
#include "furl/detail/number.hpp"
#include "furl/detail/rotated.hpp"
#include "furl/types.hpp"

namespace furl::detail {

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

}  // namespace furl::detail
