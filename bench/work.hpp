// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a row works on: its plan, its input, and the bytes that it must move.

#include <cstddef>
#include <cstring>
#include <random>
#include <vector>

#include "axes.hpp"
#include "furl/detail/number.hpp"
#include "furl/plan.hpp"

namespace furl::bench {

/// Of the blobs that are decompressed.
inline constexpr random_key key_of_blobs{1, 0};

/// Elements in one pair of block_min_max.
inline constexpr i64 elements_per_block_range = 16384;

inline i64 num_elements(const row& r) {
  i64 count = 1;
  for (int d = 0; d < r.on.shape.rank; ++d) count *= r.on.shape[d];
  return count;
}

/// Bytes of the tensor.
inline u64 tensor_bytes(const row& r) {
  const u64 element = axes_of(r.what).types.empty() ? 1 : u64(size_bytes(r.type));
  return u64(num_elements(r)) * element;
}

/// Bits of every tile of a mixed row, whose mean is about r.bits; none for other rows.
inline std::vector<u8> tile_bits_of(const row& r) {
  if (r.way != path::mixed) return {};
  std::vector<u8> tile_bits(std::size_t((num_elements(r) + tile_elements - 1) / tile_elements));
  const int steps[] = {-1, 0, 1, 0};
  for (std::size_t t = 0; t < tile_bits.size(); ++t) tile_bits[t] = u8(r.bits + steps[t % 4]);
  return tile_bits;
}

/// Pre: the row is one of rows_of, whose plans are all valid.
inline plan plan_of(const row& r) {
  switch (r.what) {
    case primitive::pack:
    case primitive::unpack:
      return *plan::make_codes(r.bits, r.on.shape);
    case primitive::mask_pack:
    case primitive::mask_unpack:
      return *plan::make_codes(1, r.on.shape);
    default:
      break;
  }
  codec c;
  c.bits = r.bits;
  c.group = r.group;
  c.rounding = r.rounding;
  c.window = r.on.window;
  if (r.way == path::rotated) c.coding = coding::rotated;
  if (r.way != path::mixed) return *plan::make(c, r.on.shape);
  u64 sum = 0;
  for (const u8 bits : tile_bits_of(r)) sum += bits;
  return *plan::make_mixed(c, r.on.shape, sum);
}

/// Bytes that one call must move: everything it reads, once, and everything it writes, once. For
/// the baselines, see bench/baselines.
inline u64 bytes_moved(const row& r, const plan& p) {
  const u64 elements = tensor_bytes(r);
  const u64 tile_bits = r.way == path::mixed ? u64(p.num_tiles()) : 0;
  constexpr u64 range_bytes = 2 * sizeof(float);
  switch (r.what) {
    case primitive::copy:
      return 2 * elements;
    case primitive::add_arrays:
      return 3 * elements;
    case primitive::block_min_max:
      return elements + u64((p.num_elements() - 1) / elements_per_block_range + 1) * range_bytes;
    case primitive::group_min_max:
      return elements + u64(p.num_groups()) * range_bytes;
    case primitive::pool:
      return elements + u64(p.num_cells()) * u64(size_bytes(p.codec().meta));
    case primitive::decompress_add:
      return 2 * elements + p.size_bytes() + tile_bits;
    default:
      return elements + p.size_bytes() + tile_bits;
  }
}

/// Normal deviates: a pattern that tensors repeat, since drawing all would take longer than the
/// benchmark.
inline const std::vector<float>& deviates() {
  static const auto drawn = [] {
    std::vector<float> x(std::size_t{1} << 20);
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (float& each : x) each = normal(random);
    return x;
  }();
  return drawn;
}

/// The same as elements of a type.
inline std::vector<u8> deviates_as(dtype type) {
  const std::vector<float>& x = deviates();
  std::vector<u8> out(x.size() * std::size_t(size_bytes(type)));
  with_type(type, [&](auto element) {
    using element_type = decltype(element);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto value = round_to<element_type>(x[i]);
      std::memcpy(&out[i * sizeof value], &value, sizeof value);
    }
  });
  return out;
}

/// Codes of up to 8 bits.
inline std::vector<u8> random_codes() {
  std::vector<u8> out(std::size_t{1} << 20);
  std::mt19937 random(1);
  for (u8& each : out) each = u8(random());
  return out;
}

}  // namespace furl::bench
