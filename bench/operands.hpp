// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the calls of a row take: plans, sizes of arrays, and what is in them.

#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <random>
#include <vector>

#include "axes.hpp"
#include "furl/detail/number.hpp"
#include "furl/extra/activation.hpp"
#include "furl/extra/codebook.hpp"
#include "furl/extra/format_codebooks.hpp"
#include "furl/extra/max_pool.hpp"
#include "furl/extra/measure.hpp"
#include "furl/extra/optimal_codebooks.hpp"
#include "furl/plan.hpp"

namespace furl::bench {

/// Arrays that calls take. given: ranges, statistics, or what bits are allocated by.
enum class operand { x, y, blob, given, tile_bits, tile_index, result, workspace };
inline constexpr std::size_t num_operands = 8;

/// Of the blobs that are decompressed.
inline constexpr random_key key_of_blobs{1, 0};

/// Elements in one pair of block_min_max.
inline constexpr i64 elements_per_block_range = 16384;

inline constexpr double dropped = 0.1;

inline i64 num_elements(const row& r) {
  i64 count = 1;
  for (int d = 0; d < r.on.shape.rank; ++d) count *= r.on.shape[d];
  return count;
}

/// Bytes of the tensor.
inline u64 tensor_bytes(const row& r) {
  return u64(num_elements(r)) * (r.axes->types.empty() ? 1 : u64(size_bytes(r.type)));
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

/// A row, and what is made of it once for all its calls.
struct task {
  row r;
  max_pool_plan pooling;   // of max pooling
  furl::plan plan;         // of one part
  codebook book;           // of calls that take one
  std::vector<u8> inputs;  // what is given

  explicit task(const row& of);
  u64 size(operand which) const;
  /// What an array begins as; empty: anything.
  std::vector<u8> content(operand which) const;
};

namespace detail {

/// Bits of every tile of a mixed row, whose mean is about r.bits.
inline std::vector<u8> make_tile_bits(const row& r) {
  std::vector<u8> bits(std::size_t((num_elements(r) + tile_elements - 1) / tile_elements));
  const int steps[] = {-1, 0, 1, 0};
  for (std::size_t t = 0; t < bits.size(); ++t) bits[t] = u8(r.bits + steps[t % 4]);
  return bits;
}

/// Pre: the row is one of rows_of, whose plans are all valid.
inline plan make_plan(const row& r) {
  switch (r.what()) {
    case primitive::pack:
    case primitive::unpack:
      return *plan::make_codes(r.bits, r.on.shape);
    case primitive::relu_backward:
    case primitive::dropout:
    case primitive::dropout_masked:
    case primitive::dropout_backward:
      return *plan::make_codes(1, r.on.shape);
    default:
      break;
  }
  if (r.what() == primitive::relu && r.way == path::flat) return *plan::make_codes(1, r.on.shape);
  if (r.way == path::gelu) return *plan::make_codes(r.bits, r.on.shape);
  if (r.way == path::nf4) return *plan::make_scaled(r.bits, r.group, dtype::bf16, r.on.shape);
  codec c;
  c.bits = r.bits;
  c.group = r.group;
  c.rounding = r.rounding;
  c.window = r.on.window;
  c.by_lines = r.way == path::lines;
  if (r.way == path::rotated) c.coding = coding::rotated;
  if (r.way == path::positives) c.coding = coding::positives;
  if (r.on.num_parts > 1) return *plan::make(c, {num_elements(r) / r.on.num_parts});
  if (r.way != path::mixed) return *plan::make(c, r.on.shape);
  u64 sum = 0;
  for (const u8 bits : make_tile_bits(r)) sum += bits;
  return *plan::make_mixed(c, r.on.shape, sum);
}

inline max_pool_plan make_max_pool_plan(const row& r) {
  if (r.way != path::window_2x2 && r.way != path::window_3x3) return {};
  const bool small = r.way == path::window_2x2;
  const pool_window window = small ? pool_window{} : pool_window{{3, 3}, {2, 2}, {1, 1}};
  return *max_pool_plan::make(r.on.shape, window);
}

inline codebook make_codebook(const row& r) {
  if (r.way == path::gelu) return *host::derivative_codebook(host::activation::gelu, r.bits);
  if (r.way == path::nf4) return nf4_codebook();
  return r.what() == primitive::dropout_backward ? dropout_codebook(dropped) : positive_codebook();
}

template <class T>
std::vector<u8> bytes_of_copies(std::size_t count, T value) {
  std::vector<u8> out(count * sizeof value);
  for (std::size_t i = 0; i < count; ++i) std::memcpy(&out[i * sizeof value], &value, sizeof value);
  return out;
}

inline i64 num_statistics(const row& r) {
  return r.on.extent == 1 ? r.on.shape[r.on.shape.rank - 1] : num_elements(r) / r.on.extent;
}

/// Squared ranges and sensitivities of tiles, one array after another.
inline std::vector<u8> make_allocation(i64 num_tiles) {
  const auto tiles = std::size_t(num_tiles);
  const std::vector<float>& random = deviates();
  std::vector<u8> out(tiles * (sizeof(double) + sizeof(float)));
  for (std::size_t t = 0; t < tiles; ++t) {
    const double squared = double(random[2 * t % random.size()]) * random[2 * t % random.size()];
    const float sensitivity = std::fabs(random[(2 * t + 1) % random.size()]);
    std::memcpy(&out[t * sizeof squared], &squared, sizeof squared);
    std::memcpy(&out[tiles * sizeof squared + t * sizeof sensitivity], &sensitivity,
                sizeof sensitivity);
  }
  return out;
}

inline std::vector<u8> make_inputs(const row& r, const plan& p) {
  constexpr std::size_t samples = 64;
  if (r.what() == primitive::allocate_bits) return make_allocation(p.num_tiles());
  if (r.what() == primitive::expand_sensitivity) return bytes_of_copies(samples, 0.5f);
  if (r.way == path::in_range) return bytes_of_copies(1, range{-2.0f, 2.0f});
  if (r.way == path::normalised) return bytes_of_copies(2 * std::size_t(num_statistics(r)), 0.5f);
  return {};
}

}  // namespace detail

inline task::task(const row& of)
    : r(of),
      pooling(detail::make_max_pool_plan(of)),
      plan(pooling.num_inputs() > 0 ? pooling.codes() : detail::make_plan(of)),
      book(detail::make_codebook(of)),
      inputs(detail::make_inputs(of, plan)) {}

inline u64 task::size(operand which) const {
  const bool pools = pooling.num_inputs() > 0;
  switch (which) {
    case operand::x:
      return tensor_bytes(r);
    case operand::y:
      return pools ? u64(pooling.num_outputs()) * u64(size_bytes(r.type)) : tensor_bytes(r);
    case operand::blob:
      return u64(r.on.num_parts) * plan.size_bytes();
    case operand::given:
      return inputs.size();
    case operand::tile_bits:
      return r.way == path::mixed ? u64(plan.num_tiles()) : 0;
    case operand::tile_index:
      return tile_index_bytes(plan);
    case operand::result:
      break;
    case operand::workspace:
      return 0;
  }
  switch (r.what()) {
    case primitive::cub_min_max:
      return sizeof(range);
    case primitive::block_min_max:
      return u64((num_elements(r) - 1) / elements_per_block_range + 1) * sizeof(range);
    case primitive::group_min_max:
      return u64(plan.num_groups()) * sizeof(range);
    case primitive::pool:
      return u64(plan.num_cells()) * u64(size_bytes(plan.codec().meta));
    case primitive::measure:
      return u64(plan.num_groups() + 1) * sizeof(quality);
    case primitive::expand_sensitivity:
      return u64(plan.num_tiles()) * sizeof(float);
    default:
      return u64(plan.num_tiles()) * sizeof(double);  // squared ranges
  }
}

inline std::vector<u8> task::content(operand which) const {
  if (which == operand::given) return inputs;
  if (which == operand::tile_bits && r.way == path::mixed) return detail::make_tile_bits(r);
  if (which != operand::x && which != operand::y) return {};
  return r.axes->types.empty() ? random_codes() : deviates_as(r.type);
}

}  // namespace furl::bench
