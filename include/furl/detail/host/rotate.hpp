// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The two rotations of a tile (FORMAT.md, R1 to R2b) and their inverse on the host.
//
// A stage of the transform works on two numbers that lie some distance apart, so it is a loop that
// vectorises over all other indices of an array. Rows are transformed where they lie. For the
// stages of columns the tile is transposed, so that its fastest index is the lane: 8 times the
// block plus the row. A block has 32 columns; the array of those is called by columns.

#include "furl/config.hpp"
#include "furl/detail/host/tile.hpp"
#include "furl/detail/rotated.hpp"
#include "furl/types.hpp"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

FURL_HIDDEN_BEGIN

namespace furl::host::detail {

inline constexpr int tile_lanes = blocks_per_tile * rows_per_tile;    // of an array by columns
inline constexpr int block_columns = block_elements / rows_per_tile;  // of a tile
inline constexpr int column_step = tile_elements / rows_per_tile;     // see by_columns

/// Shift that brings the sign of row 7 and column 4 l + k to the top of a word. Rows above need two
/// bits more each.
constexpr int sign_shift(int k) {
  return 31 - sign_bit(rows_per_tile - 1, k);
}
constexpr int row_shift(int row) {
  return 2 * (rows_per_tile - 1 - row);
}

inline float change_sign(float x, u32 sign_on_top) {
  return float_of(bits_of(x) ^ (sign_on_top & 0x80000000u));
}

/// The stages of three index bits, of which the lowest is `Step` numbers, for `Count` neighbours.
template <int Step, int Count, class T>
void transform_eights(T* x) {
  for (int i = 0; i < Count; ++i) {
    T a0 = x[i], a1 = x[i + Step], a2 = x[i + 2 * Step], a3 = x[i + 3 * Step];
    T a4 = x[i + 4 * Step], a5 = x[i + 5 * Step], a6 = x[i + 6 * Step], a7 = x[i + 7 * Step];
    butterflies(a0, a1, a2, a3, a4, a5, a6, a7);
    x[i] = a0, x[i + Step] = a1, x[i + 2 * Step] = a2, x[i + 3 * Step] = a3;
    x[i + 4 * Step] = a4, x[i + 5 * Step] = a5, x[i + 6 * Step] = a6;
    x[i + 7 * Step] = a7;
  }
}

/// The same of two index bits.
template <int Step, int Count, class T>
void transform_fours(T* x) {
  for (int i = 0; i < Count; ++i) {
    T a0 = x[i], a1 = x[i + Step], a2 = x[i + 2 * Step], a3 = x[i + 3 * Step];
    butterflies(a0, a1, a2, a3);
    x[i] = a0, x[i + Step] = a1, x[i + 2 * Step] = a2, x[i + 3 * Step] = a3;
  }
}

/// The word of signs of every column, with that of row 7 on top.
inline void spread_to_columns(const u32* __restrict signs, u32 (&on_top)[row_elements]) {
  for (int l = 0; l < words_per_row; ++l)
    for (int k = 0; k < 4; ++k) on_top[4 * l + k] = signs[l] << sign_shift(k);
}

/// Signs and rows: R1, and R2 as far as it is of rows. Pre: the tile is whole.
inline void rotate_rows(const float* __restrict x, const u32* __restrict signs,
                        float* __restrict out) {
  alignas(64) u32 on_top[row_elements];
  spread_to_columns(signs, on_top);
  for (int c = 0; c < row_elements; ++c) {
    const auto load = [&](int row) {
      return change_sign(x[row * row_elements + c], on_top[c] << row_shift(row));
    };
    float a0 = load(0), a1 = load(1), a2 = load(2), a3 = load(3);
    float a4 = load(4), a5 = load(5), a6 = load(6), a7 = load(7);
    butterflies(a0, a1, a2, a3, a4, a5, a6, a7);
    const auto store = [&](int row, float a) { out[row * row_elements + c] = a; };
    store(0, a0), store(1, a1), store(2, a2), store(3, a3);
    store(4, a4), store(5, a5), store(6, a6), store(7, a7);
  }
}

/// A tile's rows become an array by columns: column 8 q + i of a block is at 128 i + 32 q.
inline void to_columns(const float* __restrict rows, float* __restrict by_columns) {
  for (int block = 0; block < blocks_per_tile; ++block) {
    for (int q = 0; q < 4; ++q) {
      const float* const from = rows + block * block_columns + 8 * q;
      float* const to = by_columns + q * tile_lanes + block * rows_per_tile;
#if defined(__SSE2__)
      for (int r = 0; r < 8; r += 4) {
        for (int i = 0; i < 8; i += 4) {
          const float* const in = from + r * row_elements + i;
          float* const out = to + i * column_step + r;
          __m128 a = _mm_loadu_ps(in);
          __m128 b = _mm_loadu_ps(in + row_elements);
          __m128 c = _mm_loadu_ps(in + 2 * row_elements);
          __m128 d = _mm_loadu_ps(in + 3 * row_elements);
          _MM_TRANSPOSE4_PS(a, b, c, d);
          _mm_storeu_ps(out, a);
          _mm_storeu_ps(out + column_step, b);
          _mm_storeu_ps(out + 2 * column_step, c);
          _mm_storeu_ps(out + 3 * column_step, d);
        }
      }
#else
      for (int i = 0; i < 8; ++i)
        for (int r = 0; r < 8; ++r) to[i * column_step + r] = from[r * row_elements + i];
#endif
    }
  }
}

/// Words of the second rotation, of columns 4 j .. 4 j + 3 of every block, with the sign of a
/// lane's row where the sign of row 7 would be: at 32 j + lane.
inline void spread_signs(const u32* __restrict signs, u32* __restrict out) {
  for (int j = 0; j < 8; ++j)
    for (int block = 0; block < blocks_per_tile; ++block)
      for (int r = 0; r < rows_per_tile; ++r)
        out[j * tile_lanes + block * rows_per_tile + r] = signs[8 * block + j] << row_shift(r);
}

/// R2 as far as it is of columns, and the signs and columns of R2b, but for the last two stages.
inline void rotate_columns(float* __restrict by_columns, const u32* __restrict signs) {
  alignas(64) u32 spread[8 * tile_lanes];
  spread_signs(signs, spread);
  transform_eights<column_step, column_step>(by_columns);
  for (int i = 0; i < 8; ++i) {
    float* const x = by_columns + i * column_step;
    const u32* const sign = spread + i / 4 * tile_lanes;  // and every second one
    const int shift = sign_shift(i % 4);
    for (int lane = 0; lane < tile_lanes; ++lane) {
      float a0 = x[lane], a1 = x[lane + tile_lanes];
      float a2 = x[lane + 2 * tile_lanes], a3 = x[lane + 3 * tile_lanes];
      butterflies(a0, a1, a2, a3);
      x[lane] = change_sign(a0, sign[lane] << shift);
      x[lane + tile_lanes] = change_sign(a1, sign[lane + 2 * tile_lanes] << shift);
      x[lane + 2 * tile_lanes] = change_sign(a2, sign[lane + 4 * tile_lanes] << shift);
      x[lane + 3 * tile_lanes] = change_sign(a3, sign[lane + 6 * tile_lanes] << shift);
    }
  }
  transform_eights<column_step, column_step>(by_columns);
}

// ---- The inverse, on integers: no order of operations changes them ------------------------------

using i8 = signed char;
using i16 = short;

/// The signs of the second rotation as bytes: the one of lane 8 s + r at (h, j, lane) has those of
/// columns 4 j + h and 4 j + h + 2 of block s and of row r in its bits 2 (r mod 4) and one above.
inline void spread_bytes(const u32* __restrict signs, u8* __restrict out) {
  for (int h = 0; h < 2; ++h) {
    for (int j = 0; j < 8; ++j) {
      for (int block = 0; block < blocks_per_tile; ++block) {
        const u32 word = signs[8 * block + j] >> (16 * h);
        const u64 rows = u64(word & 0xffu) | u64(word >> 8 & 0xffu) << 32;
        store_at(out, ((h * 8) + j) * blocks_per_tile + block, rows * 0x01010101u);
      }
    }
  }
}

/// Changes signs of a column: where a byte has the bit of its lane.
template <class Integer>
void change_column(const u8* __restrict bytes, const u8* __restrict bit_of_lane,
                   Integer* __restrict column) {
  for (int lane = 0; lane < tile_lanes; ++lane) {
    const u8 bit = bit_of_lane[lane];
    const Integer negative = Integer((bytes[lane] & bit) == bit ? -1 : 0);
    column[lane] = Integer((column[lane] ^ negative) - negative);
  }
}

/// Whether 16 bits hold no more than a quarter of the integers of R8, which are multiples of 4.
constexpr bool has_quarters(int bits) {
  return bits > 2;
}

/// Levels of a tile by columns, column 4 j + k of a block at 128 j + 32 k, become what both
/// rotations but for their rows have made of them, or a quarter of that.
inline void restore_columns(i8* __restrict levels, int bits, const u32* __restrict signs,
                            i16* __restrict by_columns) {
  alignas(64) u8 spread[2 * 8 * tile_lanes];
  alignas(64) u8 bit_of_lane[2][tile_lanes];  // of columns 4 j + h and 4 j + h + 2
  spread_bytes(signs, spread);
  for (int lane = 0; lane < tile_lanes; ++lane) {
    bit_of_lane[0][lane] = u8(1 << (2 * (lane % 4)));
    bit_of_lane[1][lane] = u8(2 << (2 * (lane % 4)));
  }
  const auto transform_and_change = [&](auto* x) {
    for (int j = 0; j < 8; ++j) {
      auto* const column = x + j * 4 * tile_lanes;
      transform_fours<tile_lanes, tile_lanes>(column);
      for (int k = 0; k < 4; ++k)
        change_column(spread + (k % 2 * 8 + j) * tile_lanes, bit_of_lane[k / 2],
                      column + k * tile_lanes);
    }
  };
  transform_eights<4 * tile_lanes, 4 * tile_lanes>(levels);
  if (!has_quarters(bits)) transform_and_change(levels);  // at most 32 * 3: bytes hold that
  for (int i = 0; i < tile_elements; ++i) by_columns[i] = i16(+levels[i]);
  if (has_quarters(bits)) transform_and_change(by_columns);
  for (int j = 0; j < 8; ++j)
    transform_fours<tile_lanes, tile_lanes>(by_columns + j * 4 * tile_lanes);
  transform_eights<4 * tile_lanes, 4 * tile_lanes>(by_columns);
  if (has_quarters(bits))
    for (int i = 0; i < tile_elements; ++i) by_columns[i] = i16(by_columns[i] / 4);
}

/// The inverse of to_columns, of columns in their order.
inline void to_rows(const i16* __restrict by_columns, i16* __restrict rows) {
  for (int block = 0; block < blocks_per_tile; ++block) {
    for (int c = 0; c < block_columns; c += 8) {
      const i16* const from = by_columns + c * tile_lanes + block * rows_per_tile;
      i16* const to = rows + block * block_columns + c;
#if defined(__SSE2__)
      __m128i a[8];
      __m128i b[8];
      const auto interleave = [](const __m128i(&in)[8], __m128i(&out)[8]) {
        FURL_UNROLL
        for (int i = 0; i < 4; ++i) {
          out[2 * i] = _mm_unpacklo_epi16(in[i], in[i + 4]);
          out[2 * i + 1] = _mm_unpackhi_epi16(in[i], in[i + 4]);
        }
      };
      FURL_UNROLL
      for (int i = 0; i < 8; ++i)
        a[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i * tile_lanes));
      interleave(a, b);
      interleave(b, a);
      interleave(a, b);
      FURL_UNROLL
      for (int r = 0; r < 8; ++r)
        _mm_storeu_si128(reinterpret_cast<__m128i*>(to + r * row_elements), b[r]);
#else
      for (int r = 0; r < 8; ++r)
        for (int i = 0; i < 8; ++i) to[r * row_elements + i] = from[i * tile_lanes + r];
#endif
    }
  }
}

/// Rows, scales of columns and signs: R8.
inline void restore_rows(const i16* __restrict rows, const float* __restrict scale,
                         const u32* __restrict signs, float* __restrict out) {
  alignas(64) u32 on_top[row_elements];
  spread_to_columns(signs, on_top);
  for (int c = 0; c < row_elements; ++c) {
    const auto load = [&](int row) { return rows[row * row_elements + c]; };
    i16 a0 = load(0), a1 = load(1), a2 = load(2), a3 = load(3);
    i16 a4 = load(4), a5 = load(5), a6 = load(6), a7 = load(7);
    butterflies(a0, a1, a2, a3, a4, a5, a6, a7);
    const auto store = [&](int row, i16 a) {
      const float value = mul_rn(float(a), scale[c]);
      out[row * row_elements + c] = change_sign(value, on_top[c] << row_shift(row));
    };
    store(0, a0), store(1, a1), store(2, a2), store(3, a3);
    store(4, a4), store(5, a5), store(6, a6), store(7, a7);
  }
}

}  // namespace furl::host::detail

FURL_HIDDEN_END
