// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE WARP. From a tile in registers to rotated codes and the scales of its four blocks (FORMAT.md,
// R1 to R7).

#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/detail/device/intrinsics.cuh"
#include "furl/detail/device/rotation.cuh"
#include "furl/detail/number.hpp"
#include "furl/detail/rotated.hpp"
#include "furl/types.hpp"

namespace furl::detail {

// ---- R2 and R2b ------------------------------------------------------------------------------

/// Turns a tile by columns into a tile by rows.
/// Threads : one warp, all lanes.
/// Sync    : within the warp, first of all: what lanes have written to shared memory before, others
///           can read afterwards.
template <int Words>
__device__ __forceinline__ void exchange_floats(float (&v)[8][4], u32 (&exchange)[Words]) {
  constexpr int rounds = Words >= coding_words(1) ? 1 : Words >= coding_words(2) ? 2 : 4;
  static_assert(Words >= coding_words(rounds), "too few words");
  constexpr int columns = 4 / rounds;
  constexpr int pitch = coding_words(rounds) / rows_per_tile;
  const int lane = lane_index();
  float* const by_columns = reinterpret_cast<float*>(exchange) + columns * lane;
  const float* const by_rows =
      reinterpret_cast<float*>(exchange) + lane % 8 * pitch + lane / 8 * (8 * columns);
  FURL_UNROLL
  for (int round = 0; round < rounds; ++round) {
    float four[columns];
    __syncwarp();
    FURL_UNROLL
    for (int row = 0; row < 8; ++row) {
      FURL_UNROLL
      for (int k = 0; k < columns; ++k) four[k] = v[row][columns * round + k];
      put_words(by_columns + row * pitch, four);
    }
    __syncwarp();
    FURL_UNROLL
    for (int i = 0; i < 8; ++i) {
      get_words(by_rows + i * columns, four);
      FURL_UNROLL
      for (int k = 0; k < columns; ++k) v[i][columns * round + k] = four[k];
    }
  }
}

/// Flips the second signs in a tile by rows.
__device__ __forceinline__ void flip_by_rows(const u32 (&signs)[8], float (&v)[8][4]) {
  const int to_top = 31 - 2 * (lane_index() % 8);
  FURL_UNROLL
  for (int i = 0; i < 8; ++i) {
    // The bits of columns 0 to 3 go to bits 31, 15, 0 and 16.
    const u32 word = rotate_left(signs[i], to_top);
    constexpr int shift[4] = {0, 16, 31, 15};
    FURL_UNROLL
    for (int k = 0; k < 4; ++k) v[i][k] = flip_sign(v[i][k], word << shift[k]);
  }
}

/// A tile by columns, whose first signs are flipped, becomes what is coded, by rows.
template <int Words>
__device__ __forceinline__ void rotate_tile(float (&v)[8][4],
                                            const u32 (&second_signs)[warp_threads],
                                            u32 (&exchange)[Words]) {
  transform_first(v);   // rows
  transform_second(v);  // columns 1 and 2 apart
  exchange_floats(v, exchange);
  transform_first(v);  // columns 4, 8 and 16 apart
  u32 signs[8];
  load_signs(second_signs, signs);
  flip_by_rows(signs, v);
  transform_second(v);
  transform_first(v);
}

// ---- R3: sums over a block -------------------------------------------------------------------

/// Sum over a block of what lanes have in the eight chains of their rows.
__device__ __forceinline__ float sum_chains(const float (&f)[8]) {
  float sum = tree_of_eight(f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7]);
  FURL_UNROLL
  for (int distance = 1; distance < 8; distance *= 2) sum = add_rn(sum, shuffle_xor(sum, distance));
  return sum;
}

/// Sum over the block of start(y) for the first and next(y, sum) for the others of each chain of
/// columns 8 apart.
template <class Start, class Next>
__device__ __forceinline__ float sum_over_block(const float (&y)[8][4], const Start& start,
                                                const Next& next) {
  float chain[8];
  FURL_UNROLL
  for (int i = 0; i < 8; ++i) {
    chain[i] = start(y[i / 4][i % 4]);
    FURL_UNROLL
    for (int m = 1; m < 4; ++m) chain[i] = next(y[2 * m + i / 4][i % 4], chain[i]);
  }
  return sum_chains(chain);
}

__device__ __forceinline__ float sum_of_squares(const float (&y)[8][4]) {
  return sum_over_block(
      y, [](float v) { return mul_rn(v, v); },
      [](float v, float sum) { return fma_rn(v, v, sum); });
}
__device__ __forceinline__ float sum_of(const float (&y)[8][4]) {
  return sum_over_block(
      y, [](float v) { return v; }, [](float v, float sum) { return add_rn(sum, v); });
}

// ---- R4 to R6 --------------------------------------------------------------------------------

/// Takes the signs of all elements away: a set bit for each that was negative, -0 too.
__device__ __forceinline__ u32 take_signs(float (&y)[8][4]) {
  u32 word = 0;
  FURL_UNROLL
  for (int k = 3; k >= 0; --k) {
    FURL_UNROLL
    for (int i = 7; i >= 0; --i) {
      asm("shf.l.wrap.b32 %0, %1, %2, 1;" : "=r"(word) : "f"(y[i][k]), "r"(word));
      asm("abs.f32 %0, %1;" : "=f"(y[i][k]) : "f"(y[i][k]));
    }
  }
  return word;
}

/// 1 where x >= threshold, else 0.
__device__ __forceinline__ float one_at_least(float x, float threshold) {
  float r;
  asm("set.ge.f32.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(threshold));
  return r;
}

/// The large elements of a block: those that are at least the threshold (R4).
struct large_elements {
  float sum;  // of them
  u32 bits;   // set for each of those that the lane has
};

__device__ __forceinline__ large_elements find_large(const float (&size)[8][4], float threshold) {
  // Whether an element is large is 1 or 0: a factor in the sum, and times a power of two a bit of a
  // number, to which 2^23 is added so that its pattern ends in these 16 bits.
  float halves[2] = {8388608.0f, 8388608.0f};
  float chain[8];
  FURL_UNROLL
  for (int i = 0; i < 8; ++i) {
    FURL_UNROLL
    for (int m = 0; m < 4; ++m) {
      const int four = 2 * m + i / 4;
      const int bit = code_bit(8 * m + i);
      const float s = size[four][i % 4];
      const float large = one_at_least(s, threshold);
      chain[i] = m == 0 ? mul_rn(s, large) : fma_rn(s, large, chain[i]);
      halves[bit / 16] = fma_rn(large, float(1 << bit % 16), halves[bit / 16]);
    }
  }
  return {sum_chains(chain), select_bytes(halves[0], halves[1], 0x5410)};
}

/// The words of codes of a lane, by planes, and the scale of its block.
template <int Planes>
struct rotated_codes {
  u32 plane[Planes];  // the first: the highest bits
  u32 scale;          // as stored
};

/// Codes of 1 or 2 bits of a rotated tile by rows (R3 to R6). This changes the tile.
/// Threads : one warp, all lanes.
/// Sync    : within the warp.
template <int Bits>
__device__ __forceinline__ rotated_codes<Bits> quantize_rotated(float (&y)[8][4]) {
  const u32 negative = take_signs(y);
  const float energy = sum_of_squares(y);
  float projection = sum_of(y);
  u32 low = 0;
  if constexpr (Bits == 2) {
    const large_elements large = find_large(y, outer_threshold(energy));
    projection = fma_rn(2.0f, large.sum, projection);
    low = large.bits ^ negative;
  }
  const u32 scale = block_scale(energy, projection);
  const u32 mask = is_scale(scale) ? ~0u : 0u;
  if constexpr (Bits == 1) {
    return {{~negative & mask}, scale};
  } else {
    return {{~negative & mask, low & mask}, scale};
  }
}

}  // namespace furl::detail
