// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE WARP. What coding and decoding of rotated tiles share (FORMAT.md, R1 and R2): random signs,
// sums and differences, and what the lanes exchange. A tile has four blocks of 32 columns, and a
// block belongs to the same 8 lanes in both layouts of a tile:
//   by columns  lane l has columns 4 l to 4 l + 3 of all 8 rows, as a tile is loaded; an array
//               [8][4] is [row][column]
//   by rows     lane l has row l % 8 of columns 32 (l / 8) to 32 (l / 8) + 31; an array [8][4] is
//               [four columns][column of these]

#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/detail/device/intrinsics.cuh"
#include "furl/detail/number.hpp"
#include "furl/detail/quantize.hpp"
#include "furl/detail/rotated.hpp"
#include "furl/types.hpp"

namespace furl {

/// Tiles whose signs come from one counter (FORMAT.md, R1): one of its four words for each.
inline constexpr int tiles_per_draw = 4;

/// What a warp has in shared memory for rotated tiles: declare one for each warp of a block.
/// Words : of values that lanes exchange. Tiles : whose signs are kept, tiles_per_draw or 1.
template <int Words, int Tiles>
struct rotation_storage {
  static constexpr int num_words = Words;         // see above
  alignas(16) u32 exchange[Words];                // values
  alignas(16) u32 signs[2][Tiles][warp_threads];  // of R1 and R2b, by tile and lane

  /// Where the signs of a tile are.
  static __device__ __forceinline__ int index_of(i64 tile) {
    return Tiles == 1 ? 0 : int(u32(tile) % tiles_per_draw);
  }
};

namespace detail {

/// Words for the exchange of a tile of floats by 8 rows, in one round, or in 2 or 4 with fewer
/// columns each. Rows are padded by 16 bytes, so that eight lanes that read vectors of different
/// rows do not meet in a bank.
FURL_HD constexpr int coding_words(int rounds) {
  return rows_per_tile * (row_elements + 4) / rounds;
}
/// The same of a tile of two words a row and lane, in one round or two, with 16 bytes of padding.
FURL_HD constexpr int decoding_words(int rounds) {
  return rows_per_tile * (2 * warp_threads / rounds + 4);
}

}  // namespace detail

/// @{
/// For warps that take tiles from a multiple of tiles_per_draw on, that many in a row.
using compress_rotation_storage = rotation_storage<detail::coding_words(1), tiles_per_draw>;
using decompress_rotation_storage = rotation_storage<detail::decoding_words(1), tiles_per_draw>;
/// @}
/// For one tile at a time, in less memory and with more instructions: for both directions.
using small_rotation_storage = rotation_storage<detail::decoding_words(2), 1>;

// ---- Signs -----------------------------------------------------------------------------------

/// Draws the signs of a tile, as is due before it is compressed or loaded; with storage that keeps
/// the signs of more tiles, those of all that share its counter.
/// Threads : one warp, all lanes with the same arguments.
/// Shapes  : tile : the tile's index in the tensor.
/// Shared  : storage of the warp.
/// Sync    : within the warp, before. What takes the signs begins with another.
template <int Words, int Tiles>
__device__ __forceinline__ void draw_signs(i64 tile, random_key key,
                                           rotation_storage<Words, Tiles>& storage) {
  const int lane = lane_index();
  const u64 draw = u64(tile) / tiles_per_draw;
  __syncwarp();
  FURL_UNROLL
  for (int second = 0; second < 2; ++second) {
    const u64 random_tile = draw / 2 + (second != 0 ? second_rotation_tile : 0);
    const philox_block words = random_words(random_tile, u32(draw % 2), u32(lane), key);
    if constexpr (Tiles == 1) {
      const u32 low = tile % 2 == 0 ? words.word[0] : words.word[1];
      const u32 high = tile % 2 == 0 ? words.word[2] : words.word[3];
      storage.signs[second][0][lane] = tile % tiles_per_draw < 2 ? low : high;
    } else {
      FURL_UNROLL
      for (int i = 0; i < Tiles; ++i) storage.signs[second][i][lane] = words.word[i];
    }
  }
}

namespace detail {

/// x with its sign flipped if the top bit of a word is set; for a word of two 16-bit floats, both
/// with the top bits of the word's halves.
__device__ __forceinline__ float flip_sign(float x, u32 word) {
  float r;  // x ^ (word & mask)
  asm("lop3.b32 %0, %1, %2, 0x80000000, 0x78;" : "=f"(r) : "f"(x), "r"(word));
  return r;
}
__device__ __forceinline__ u32 flip_signs(u32 x, u32 word) {
  return x ^ (word & 0x80008000u);
}

/// Flips the signs of a row's four elements where their bits of a word of signs are set.
__device__ __forceinline__ void flip_row(u32 signs, int row, float (&x)[4]) {
  FURL_UNROLL
  for (int k = 0; k < 4; ++k) x[k] = flip_sign(x[k], signs << (31 - sign_bit(row, k)));
}
/// The same of 16-bit elements, two at once: their bits are 16 apart.
__device__ __forceinline__ void flip_row(u32 signs, int row, u32 (&x)[2]) {
  FURL_UNROLL
  for (int w = 0; w < 2; ++w) x[w] = flip_signs(x[w], signs << (15 - 2 * row - w));
}

/// A word rotated to the left; only count % 32 matters.
__device__ __forceinline__ u32 rotate_left(u32 word, int count) {
  return __funnelshift_l(word, word, u32(count));
}

// ---- Sums and differences --------------------------------------------------------------------

/// The transform along the first index: distances 1, 2, 4.
template <class Value, int Columns>
__device__ __forceinline__ void transform_first(Value (&v)[8][Columns]) {
  FURL_UNROLL
  for (int distance = 1; distance < 8; distance *= 2) {
    FURL_UNROLL
    for (int i = 0; i < 8; ++i) {
      if ((i & distance) != 0) continue;
      FURL_UNROLL
      for (int k = 0; k < Columns; ++k) butterfly(v[i][k], v[i + distance][k]);
    }
  }
}

/// The transform along the second index: distances 1, 2.
__device__ __forceinline__ void transform_second(float (&v)[8][4]) {
  FURL_UNROLL
  for (int i = 0; i < 8; ++i) butterflies(v[i][0], v[i][1], v[i][2], v[i][3]);
}

// ---- Vectors in shared memory ----------------------------------------------------------------

/// 1, 2 or 4 words at a multiple of their size.
template <class Word, int N>
struct alignas(N * sizeof(Word)) word_vector {
  Word word[N];
};

template <class Word, int N>
__device__ __forceinline__ void put_words(Word* to, const Word (&word)[N]) {
  word_vector<Word, N> v;
  FURL_UNROLL
  for (int i = 0; i < N; ++i) v.word[i] = word[i];
  *reinterpret_cast<word_vector<Word, N>*>(to) = v;
}
template <class Word, int N>
__device__ __forceinline__ void get_words(const Word* from, Word (&word)[N]) {
  const word_vector<Word, N> v = *reinterpret_cast<const word_vector<Word, N>*>(from);
  FURL_UNROLL
  for (int i = 0; i < N; ++i) word[i] = v.word[i];
}

/// The words of signs of the 8 lanes of a block.
__device__ __forceinline__ void load_signs(const u32 (&of_lanes)[warp_threads], u32 (&signs)[8]) {
  const u32* const of_block = of_lanes + lane_index() / 8 * 8;
  FURL_UNROLL
  for (int half = 0; half < 2; ++half) {
    u32 four[4];
    get_words(of_block + 4 * half, four);
    FURL_UNROLL
    for (int i = 0; i < 4; ++i) signs[4 * half + i] = four[i];
  }
}

}  // namespace detail

}  // namespace furl
