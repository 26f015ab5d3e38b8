// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

#include "furl/plan.hpp"

#include <gtest/gtest.h>

#include <string>
#include <type_traits>

#include "support/run.hpp"

namespace furl::test {
namespace {

constexpr i64 most = 0x7fffffffffffffff;

static_assert(std::is_trivially_copyable_v<plan>);
static_assert(std::is_trivially_copyable_v<codec>);
static_assert(plan::make(codec{}, {1024})->size_bytes() == 256 + 16, "plans work at compile time");
static_assert(plan{}.size_bytes() == 0 && plan{}.num_elements() == 0);

codec with_bits(int bits) {
  codec c;
  c.bits = bits;
  return c;
}
codec with_group(int group) {
  codec c;
  c.group = group;
  return c;
}
codec with_window(const extents& window) {
  codec c;
  c.window = window;
  return c;
}

void expect_refused(const result<plan>& made, const char* argument, i64 value, const char* limit) {
  EXPECT_FALSE(made);
  EXPECT_EQ(made.status().code, error::out_of_range);
  EXPECT_STREQ(made.status().argument, argument);
  EXPECT_EQ(made.status().value, value);
  EXPECT_NE(std::string(made.status().limit).find(limit), std::string::npos) << made.status().limit;
}

TEST(Plan, RefusesBits) {
  for (const int bits : {-1, 0, 9, 1 << 30, -(1 << 30)}) {
    expect_refused(plan::make(with_bits(bits), {8}), "codec.bits", bits, "1..8");
    expect_refused(plan::make_codes(bits, {8}), "bits", bits, "1..8");
  }
  EXPECT_TRUE(plan::make_mixed(with_bits(99), {8}, 1)) << "codec.bits is ignored by a mixed plan";
}

TEST(Plan, RefusesGroups) {
  for (const int group : {-256, -1, 0, 1, 16, 33, 48, 255, 2048, 100000}) {
    expect_refused(plan::make(with_group(group), {8}), "codec.group", group, "1024");
    expect_refused(plan::make_mixed(with_group(group), {8}, 1), "codec.group", group, "1024");
  }
}

TEST(Plan, RefusesMetaAndRounding) {
  codec c;
  c.meta = dtype::f16;
  expect_refused(plan::make(c, {8}), "codec.meta", i64(dtype::f16), "bf16");
  c.meta = static_cast<dtype>(7);
  expect_refused(plan::make(c, {8}), "codec.meta", 7, "bf16");
  c = {};
  c.rounding = static_cast<rounding>(3);
  expect_refused(plan::make(c, {8}), "codec.rounding", 3, "dithered");
  c = {};
  c.coding = static_cast<coding>(3);
  expect_refused(plan::make(c, {8}), "codec.coding", 3, "rotated");
  expect_refused(plan::make_mixed(c, {8}, 1), "codec.coding", 3, "rotated");
}

TEST(Plan, RefusesWhatRotatedCodesHaveNoChoiceOf) {
  const auto refused = [](const codec& c, const char* argument, i64 value, const char* limit) {
    expect_refused(plan::make(c, {8}), argument, value, limit);
  };
  codec good;
  good.coding = coding::rotated;
  for (const int bits : {1, 2, 3, 4}) {
    good.bits = bits;
    EXPECT_TRUE(plan::make(good, {8}));
  }
  codec c = good;
  for (const int bits : {5, 6, 8}) {
    c.bits = bits;
    refused(c, "codec.bits", bits, "rotated");
  }
  c = good;
  for (const int group : {32, 128, 512, 1024}) {
    c.group = group;
    refused(c, "codec.group", group, "256");
  }
  c = good;
  c.meta = dtype::f32;
  refused(c, "codec.meta", i64(dtype::f32), "bf16");
  c = good;
  for (const rounding mode : {rounding::nearest, rounding::dithered}) {
    c.rounding = mode;
    refused(c, "codec.rounding", i64(mode), "stochastic");
  }
  expect_refused(plan::make_mixed(good, {8}, 1), "codec.coding", 1, "min_max");
}

TEST(Plan, SizesOfRotatedCodes) {
  for (const int bits : {1, 2, 3, 4}) {
    for (const i64 n : {1, 256, 1023, 1024, 1025, 9999}) {
      codec c;
      c.bits = bits;
      c.coding = coding::rotated;
      const plan p = *plan::make(c, {n});
      const u64 tiles = u64(n + 1023) / 1024;
      EXPECT_EQ(p.num_groups(), i64(4 * tiles));
      EXPECT_EQ(p.meta_offset(), tiles * 128 * u64(bits));
      EXPECT_EQ(p.meta_end(), p.meta_offset() + tiles * 8);
      EXPECT_EQ(p.lfc_offset(), p.meta_offset() + (tiles + 1) / 2 * 16);
      EXPECT_EQ(p.size_bytes(), p.lfc_offset());
      EXPECT_TRUE(p.needs_key());
    }
  }
  EXPECT_FALSE(plan::make({}, {8})->needs_key());
  EXPECT_FALSE(plan{}.needs_key());
  codec dithered;
  dithered.rounding = rounding::dithered;
  EXPECT_TRUE(plan::make(dithered, {8})->needs_key());
  EXPECT_TRUE(plan::make_mixed(dithered, {8}, 3)->needs_key());
  EXPECT_NE(*plan::make(dithered, {8}), *plan::make({}, {8}));
}

TEST(Plan, RefusesShapes) {
  const extents nine{1, 1, 1, 1, 1, 1, 1, 1, 1};
  expect_refused(plan::make(codec{}, nine), "shape.rank", 9, "0..8");
  expect_refused(plan::make_codes(1, nine), "shape.rank", 9, "0..8");
  extents negative_rank;
  negative_rank.rank = -1;
  expect_refused(plan::make(codec{}, negative_rank), "shape.rank", -1, "0..8");
  expect_refused(plan::make(codec{}, {4, -3}), "shape", -3, "negative");
  expect_refused(plan::make(codec{}, {0, -1}), "shape", -1, "negative");
  expect_refused(plan::make(codec{}, {most, 2}), "shape", most, "2^63");
  expect_refused(plan::make(codec{}, {i64(1) << 32, i64(1) << 31}), "shape", i64(1) << 32, "2^63");
  expect_refused(plan::make(codec{}, {i64(1) << 32, i64(1) << 32}), "shape", i64(1) << 32, "2^63");
  // The elements fit, the blob does not: 8 bits and 8 / 32 bytes each.
  codec wide = with_bits(8);
  wide.group = 32;
  wide.meta = dtype::f32;
  expect_refused(plan::make(wide, {most - 4096}), "shape", most - 4096, "2^63 bytes");
  // Codes and means are each too large: their sum would wrap around to a blob of 0 bytes.
  wide.window = {2};
  for (const i64 count : {most, most - most / 8, most - most / 5})
    expect_refused(plan::make(wide, {count}), "shape", count, "2^63 bytes");
}

TEST(Plan, RefusesWindows) {
  const auto refused = [](const extents& window, const extents& shape, const char* argument,
                          i64 value, const char* limit) {
    expect_refused(plan::make(with_window(window), shape), argument, value, limit);
  };
  refused({8}, {4, 4}, "codec.window.rank", 1, "rank of the shape");
  refused({1, 8, 8}, {4, 4}, "codec.window.rank", 3, "rank of the shape");
  refused({8}, {}, "codec.window.rank", 1, "rank of the shape");
  refused({1, 0}, {4, 4}, "codec.window", 0, "1..64");
  refused({-8, 1}, {4, 4}, "codec.window", -8, "1..64");
  refused({1, 65}, {4, 400}, "codec.window", 65, "1..64");
  refused({1, most}, {4, 400}, "codec.window", most, "1..64");
  refused({8, 1, 8}, {9, 9, 9}, "codec.window", 8, "consecutive");
  refused({2, 2, 2, 2}, {9, 9, 9, 9}, "codec.window", 2, "three");
  refused({64, 65 - 1, 2}, {99, 99, 99}, "codec.window", 8192, "4096");
  EXPECT_TRUE(plan::make(with_window({64, 64, 1}), {99, 99, 99}));
  EXPECT_TRUE(plan::make(with_window({16, 16, 16}), {99, 99, 99}));
  EXPECT_TRUE(plan::make(with_window({64}), {1})) << "a width may exceed its dimension";
}

TEST(Plan, RefusesSumsOfWidths) {
  const extents three_tiles{2049};
  for (const u64 sum : {u64(3), u64(17), u64(24)})
    EXPECT_TRUE(plan::make_mixed(codec{}, three_tiles, sum)) << sum;
  for (const u64 sum : {u64(0), u64(2), u64(25), u64(1) << 62, ~u64(0)})
    expect_refused(plan::make_mixed(codec{}, three_tiles, sum), "sum_of_bits", i64(sum), "1..8");
  EXPECT_TRUE(plan::make_mixed(codec{}, {0}, 0));
  expect_refused(plan::make_mixed(codec{}, {0}, 1), "sum_of_bits", 1, "1..8");
}

TEST(Plan, EmptyShapesAreCheckedAllTheSame) {
  for (const extents& shape : {extents{0}, extents{0, 8}, extents{8, 0}, extents{most, most, 0}}) {
    const plan p = make_plan(codec{}, shape);
    EXPECT_EQ(p.num_elements(), 0);
    EXPECT_EQ(p.num_tiles(), 0);
    EXPECT_EQ(p.num_groups(), 0);
    EXPECT_EQ(p.size_bytes(), 0u);
    EXPECT_EQ(p.bits_per_value(), 0.0);
    EXPECT_EQ(p.shape(), shape);
    EXPECT_FALSE(plan::make(with_bits(9), shape));
  }
  const plan pooled = make_plan(with_window({1, 8}), {8, 0});
  EXPECT_EQ(pooled.num_cells(), 0);
  EXPECT_EQ(pooled.size_bytes(), 0u);
  EXPECT_FALSE(plan::make(with_window({8}), {8, 0}));
}

TEST(Plan, NoWindowOrOnesIsNoLfc) {
  EXPECT_FALSE(make_plan(codec{}, {4, 4}).has_lfc());
  EXPECT_FALSE(make_plan(with_window({1, 1}), {4, 4}).has_lfc());
  EXPECT_EQ(make_plan(with_window({1, 1}), {4, 4}).size_bytes(),
            make_plan({}, {4, 4}).size_bytes());
  EXPECT_TRUE(make_plan(with_window({1, 2}), {4, 4}).has_lfc());
}

TEST(Plan, SizesOfEveryCodecAndCount) {
  for (const i64 n : {1, 31, 32, 33, 127, 128, 129, 1023, 1024, 1025, 4097, 100000})
    for (int bits = 1; bits <= 8; ++bits)
      for (int group = 32; group <= 1024; group *= 2)
        for (const dtype meta : {dtype::f32, dtype::bf16})
          for (const i64 window : {1, 3, 64}) {
            codec c = with_bits(bits);
            c.group = group;
            c.meta = meta;
            c.window = {window};
            const auto expected = reference::layout_of({c, {n}});
            const plan p = make_plan(c, {n});
            ASSERT_EQ(p.meta_offset(), expected.meta) << n;
            ASSERT_EQ(p.lfc_offset(), expected.lfc) << n;
            ASSERT_EQ(p.size_bytes(), expected.size) << n;
            ASSERT_EQ(p.num_tiles(), i64(expected.tile.size())) << n;
            ASSERT_EQ(p.num_groups(), (n - 1) / group + 1) << n;
            ASSERT_DOUBLE_EQ(p.bits_per_value(), 8.0 * double(expected.size) / double(n));
          }
}

TEST(Plan, OfCodesHasNoMetadata) {
  const plan p = *plan::make_codes(3, {5, 300});
  EXPECT_EQ(p.kind(), plan_kind::codes);
  EXPECT_EQ(p.num_groups(), 0);
  EXPECT_EQ(p.size_bytes(), 2u * 128 * 3);
  EXPECT_EQ(p.meta_offset(), p.size_bytes());
  EXPECT_EQ(p.lfc_offset(), p.size_bytes());
}

// The largest tensors whose blob fits: no count may overflow on the way.
TEST(Plan, CountsReachTheirLimit) {
  codec c = with_bits(1);
  c.group = 1024;
  for (const i64 n : {most, most - 1022, most - 1023, most - 1024}) {
    const result<plan> p = plan::make(c, {n});
    ASSERT_TRUE(p) << to_string(p.status());
    const i64 tiles = n / 1024 + (n % 1024 != 0 ? 1 : 0);
    EXPECT_EQ(p->num_tiles(), tiles);
    EXPECT_EQ(p->num_groups(), tiles);
    EXPECT_EQ(p->meta_offset(), u64(tiles) * 128);
    EXPECT_TRUE(plan::make_codes(1, {n}));
    EXPECT_TRUE(plan::make_mixed(c, {n}, u64(tiles)));
  }
}

TEST(Plan, ComparesAllThatItWasMadeFrom) {
  const codec base = with_window({1, 4});
  const extents shape{6, 9};
  const plan p = make_plan(base, shape);
  EXPECT_EQ(p, make_plan(base, shape));
  EXPECT_FALSE(p != make_plan(base, shape));
  codec bits = base, group = base, meta = base, nearest = base, window = base;
  bits.bits = 3;
  group.group = 64;
  meta.meta = dtype::f32;
  nearest.rounding = rounding::nearest;
  window.window = {4, 1};
  for (const codec& other : {bits, group, meta, nearest, window}) {
    EXPECT_NE(base, other);
    EXPECT_NE(p, make_plan(other, shape));
  }
  EXPECT_NE(p, make_plan(base, {9, 6}));
  EXPECT_NE(*plan::make_codes(2, {54}), make_plan(codec{}, {54}));
  EXPECT_NE(*plan::make_mixed({}, {2000}, 4), *plan::make_mixed({}, {2000}, 5));
  EXPECT_EQ(plan{}, plan{});
  EXPECT_NE((extents{1, 2}), (extents{1, 2, 0}));
}

// extents is a plain struct: what lies beyond its rank means nothing.
TEST(Plan, SizesBeyondTheRankDoNotMatter) {
  extents shape{6, 9};
  shape.size[5] = 77;
  codec c = with_window({1, 4});
  c.window.size[2] = 3;
  const plan p = make_plan(c, shape);
  const plan clean = make_plan(with_window({1, 4}), {6, 9});
  EXPECT_EQ(p.size_bytes(), clean.size_bytes());
  EXPECT_EQ(p, clean);
}

}  // namespace
}  // namespace furl::test
