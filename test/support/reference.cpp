// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

#include "support/reference.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "support/reference_lines.hpp"
#include "support/reference_positives.hpp"
#include "support/reference_rotated.hpp"
#include "support/reference_statistics.hpp"

namespace furl::test::reference {
namespace {

u32 pattern_of(float x) {
  u32 bits = 0;
  std::memcpy(&bits, &x, 4);
  return bits;
}

float value_of(u32 bits) {
  float x = 0;
  std::memcpy(&x, &bits, 4);
  return x;
}

float round_meta(float x, const problem& p, direction rounding) {
  if (p.codec.meta == dtype::f32) return x;
  return static_cast<float>(decode(encode(x, bf16_format, rounding), bf16_format));
}

void store_meta(std::vector<u8>& blob, u64 part, i64 index, const problem& p, float x) {
  const bool wide = p.codec.meta == dtype::f32;
  const u32 bits =
      std::isnan(x) ? (wide ? 0x7fffffffu : 0x7fffu) : (wide ? pattern_of(x) : pattern_of(x) >> 16);
  const int size = wide ? 4 : 2;
  for (int k = 0; k < size; ++k)
    blob[at(i64(part) + index * size + k)] = static_cast<u8>(bits >> (8 * k));
}

float load_meta(const std::vector<u8>& blob, u64 part, i64 index, const problem& p) {
  const int size = p.codec.meta == dtype::f32 ? 4 : 2;
  u32 bits = 0;
  for (int k = 0; k < size; ++k)
    bits |= static_cast<u32>(blob[at(i64(part) + index * size + k)]) << (8 * k);
  return value_of(size == 4 ? bits : bits << 16);
}

/// Position of bit `bit` of the code of an element, counted in bits from the start of its tile.
u64 bit_position(i64 index, int bits, int bit) {
  const u64 row = u64(index % 1024) / 128;
  const u64 column = u64(index % 128);
  const u64 in_column = row * u64(bits) + u64(bit);
  return (in_column / 8 * 128 + column) * 8 + in_column % 8;
}

void store_code(std::vector<u8>& blob, u64 tile_at, i64 index, int bits, u32 code) {
  for (int bit = 0; bit < bits; ++bit) {
    const u64 position = bit_position(index, bits, bit);
    const u32 value = (code >> bit & 1u) << (position % 8);
    u8& byte = blob[tile_at + position / 8];
    byte = static_cast<u8>(byte | value);
  }
}

u32 load_code(const std::vector<u8>& blob, u64 tile_at, i64 index, int bits) {
  u32 code = 0;
  for (int bit = 0; bit < bits; ++bit) {
    const u64 position = bit_position(index, bits, bit);
    code |= static_cast<u32>(blob[tile_at + position / 8] >> (position % 8) & 1) << bit;
  }
  return code;
}

/// FORMAT.md, A6.
u32 random_byte(i64 index, random_key key) {
  const u64 t = u64(index) / 1024;
  const u64 row = u64(index) % 1024 / 128;
  const u64 column = u64(index) % 128;
  const u64 m = 64 * t + 32 * (row / 4) + column / 4;
  const philox_block counter{{static_cast<u32>(m), static_cast<u32>(m >> 32),
                              static_cast<u32>(key.offset), static_cast<u32>(key.offset >> 32)}};
  const philox_block out =
      philox4x32<7>(counter, static_cast<u32>(key.seed), static_cast<u32>(key.seed >> 32));
  const int byte_of_column[4] = {0, 2, 1, 3};
  return out.word[row % 4] >> (8 * byte_of_column[column % 4]) & 0xffu;
}

/// FORMAT.md, A2: sums along the innermost pooled dimension, then the next, then the outermost.
float sum_of_cell(const problem& p, const std::vector<float>& x, std::vector<i64> index, int d) {
  if (d == p.shape.rank) {
    i64 flat = 0;
    for (int e = 0; e < p.shape.rank; ++e) flat = flat * p.shape.size[e] + index[at(e)];
    return x[at(flat)];
  }
  const i64 width = p.codec.window.size[d];
  const i64 last = std::min(index[at(d)] + width, p.shape.size[d]);
  std::vector<float> terms;
  for (; index[at(d)] < last; ++index[at(d)]) terms.push_back(sum_of_cell(p, x, index, d + 1));
  return tree_sum(terms);
}

std::vector<float> pool(const problem& p, const std::vector<float>& x) {
  std::vector<float> lfc(at(num_cells(p)));
  std::vector<bool> done(lfc.size());
  for (i64 i = 0; i < i64(x.size()); ++i) {
    const std::size_t cell = at(cell_of(p, i));
    if (done[cell]) continue;  // the first element met is the cell's own start
    done[cell] = true;
    const auto start = coordinates(p, i);
    i64 count = 1;
    for (int d = 0; d < p.shape.rank; ++d)
      count *= std::min(p.codec.window.size[d], p.shape.size[d] - start[at(d)]);
    const volatile float mean = sum_of_cell(p, x, start, 0) / static_cast<float>(count);
    const float rounded = round_meta(mean, p, direction::nearest);
    lfc[cell] = std::isfinite(rounded) && rounded != 0 ? rounded : 0.0f;
  }
  return lfc;
}

struct pair {
  float lo;
  float step;
  bool coded;
};

range range_of(const problem& p, i64 index) {
  if (p.scope == range_scope::tensor) return p.ranges[0];
  if (p.scope == range_scope::group) return p.ranges[at(index / p.codec.group)];
  return p.ranges[at(coordinates(p, index)[at(p.dimension)])];
}

/// FORMAT.md, A3. Saturates the group's elements if ranges are given.
pair describe_group(const problem& p, std::vector<float>& r, i64 first, i64 last, int bits) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  float lo = r[at(first)];
  float hi = r[at(first)];
  for (i64 i = first; i < last; ++i) {
    if (std::isnan(r[at(i)])) return {nan, nan, false};
    if (r[at(i)] < lo) lo = r[at(i)];
    if (r[at(i)] > hi) hi = r[at(i)];
  }
  if (p.scope != range_scope::measured) {
    lo = range_of(p, first).lo;
    hi = range_of(p, first).hi;
    for (i64 i = first; i < last; ++i) {
      lo = std::min(lo, range_of(p, i).lo);
      hi = std::max(hi, range_of(p, i).hi);
    }
    for (i64 i = first; i < last; ++i) r[at(i)] = std::min(std::max(r[at(i)], lo), hi);
  }
  if (lo == 0) lo = 0.0f;
  if (hi == 0) hi = 0.0f;
  lo = round_meta(lo, p, direction::down);
  const auto levels = static_cast<float>((1 << bits) - 1);
  const volatile float difference = hi - lo;
  const volatile float quotient = difference / levels;
  const float step = round_meta(quotient, p, direction::up);
  if (!std::isfinite(std::fma(levels, step, lo))) return {nan, nan, false};
  if (step < std::numeric_limits<float>::min()) return {lo, 0.0f, false};
  return {lo, step, true};
}

/// FORMAT.md, A4 and A5.
u32 code_of(float r, const pair& group, u32 u) {
  const volatile float inverse = 1.0f / group.step;
  const volatile float above = r - group.lo;
  const float y = std::fma(above, inverse, 32768.0f);
  return ((pattern_of(y) & 0xffffu) + u) >> 8;
}

/// FORMAT.md, A7 and A12, before any mean is added.
float unrotated_value(const problem& p, const layout& places, const std::vector<u8>& blob, i64 i,
                      random_key key) {
  const i64 g = i / p.codec.group;
  const float lo = load_meta(blob, places.meta, 2 * g, p);
  const float step = load_meta(blob, places.meta, 2 * g + 1, p);
  auto t =
      static_cast<float>(load_code(blob, places.tile[at(i / 1024)], i, bits_of_tile(p, i / 1024)));
  if (p.codec.rounding == rounding::dithered)
    t += (255.0f - 2.0f * static_cast<float>(random_byte(i, key))) / 512.0f;
  return std::fma(t, step, lo);
}

}  // namespace

given_ranges ranges_of(const problem& p) {
  static_assert(sizeof(range) == 2 * sizeof(float), "pairs");
  const float* const pairs = p.ranges.empty() ? nullptr : &p.ranges[0].lo;
  return {pairs, static_cast<i64>(p.ranges.size()), p.scope, p.dimension};
}

std::vector<u8> compress(const problem& p, const std::vector<u8>& x, dtype type, random_key key) {
  if (p.codec.by_lines) return compress_lines(p, x, type, key);
  const layout places = layout_of(p);
  std::vector<u8> blob(places.size, 0);
  std::vector<float> r = normalised(p, to_floats(x, type));
  const i64 n = i64(r.size());
  if (n > 0 && has_window(p)) {
    const auto lfc = pool(p, r);
    for (i64 c = 0; c < i64(lfc.size()); ++c) store_meta(blob, places.lfc, c, p, lfc[at(c)]);
    for (i64 i = 0; i < n; ++i) {
      const volatile float residual = r[at(i)] - lfc[at(cell_of(p, i))];
      r[at(i)] = residual;
    }
  }
  if (p.codec.coding == coding::positives) {
    compress_positives(p, r, key, blob);
    return blob;
  }
  if (p.codec.coding == coding::rotated) {
    compress_rotated(p, r, key, blob);
    return blob;
  }
  for (i64 first = 0; first < n; first += p.codec.group) {
    const i64 last = std::min(n, first + p.codec.group);
    const int bits = bits_of_tile(p, first / 1024);
    const pair group = describe_group(p, r, first, last, bits);
    const i64 g = first / p.codec.group;
    store_meta(blob, places.meta, 2 * g, p, group.lo);
    store_meta(blob, places.meta, 2 * g + 1, p, group.step);
    for (i64 i = first; i < last && group.coded; ++i) {
      const u32 u = p.codec.rounding == rounding::nearest ? 128 : random_byte(i, key);
      store_code(blob, places.tile[at(i / 1024)], i, bits, code_of(r[at(i)], group, u));
    }
  }
  return blob;
}

std::vector<float> values_of(const problem& p, const std::vector<u8>& blob, random_key key) {
  if (p.codec.by_lines) return values_of_lines(p, blob, key);
  const layout places = layout_of(p);
  const bool is_rotated = p.codec.coding != coding::min_max;
  std::vector<float> out =
      is_rotated ? rotated_values_of(p, blob, key) : std::vector<float>(at(num_elements(p)));
  if (p.codec.coding == coding::positives) restore_positives(p, blob, out);
  for (i64 i = 0; i < num_elements(p); ++i) {
    float& v = out[at(i)];
    if (!is_rotated) v = unrotated_value(p, places, blob, i, key);
    if (has_window(p)) {
      const volatile float sum = v + load_meta(blob, places.lfc, cell_of(p, i), p);
      v = sum;
    }
    v = denormalised(p, i, v);
    if (std::isnan(v)) v = value_of(0x7fffffffu);
  }
  return out;
}

std::vector<u8> decompress(const problem& p, const std::vector<u8>& blob, dtype out,
                           random_key key) {
  const auto v = values_of(p, blob, key);
  if (out == dtype::f32) return from_floats(v, out);
  std::vector<u8> bytes;
  for (const float x : v) {
    const u16 pattern =
        encode(x, out == dtype::f16 ? f16_format : bf16_format, direction::saturated);
    bytes.push_back(static_cast<u8>(pattern & 0xff));
    bytes.push_back(static_cast<u8>(pattern >> 8));
  }
  return bytes;
}

std::vector<u8> decompress_add(const problem& p, const std::vector<u8>& blob, dtype out,
                               const std::vector<u8>& before, random_key key) {
  auto sums = to_floats(before, out);
  const auto v = values_of(p, blob, key);
  for (std::size_t i = 0; i < v.size(); ++i) {
    const volatile float sum = sums[i] + v[i];
    sums[i] = std::isnan(sum) ? value_of(0x7fffffffu) : sum;
  }
  return from_floats(sums, out);
}

std::vector<u8> pack(int bits, const std::vector<u8>& codes) {
  const i64 n = i64(codes.size());
  std::vector<u8> blob(u64(n + 1023) / 1024 * 128 * u64(bits), 0);
  for (i64 i = 0; i < n; ++i)
    store_code(blob, u64(i / 1024) * 128 * u64(bits), i, bits, codes[at(i)]);
  return blob;
}

std::vector<u8> unpack(int bits, const std::vector<u8>& blob, i64 count) {
  std::vector<u8> codes;
  for (i64 i = 0; i < count; ++i)
    codes.push_back(static_cast<u8>(load_code(blob, u64(i / 1024) * 128 * u64(bits), i, bits)));
  return codes;
}

}  // namespace furl::test::reference
