// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// A seeded random walk over codecs, shapes, types, alignments, inputs and damaged plans. fuzz/ has
// the same for libFuzzer.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>

#include "furl/plan.hpp"
#include "support/inputs.hpp"
#include "support/run.hpp"

namespace furl::test {
namespace {

class dice {
 public:
  explicit dice(u32 seed) : random_(seed) {}
  /// 0..sides - 1.
  int roll(int sides) { return static_cast<int>(random_() % static_cast<u32>(sides)); }
  u32 word() { return static_cast<u32>(random_()); }

 private:
  std::mt19937 random_;
};

/// A shape of at most `limit` elements.
extents random_shape(dice& d, i64 limit) {
  extents shape;
  shape.rank = d.roll(9);
  i64 left = limit;
  for (int i = 0; i < shape.rank; ++i) {
    const int most = static_cast<int>(std::min<i64>(left, d.roll(4) == 0 ? limit : 20));
    shape.size[i] = d.roll(40) == 0 ? 0 : 1 + d.roll(most);
    left = std::max<i64>(1, left / std::max<i64>(1, shape.size[i]));
  }
  return shape;
}

extents random_window(dice& d, const extents& shape) {
  if (shape.rank == 0 || d.roll(3) == 0) return {};
  extents window = shape;
  for (i64& width : window.size) width = 1;
  for (int i = shape.rank; i < max_rank; ++i) window.size[i] = 0;
  const int first = d.roll(shape.rank);
  for (int i = first; i < std::min(shape.rank, first + 3); ++i) {
    window.size[i] = 2 + d.roll(d.roll(2) == 0 ? 15 : 8);
    if (d.roll(3) == 0) break;
  }
  return window;
}

codec random_codec(dice& d, const extents& shape) {
  codec c;
  c.bits = 1 + d.roll(8);
  c.group = 32 << d.roll(6);
  c.meta = d.roll(2) == 0 ? dtype::bf16 : dtype::f32;
  c.rounding = rounding(d.roll(3));
  if (d.roll(4) == 0) c = rotated_codec(1 + d.roll(max_rotated_bits));
  c.window = random_window(d, shape);
  if (d.roll(12) == 0) {
    c.coding = coding::min_max;
    c.group = 32 << d.roll(6);
    c.window = {};
    c.by_lines = true;
  }
  if (d.roll(12) == 0) c = positives_codec(1 + d.roll(4));
  return c;
}

/// Ordinary numbers, one magnitude, any bit patterns, or mostly constants.
std::vector<u8> random_tensor(dice& d, i64 n, dtype type) {
  const auto count = static_cast<std::size_t>(n);
  const std::size_t size = type == dtype::f32 ? 4 : 2;
  const int kind = d.roll(4);
  if (kind == 0) return random_bytes(count * size, d.word());
  auto x = normal_floats(count, d.word());
  const float scale = std::ldexp(1.0f, d.roll(kind == 1 ? 270 : 12) - (kind == 1 ? 143 : 6));
  for (float& v : x) v = kind == 3 && d.roll(8) != 0 ? scale : v * scale;
  return reference::from_floats(x, type);
}

/// Statistics of some elements in a row, between one and all of them.
void add_statistics(dice& d, i64 n, reference::problem& p) {
  p.extent = 1 + d.roll(d.roll(2) == 0 ? 40 : 3000);
  const auto count = static_cast<std::size_t>(1 + d.roll(static_cast<int>(n / p.extent) + 3));
  if (d.roll(3) != 0) p.mean = normal_floats(count, d.word());
  p.inverse_deviation = normal_floats(count, d.word());
}

TEST(Fuzz, AsReference) {
  for (u32 seed = 0; seed < 600; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    dice d(seed);
    const extents shape = random_shape(d, 3000);
    reference::problem p{random_codec(d, shape), shape};
    const i64 n = reference::num_elements(p);
    if (d.roll(4) == 0 && p.codec.coding == coding::min_max && !p.codec.by_lines)
      for (i64 t = 0; t * 1024 < n; ++t) p.widths.push_back(static_cast<u8>(1 + d.roll(8)));
    if (p.widths.empty() && !plan::make(p.codec, shape)) continue;
    const bool may_normalise = p.widths.empty() && !reference::has_window(p) && !p.codec.by_lines &&
                               p.codec.coding != coding::positives;
    if (may_normalise && d.roll(3) == 0) add_statistics(d, n, p);
    const dtype type = all_types[d.roll(3)];
    const auto x = random_tensor(d, n, type);
    const random_key key{u64(d.word()) << 32 | d.word(), u64(d.word()) << 32 | d.word()};
    expect_as_reference(p, x, type, key, {static_cast<std::size_t>(d.roll(20))});
    ASSERT_FALSE(testing::Test::HasFailure());
  }
}

// Damaged in up to four places, a plan is refused, or is a valid one that can be used.
TEST(Fuzz, DamagedPlans) {
  int accepted = 0;
  for (u32 seed = 0; seed < 4000; ++seed) {
    dice d(seed);
    const extents shape = random_shape(d, 2000);
    const result<plan> whole = plan::make(random_codec(d, shape), shape);
    if (!whole) continue;
    plan_bytes bytes = serialize(*whole);
    for (int damage = d.roll(4); damage >= 0; --damage) {
      u8& b = bytes.data[d.roll(96)];
      b = static_cast<u8>(d.roll(2) == 0 ? b ^ (1 << d.roll(8)) : d.roll(70));
    }
    const result<plan> made = deserialize(bytes);
    if (!made) continue;
    const plan_bytes again = serialize(*made);
    ASSERT_EQ(std::memcmp(again.data, bytes.data, sizeof bytes.data), 0);
    if (made->num_elements() > 5000 || made->kind() != plan_kind::uniform) continue;
    ++accepted;
    const auto x = normal_floats(static_cast<std::size_t>(made->num_elements()), seed);
    for (const auto& engine : backends()) {
      const auto blob = compress(*engine, *made, x);
      ASSERT_EQ(reference::layout_of({made->codec(), made->shape()}).size, blob.size());
      decompress(*engine, *made, blob, random_key{});
    }
  }
  EXPECT_GT(accepted, 50);
}

}  // namespace
}  // namespace furl::test
