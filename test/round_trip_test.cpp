// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Whole blobs and outputs against the slow reference, byte for byte, over the codec's dimensions.

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "support/inputs.hpp"
#include "support/run.hpp"

namespace furl::test {
namespace {

class Matrix : public testing::TestWithParam<std::tuple<int, int>> {};

// 8 widths x 6 groups, and within each the types, metadata and roundings.
TEST_P(Matrix, FlatAsReference) {
  const auto [bits, group] = GetParam();
  u32 seed = static_cast<u32>(bits * 10000 + group);
  for (const dtype type : all_types)
    for (const dtype meta : {dtype::f32, dtype::bf16})
      for (const rounding round : {rounding::stochastic, rounding::nearest}) {
        codec c;
        c.bits = bits;
        c.group = group;
        c.meta = meta;
        c.rounding = round;
        const i64 n = 1 + ++seed * 7919 % 2500;
        SCOPED_TRACE(std::to_string(n) + " of " + name(type) + ", meta " + name(meta));
        const reference::problem p{c, {n}};
        expect_as_reference(p, normal_input(n, type, seed), type, {seed, ~u64(seed)},
                            {seed % 3 == 0 ? std::size_t(0) : seed % 16});
      }
}
INSTANTIATE_TEST_SUITE_P(WidthsAndGroups, Matrix,
                         testing::Combine(testing::Range(1, 9),
                                          testing::Values(32, 64, 128, 256, 512, 1024)),
                         [](const auto& parameters) {
                           return "bits" + std::to_string(std::get<0>(parameters.param)) +
                                  "_group" + std::to_string(std::get<1>(parameters.param));
                         });

class Sizes : public testing::TestWithParam<i64> {};

TEST_P(Sizes, AsReference) {
  const i64 n = GetParam();
  for (const dtype type : all_types)
    for (const int group : {32, 128, 1024}) {
      codec c;
      c.bits = 3;
      c.group = group;
      const reference::problem flat{c, {n}};
      const u32 seed = static_cast<u32>(n) + 1;
      expect_as_reference(flat, normal_input(n, type, seed), type, {5, 6});
      c.window = {5};
      c.meta = dtype::f32;
      expect_as_reference({c, {n}}, normal_input(n, type, seed), type, {5, 7});
    }
}
INSTANTIATE_TEST_SUITE_P(Odd, Sizes,
                         testing::Values(0, 1, 2, 7, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255,
                                         256, 257, 785, 1023, 1024, 1025, 2047, 2048, 2305, 3333,
                                         4095, 4096, 4097));

TEST(RoundTrip, RankZeroIsOneElement) {
  for (const dtype type : all_types) {
    expect_as_reference({codec{}, {}}, normal_input(1, type, 3), type, {1, 2});
    ASSERT_EQ(make_plan({}, {}).num_elements(), 1);
  }
}

// Shape means nothing to a flat codec.
TEST(RoundTrip, ShapeOnlyCountsWithoutWindow) {
  const auto x = normal_floats(2 * 3 * 5 * 7 * 11, 4);
  for (const auto& engine : backends()) {
    const auto flat = compress(*engine, make_plan({}, {2310}), x, {1, 2});
    for (const extents& shape : {extents{2, 3, 5, 7, 11}, extents{1, 1, 2310, 1}, extents{30, 77}})
      EXPECT_EQ(compress(*engine, make_plan({}, shape), x, {1, 2}), flat);
  }
}

class Misaligned : public testing::TestWithParam<std::size_t> {};

TEST_P(Misaligned, BytesAreThoseOfTheAlignedRun) {
  const misalignment where{GetParam()};
  for (const dtype type : all_types)
    for (const i64 n : {1, 5, 31, 256, 1024, 2500}) {
      for (const bool pooled : {false, true}) {
        codec c;
        c.group = 128;
        if (pooled) c.window = {8};
        expect_as_reference({c, {n}}, normal_input(n, type, 8), type, {9, 10}, where);
      }
    }
}
INSTANTIATE_TEST_SUITE_P(ByBytes, Misaligned,
                         testing::Values(1, 2, 3, 4, 6, 7, 8, 12, 13, 16, 17, 20, 28, 31, 32, 48));

// A blob takes what follows plan.size_bytes() for another's.
TEST(RoundTrip, ALargerBlobKeepsItsRest) {
  const plan p = make_plan({}, {700});
  const auto x = normal_floats(700, 1);
  for (const auto& engine : backends()) {
    guarded_buffer blob(p.size_bytes() + 100);
    ASSERT_TRUE(engine->compress(p, x, {blob.data(), blob.size()}, {1, 2}));
    EXPECT_TRUE(blob.intact());
    auto got = blob.bytes();
    for (std::size_t i = 0; i < 100; ++i)
      EXPECT_EQ(got[static_cast<std::size_t>(p.size_bytes()) + i], guarded_buffer::canary);
    got.resize(static_cast<std::size_t>(p.size_bytes()));
    EXPECT_EQ(got, compress(*engine, p, x, {1, 2}));
    guarded_buffer y(4 * 700);
    ASSERT_TRUE(engine->decompress(p, {blob.data(), blob.size()}, {y.data(), dtype::f32, 700}));
    EXPECT_EQ(floats_of(y.bytes()), decompress(*engine, p, got));
  }
}

// An element's code depends on its group and its index alone: a prefix has the same tiles.
TEST(RoundTrip, TilesDoNotDependOnWhatFollows) {
  codec c;
  c.bits = 5;
  c.meta = dtype::f32;
  const auto x = normal_floats(7 * 1024 + 77, 12);
  for (const auto& engine : backends()) {
    const plan whole = make_plan(c, {i64(x.size())});
    const auto blob = compress(*engine, whole, x, {3, 4});
    for (const i64 tiles : {1, 2, 5}) {
      const std::vector<float> part(x.begin(), x.begin() + tiles * 1024);
      const plan p = make_plan(c, {tiles * 1024});
      const auto prefix = compress(*engine, p, part, {3, 4});
      EXPECT_TRUE(std::equal(prefix.begin(), prefix.begin() + tiles * 128 * 5, blob.begin()));
      for (i64 g = 0; g < p.num_groups(); ++g) {
        EXPECT_EQ(group_of(p, prefix, g).lo, group_of(whole, blob, g).lo);
        EXPECT_EQ(group_of(p, prefix, g).step, group_of(whole, blob, g).step);
      }
    }
  }
}

// The promise of FORMAT.md, A7, with no reference in between: |v - r| < step + half a place of v.
TEST(RoundTrip, ErrorIsBelowOneStep) {
  for (const auto& engine : backends())
    for (int bits = 1; bits <= 8; ++bits)
      for (const dtype meta : {dtype::f32, dtype::bf16}) {
        codec c;
        c.bits = bits;
        c.meta = meta;
        const auto x = normal_floats(1500, static_cast<u32>(bits));
        const plan p = make_plan(c, {1500});
        const auto blob = compress(*engine, p, x, {7, 8});
        const auto v = decompress(*engine, p, blob);
        for (std::size_t i = 0; i < x.size(); ++i) {
          const float step = group_of(p, blob, i64(i) / 256).step;
          const float magnitude = std::fabs(v[i]);
          const double half_place = (double(std::nextafter(magnitude, 1e9f)) - magnitude) / 2;
          ASSERT_LT(std::fabs(double(v[i]) - x[i]), step + half_place);
        }
      }
}

}  // namespace
}  // namespace furl::test
