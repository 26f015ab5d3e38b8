// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The rotated codes of a tile (FORMAT.md, R3 to R8) on the host.

#include <cstring>

#include "furl/config.hpp"
#include "furl/detail/host/random.hpp"
#include "furl/detail/host/rotate.hpp"
#include "furl/detail/host/rotated_levels.hpp"
#include "furl/detail/host/tile.hpp"
#include "furl/detail/number.hpp"
#include "furl/detail/rotated.hpp"
#include "furl/types.hpp"

FURL_HIDDEN_BEGIN

namespace furl::host::detail {

/// Sums over columns of every lane: those with the same i are 32 i on.
struct partial_sums {
  alignas(64) float squares[8 * tile_lanes];
  alignas(64) float magnitudes[8 * tile_lanes];
};

/// What a tile needs while it is rotated.
struct rotation_scratch {
  alignas(64) float by_columns[tile_elements];
  union {
    alignas(64) float rows[tile_elements];  // before by_columns is made
    partial_sums partial;                   // after it
  };
};

/// Trees over eight partial sums of every lane, then over the rows of every block.
inline void add_lanes(const float* __restrict partial, float (&sums)[blocks_per_tile]) {
  alignas(64) float lanes[tile_lanes];
  for (int lane = 0; lane < tile_lanes; ++lane) {
    const float* const p = partial + lane;
    lanes[lane] =
        tree_of_eight(p[0], p[tile_lanes], p[2 * tile_lanes], p[3 * tile_lanes], p[4 * tile_lanes],
                      p[5 * tile_lanes], p[6 * tile_lanes], p[7 * tile_lanes]);
  }
  for (int block = 0; block < blocks_per_tile; ++block) {
    const float* const p = lanes + block * rows_per_tile;
    sums[block] = tree_of_eight(p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7]);
  }
}

/// Of the four numbers of every lane in columns with the same i: the last two stages, and sums of
/// their squares and magnitudes.
inline void finish_columns(float* __restrict x, float* __restrict squares,
                           float* __restrict magnitudes) {
  for (int lane = 0; lane < tile_lanes; ++lane) {
    float a0 = x[lane], a1 = x[lane + tile_lanes];
    float a2 = x[lane + 2 * tile_lanes], a3 = x[lane + 3 * tile_lanes];
    butterflies(a0, a1, a2, a3);
    x[lane] = a0, x[lane + tile_lanes] = a1;
    x[lane + 2 * tile_lanes] = a2, x[lane + 3 * tile_lanes] = a3;
    squares[lane] = fma_rn(a3, a3, fma_rn(a2, a2, fma_rn(a1, a1, mul_rn(a0, a0))));
    magnitudes[lane] =
        add_rn(add_rn(add_rn(magnitude(a0), magnitude(a1)), magnitude(a2)), magnitude(a3));
  }
}

/// Sets a bit of every lane's word where its number is not negative.
inline void put_signs(const float* __restrict x, int bit, u32* __restrict plane) {
  for (int lane = 0; lane < tile_lanes; ++lane)
    plane[lane] |= (~bits_of(x[lane]) & 0x80000000u) >> (31 - bit);
}

/// Inverts a bit of every lane's word where its number is large, and keeps that number's magnitude,
/// or 0.
inline void put_large(const float* __restrict x, const int* __restrict threshold, int bit,
                      float* __restrict large, u32* __restrict plane) {
  for (int lane = 0; lane < tile_lanes; ++lane) {
    // Bit patterns of what is not negative have its order.
    const int size = int(bits_of(x[lane]) & 0x7fffffffu);
    const u32 mask = size >= threshold[lane] ? ~0u : 0u;
    large[lane] = float_of(u32(size) & mask);
    plane[lane] ^= (mask & 1u) << bit;
  }
}

/// Sums of the four numbers of every lane.
inline void add_fours(const float* __restrict x, float* __restrict sums) {
  for (int lane = 0; lane < tile_lanes; ++lane)
    sums[lane] = add_rn(add_rn(add_rn(x[lane], x[lane + tile_lanes]), x[lane + 2 * tile_lanes]),
                        x[lane + 3 * tile_lanes]);
}

/// Adds a weight to the levels of a column, or subtracts it, by a bit of every lane's byte.
inline void add_level(const u8* __restrict bytes, u8 bit, int weight, i8* __restrict levels) {
  for (int lane = 0; lane < tile_lanes; ++lane) {
    const i8 set = i8((bytes[lane] & bit) == bit ? 2 * weight : 0);
    levels[lane] = i8(levels[lane] + set - weight);
  }
}

/// Byte k of every lane's word.
inline void take_byte(const u32* __restrict words, int k, u8* __restrict bytes) {
  for (int lane = 0; lane < tile_lanes; ++lane) bytes[lane] = u8(words[lane] >> (8 * k));
}

class rotated_compressor {
 public:
  /// numbers: of metadata for every block, of which the scale is the first.
  rotated_compressor(random_key key, int bits, int numbers, rotation_scratch& scratch)
      : signs_(key), bits_(bits), numbers_(numbers), scratch_(scratch) {}

  /// Writes the codes and scales of a tile of which absent elements are 0.
  void compress_tile(i64 tile, const float* r, u8* codes, u8* scales) {
    signs_.move_to(tile);
    rotate_rows(r, signs_.of_first(), scratch_.rows);
    to_columns(scratch_.rows, scratch_.by_columns);
    rotate_columns(scratch_.by_columns, signs_.of_second());
    float energy[blocks_per_tile];
    float projected[blocks_per_tile];
    finish_rotation();
    add_lanes(scratch_.partial.squares, energy);
    add_lanes(scratch_.partial.magnitudes, projected);
    alignas(64) u32 planes[max_rotated_bits * tile_lanes];
    if (bits_ == 1) {
      code_signs(planes);
    } else if (bits_ == 2) {
      float outer[blocks_per_tile];
      code_pairs(energy, planes);
      add_lanes(scratch_.partial.magnitudes, outer);
      for (int b = 0; b < blocks_per_tile; ++b) projected[b] = fma_rn(2.0f, outer[b], projected[b]);
    } else {
      const auto code = bits_ == 3 ? code_levels<3> : code_levels<4>;
      code(scratch_.by_columns, energy, scratch_.partial.magnitudes, planes);
      add_lanes(scratch_.partial.magnitudes, projected);
    }
    for (int block = 0; block < blocks_per_tile; ++block) {
      const u16 scale = block_scale(energy[block], projected[block]);
      store_at(scales, numbers_ * (tile * blocks_per_tile + block), scale);
      if (!is_scale(scale)) clear(block, planes);
    }
    ::std::memcpy(codes, planes, static_cast<::std::size_t>(bits_) * row_elements);
  }

 private:
  /// The last two stages, with partial sums of squares and of magnitudes.
  void finish_rotation() {
    for (int i = 0; i < 8; ++i)
      finish_columns(scratch_.by_columns + i * column_step,
                     scratch_.partial.squares + i * tile_lanes,
                     scratch_.partial.magnitudes + i * tile_lanes);
  }

  /// One bit: set where the number is not negative.
  void code_signs(u32* plane) const {
    for (int lane = 0; lane < tile_lanes; ++lane) plane[lane] = 0;
    for (int i = 0; i < 8; ++i)
      for (int q = 0; q < 4; ++q)
        put_signs(scratch_.by_columns + i * column_step + q * tile_lanes, code_bit(8 * q + i),
                  plane);
  }

  /// Two bits, and partial sums of the magnitudes of what has an outer level.
  void code_pairs(const float (&energy)[blocks_per_tile], u32* __restrict planes) {
    alignas(64) int threshold[tile_lanes];
    alignas(64) float large[4][tile_lanes];
    for (int block = 0; block < blocks_per_tile; ++block) {
      const int of_block = int(bits_of(outer_threshold(energy[block])));
      for (int row = 0; row < rows_per_tile; ++row)
        threshold[block * rows_per_tile + row] = of_block;
    }
    code_signs(planes);
    u32* const low = planes + tile_lanes;
    for (int lane = 0; lane < tile_lanes; ++lane) low[lane] = ~planes[lane];
    for (int i = 0; i < 8; ++i) {
      for (int q = 0; q < 4; ++q)
        put_large(scratch_.by_columns + i * column_step + q * tile_lanes, threshold,
                  code_bit(8 * q + i), large[q], low);
      add_fours(large[0], scratch_.partial.magnitudes + i * tile_lanes);
    }
  }

  void clear(int block, u32* planes) const {
    for (int bit = 0; bit < bits_; ++bit)
      for (int row = 0; row < rows_per_tile; ++row)
        planes[bit * tile_lanes + block * rows_per_tile + row] = 0;
  }

  tile_signs signs_;
  const int bits_;
  const int numbers_;
  rotation_scratch& scratch_;
};

class rotated_decompressor {
 public:
  /// numbers: as for rotated_compressor.
  rotated_decompressor(random_key key, int bits, int numbers)
      : signs_(key), bits_(bits), numbers_(numbers) {}

  /// The values of a tile, of absent elements too.
  void decompress_tile(i64 tile, const u8* codes, const u8* scales, float* values) {
    signs_.move_to(tile);
    alignas(64) i8 levels[tile_elements];
    alignas(64) i16 by_columns[tile_elements];
    alignas(64) i16 rows[tile_elements];
    alignas(64) float scale[row_elements];
    load_levels(codes, levels);
    restore_columns(levels, bits_, signs_.of_second(), by_columns);
    to_rows(by_columns, rows);
    u16 stored[blocks_per_tile];
    for (int block = 0; block < blocks_per_tile; ++block) {
      stored[block] = load_at<u16>(scales, numbers_ * (tile * blocks_per_tile + block));
      const float value = f32_from_bf16(stored[block]);
      const float of_block = has_quarters(bits_) ? mul_rn(4.0f, value) : value;
      for (int c = 0; c < block_columns; ++c) scale[block * block_columns + c] = of_block;
    }
    restore_rows(rows, scale, signs_.of_first(), values);
    for (int block = 0; block < blocks_per_tile; ++block)
      if (!is_scale(stored[block])) fill(block, value_without_codes(stored[block]), values);
  }

 private:
  /// 2 code - (2^bits - 1), by columns.
  void load_levels(const u8* codes, i8* levels) const {
    ::std::memset(levels, 0, tile_elements);
    for (int plane = 0; plane < bits_; ++plane) {
      alignas(64) u32 words[tile_lanes];
      alignas(64) u8 bytes[tile_lanes];  // of columns 4 j + k
      ::std::memcpy(words, codes + plane * row_elements, sizeof words);
      for (int k = 0; k < 4; ++k) {
        take_byte(words, k, bytes);
        for (int j = 0; j < 8; ++j)
          add_level(bytes, u8(1 << j), 1 << (bits_ - 1 - plane), levels + (4 * j + k) * tile_lanes);
      }
    }
  }

  static void fill(int block, float value, float* values) {
    for (int row = 0; row < rows_per_tile; ++row)
      for (int c = 0; c < block_columns; ++c)
        values[row * row_elements + block * block_columns + c] = value;
  }

  tile_signs signs_;
  const int bits_;
  const int numbers_;
};

}  // namespace furl::host::detail

FURL_HIDDEN_END
