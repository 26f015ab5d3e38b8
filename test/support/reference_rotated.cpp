// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Rotated codes of the reference: FORMAT.md, R0 to R8, a tile at a time, rule by rule. The inverse
// is made from the definition of the Walsh-Hadamard matrix, without a butterfly.

#include "support/reference_rotated.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace furl::test::reference {
namespace {

template <class T>
using tile_of = std::array<std::array<T, 128>, 8>;

/// An index as the standard library wants it.
std::size_t n(int index) {
  return static_cast<std::size_t>(index);
}

/// R1 and R2b: whether an element changes its sign in the first (0) or second (1) rotation.
bool changes_sign(i64 tile, int row, int column, int rotation, random_key key) {
  const int l = column / 4;
  const int k = column % 4;
  u64 m = 32 * u64(tile / 4) + u64(l);
  if (rotation == 1) m += 64 * (u64(1) << 57);
  const philox_block counter{{static_cast<u32>(m), static_cast<u32>(m >> 32),
                              static_cast<u32>(key.offset), static_cast<u32>(key.offset >> 32)}};
  const philox_block out =
      philox4x32<7>(counter, static_cast<u32>(key.seed), static_cast<u32>(key.seed >> 32));
  const int bit = 16 * (k % 2) + 2 * row + k / 2;
  return (out.word[tile % 4] >> bit & 1u) != 0;
}

void change_signs(tile_of<float>& y, i64 tile, int rotation, random_key key) {
  for (int r = 0; r < 8; ++r)
    for (int c = 0; c < 128; ++c)
      if (changes_sign(tile, r, c, rotation, key)) y[n(r)][n(c)] = -y[n(r)][n(c)];
}

void combine(float& a, float& b) {
  const volatile float sum = a + b;
  const volatile float difference = a - b;
  a = sum;
  b = difference;
}

/// One stage of R2 along the rows, or along the columns of every block.
void stage_of_rows(tile_of<float>& y, int distance) {
  for (int r = 0; r < 8; ++r)
    for (int c = 0; c < 128 && (r & distance) == 0; ++c)
      combine(y[n(r)][n(c)], y[n(r + distance)][n(c)]);
}
void stage_of_columns(tile_of<float>& y, int distance) {
  for (int r = 0; r < 8; ++r)
    for (int c = 0; c < 128; ++c)
      if ((c & distance) == 0) combine(y[n(r)][n(c)], y[n(r)][n(c + distance)]);
}

/// R1, R2 and R2b.
void rotate(tile_of<float>& y, i64 tile, random_key key) {
  change_signs(y, tile, 0, key);
  for (const int distance : {1, 2, 4}) stage_of_rows(y, distance);
  for (const int distance : {1, 2, 4, 8, 16}) stage_of_columns(y, distance);
  change_signs(y, tile, 1, key);
  for (const int distance : {1, 2, 4, 8, 16}) stage_of_columns(y, distance);
}

/// R3 over the block that begins at a column: term(chain, y) adds an element to a chain, of which
/// `first` is the beginning.
template <class First, class Next>
float sum_of_block(const tile_of<float>& y, int begin, const First& first, const Next& next) {
  std::vector<float> of_rows;
  for (int r = 0; r < 8; ++r) {
    std::vector<float> chains;
    for (int i = 0; i < 8; ++i) {
      float chain = first(y[n(r)][n(begin + i)]);
      for (const int c : {i + 8, i + 16, i + 24}) chain = next(chain, y[n(r)][n(begin + c)]);
      chains.push_back(chain);
    }
    of_rows.push_back(tree_sum(chains));
  }
  return tree_sum(of_rows);
}

float energy_of(const tile_of<float>& y, int begin) {
  return sum_of_block(
      y, begin,
      [](float v) {
        const volatile float square = v * v;
        return float(square);
      },
      [](float chain, float v) { return std::fma(v, v, chain); });
}

/// Of the magnitudes that are at least a threshold; +0 stands for the others.
float magnitudes_of(const tile_of<float>& y, int begin, float threshold) {
  const auto counted = [threshold](float v) {
    return std::fabs(v) >= threshold ? std::fabs(v) : 0.0f;
  };
  return sum_of_block(y, begin, counted, [&](float chain, float v) {
    const volatile float sum = chain + counted(v);
    return float(sum);
  });
}

/// What R4 and R5 make of a block.
struct block_code {
  u16 scale = 0;
  bool has_codes = false;
  float threshold = 0;  // of two bits
  float inverse = 0;    // of the range of three or four bits
};

/// R4: the code of an element of three or four bits.
i64 code_in_range(float y, float inverse, int bits) {
  const double place = std::fma(y, inverse, 0.5f);
  return std::lrint(std::clamp(place, 0.0, 1.0) * ((1 << bits) - 1));  // an exact product
}

/// Q of three or four bits.
float projection_of(const tile_of<float>& y, int begin, float inverse, int bits) {
  const auto level = [=](float v) {
    return static_cast<float>(2 * code_in_range(v, inverse, bits) - ((1 << bits) - 1));
  };
  return sum_of_block(
      y, begin, [&](float v) { return v * level(v); },
      [&](float chain, float v) { return std::fma(v, level(v), chain); });
}

block_code describe(const tile_of<float>& y, int begin, int bits) {
  block_code out;
  const float energy = energy_of(y, begin);
  if (energy < std::ldexp(1.0f, -96)) return out;
  if (!std::isfinite(energy)) {
    out.scale = 0x7fff;
    return out;
  }
  float projected = magnitudes_of(y, begin, 0.0f);
  if (bits > 2) {
    const double range = bits == 3 ? 4.102 : 5.028;
    const volatile float square = energy * static_cast<float>(range * range / 256);
    const volatile float root = std::sqrt(float(square));
    const volatile float inverse = 1 / root;
    out.inverse = inverse;
    projected = projection_of(y, begin, out.inverse, bits);
  }
  if (bits == 2) {
    const volatile float square = energy * static_cast<float>(.9957 * .9957 / 256);
    out.threshold = std::sqrt(float(square));
    projected = std::fma(2.0f, magnitudes_of(y, begin, out.threshold), projected);
  }
  const volatile float quotient = energy / projected;
  out.scale = encode(std::ldexp(double(quotient), -13), bf16_format, direction::nearest);
  out.has_codes = true;
  return out;
}

/// R6.
u32 code_of(float y, const block_code& block, int bits) {
  if (bits > 2) return static_cast<u32>(code_in_range(y, block.inverse, bits));
  const u32 high = std::signbit(y) ? 0 : 1;
  if (bits == 1) return high;
  const u32 large = std::fabs(y) >= block.threshold ? 1 : 0;
  return 2 * high + (large == high ? 1 : 0);
}

/// R7: a bit of the code of an element, as a number of bits from the start of the tile's codes.
/// Plane 0 has the highest bits.
u64 bit_position(int plane, int row, int column) {
  const int in_block = column % 32;
  const int word = 32 * plane + 8 * (column / 32) + row;
  return u64(32 * word + in_block / 4 + 8 * (in_block % 4));
}

/// Whether an entry of the Walsh-Hadamard matrix is -1: its indices share an odd number of bits.
bool is_negative(int i, int j) {
  int common = i & j;
  for (const int half : {4, 2, 1}) common ^= common >> half;
  return (common & 1) != 0;
}

/// R8 up to the scale: v of a block's integers q.
std::array<std::array<i64, 32>, 8> restore(const std::array<std::array<i64, 32>, 8>& q, i64 tile,
                                           int begin, random_key key) {
  std::array<std::array<i64, 32>, 8> rows{};
  for (int r = 0; r < 8; ++r)
    for (int c = 0; c < 32; ++c) {
      for (int j = 0; j < 32; ++j)
        rows[n(r)][n(c)] += is_negative(c, j) ? -q[n(r)][n(j)] : q[n(r)][n(j)];
      if (changes_sign(tile, r, begin + c, 1, key)) rows[n(r)][n(c)] = -rows[n(r)][n(c)];
    }
  std::array<std::array<i64, 32>, 8> v{};
  for (int r = 0; r < 8; ++r)
    for (int c = 0; c < 32; ++c)
      for (int s = 0; s < 8; ++s)
        for (int j = 0; j < 32; ++j)
          v[n(r)][n(c)] +=
              is_negative(32 * r + c, 32 * s + j) ? -rows[n(s)][n(j)] : rows[n(s)][n(j)];
  return v;
}

}  // namespace

u64 scale_position(const problem& p, i64 tile, int block) {
  const u64 size = p.codec.coding == coding::positives ? 4 : 2;
  return layout_of(p).meta + size * (4 * u64(tile) + u64(block));
}

void compress_rotated(const problem& p, const std::vector<float>& r, random_key key,
                      std::vector<u8>& blob) {
  const layout places = layout_of(p);
  const int bits = p.codec.bits;
  for (i64 tile = 0; tile < i64(places.tile.size()); ++tile) {
    tile_of<float> y{};
    for (int i = 0; i < 1024; ++i)
      if (1024 * tile + i < i64(r.size())) y[n(i / 128)][n(i % 128)] = r[at(1024 * tile + i)];
    rotate(y, tile, key);
    for (int block = 0; block < 4; ++block) {
      const int begin = 32 * block;
      const block_code found = describe(y, begin, bits);
      const u64 at_scale = scale_position(p, tile, block);
      blob[at_scale] = static_cast<u8>(found.scale & 0xff);
      blob[at_scale + 1] = static_cast<u8>(found.scale >> 8);
      for (int i = 0; i < 256 && found.has_codes; ++i) {
        const int row = i / 32;
        const int column = begin + i % 32;
        const u32 code = code_of(y[n(row)][n(column)], found, bits);
        for (int plane = 0; plane < bits; ++plane) {
          const u64 position = 8 * places.tile[at(tile)] + bit_position(plane, row, column);
          const u32 bit = code >> (bits - 1 - plane) & 1u;
          blob[position / 8] = static_cast<u8>(blob[position / 8] | bit << (position % 8));
        }
      }
    }
  }
}

std::vector<float> rotated_values_of(const problem& p, const std::vector<u8>& blob,
                                     random_key key) {
  const layout places = layout_of(p);
  const int bits = p.codec.bits;
  std::vector<float> out(1024 * places.tile.size());
  for (i64 tile = 0; tile < i64(places.tile.size()); ++tile) {
    for (int block = 0; block < 4; ++block) {
      const int begin = 32 * block;
      std::array<std::array<i64, 32>, 8> q{};
      for (int i = 0; i < 256; ++i) {
        i64 code = 0;
        for (int plane = 0; plane < bits; ++plane) {
          const u64 position =
              8 * places.tile[at(tile)] + bit_position(plane, i / 32, begin + i % 32);
          code = 2 * code + (blob[position / 8] >> (position % 8) & 1);
        }
        q[n(i / 32)][n(i % 32)] = 2 * code - ((1 << bits) - 1);
      }
      const u64 at_scale = scale_position(p, tile, block);
      const auto pattern = static_cast<u16>(blob[at_scale] | blob[at_scale + 1] << 8);
      const auto scale = static_cast<float>(decode(pattern, bf16_format));
      const bool is_zero = pattern == 0;
      const bool is_scale = scale > 0 && scale < std::ldexp(1.0f, 100);
      const auto v = is_scale ? restore(q, tile, begin, key) : decltype(q){};
      for (int i = 0; i < 256; ++i) {
        const int row = i / 32;
        const int column = begin + i % 32;
        float& value = out[at(1024 * tile + 128 * row + column)];
        if (!is_scale) {
          value = is_zero ? 0.0f : std::numeric_limits<float>::quiet_NaN();
          continue;
        }
        value = scale * static_cast<float>(v[n(row)][n(i % 32)]);
        if (changes_sign(tile, row, column, 0, key)) value = -value;
      }
    }
  }
  out.resize(at(num_elements(p)));
  return out;
}

}  // namespace furl::test::reference
