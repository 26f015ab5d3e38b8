// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Dithered codes (FORMAT.md, A12): the blob of stochastic rounding, decoded with its random bits.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "support/inputs.hpp"
#include "support/run.hpp"

namespace furl::test {
namespace {

codec dithered_codec(int bits, int group = 256, dtype meta = dtype::bf16) {
  codec c;
  c.bits = bits;
  c.group = group;
  c.meta = meta;
  c.rounding = rounding::dithered;
  return c;
}

class Dithered : public testing::TestWithParam<int> {};

TEST_P(Dithered, AsReference) {
  const int bits = GetParam();
  u32 seed = 100;
  for (const dtype type : all_types)
    for (const dtype meta : {dtype::f32, dtype::bf16})
      for (const int group : {32, 256, 1024})
        for (const bool pooled : {false, true}) {
          ++seed;
          codec c = dithered_codec(bits, group, meta);
          if (pooled) c.window = {7};
          const i64 n = 1 + seed * 7919 % 2500;
          expect_as_reference({c, {n}}, normal_input(n, type, seed), type, {seed, ~u64(seed)},
                              {seed % 16});
        }
}
INSTANTIATE_TEST_SUITE_P(Bits, Dithered, testing::Range(1, 9));

TEST(Dithered, SizesAsReference) {
  for (const i64 n : {0, 1, 31, 32, 33, 127, 128, 129, 1023, 1024, 1025, 9999})
    for (const dtype type : all_types)
      expect_as_reference({dithered_codec(2, 128), {n}}, normal_input(n, type, u32(n) + 1), type,
                          {8, 9});
}

TEST(Dithered, MixedBitsAndGivenRangesAsReference) {
  reference::problem mixed{dithered_codec(0, 64), {5000}};
  mixed.widths = {1, 8, 3, 2, 5};
  expect_as_reference(mixed, normal_input(5000, dtype::f16, 3), dtype::f16, {1, 2});
  reference::problem given{dithered_codec(3, 32), {40, 50}};
  given.ranges = {{-1.0f, 2.0f}};
  given.scope = range_scope::tensor;
  expect_as_reference(given, normal_input(2000, dtype::f32, 4), dtype::f32, {1, 2});
}

TEST(Dithered, SpecialValuesAsReference) {
  const float largest = std::numeric_limits<float>::max();
  for (const int bits : {1, 2, 8})
    for (const dtype meta : {dtype::f32, dtype::bf16})
      for (const auto& x :
           {std::vector<float>(50, 0.0f), std::vector<float>(50, -0.0f),
            std::vector<float>(50, 0.3f), std::vector<float>(300, -7e30f),
            std::vector<float>{1.0f, nan, 3.0f}, std::vector<float>{1.0f, -infinity, 3.0f},
            std::vector<float>{0.0f, largest}, std::vector<float>{-largest / 2, largest / 2},
            std::vector<float>{0.0f, 1e-38f, 1e-40f}, std::vector<float>{0.0f, 0x1p-126f * 255}})
        for (u64 seed = 0; seed < 8; ++seed)
          expect_as_reference({dithered_codec(bits, 32, meta), {i64(x.size())}}, bytes_of(x),
                              dtype::f32, {seed, 5});
}

TEST(Dithered, BlobIsThatOfStochasticRounding) {
  const auto x = normal_floats(3000, 2);
  for (int bits = 1; bits <= 8; ++bits) {
    codec c = dithered_codec(bits);
    const plan dithered = make_plan(c, {3000});
    c.rounding = rounding::stochastic;
    const plan stochastic = make_plan(c, {3000});
    for (const auto& engine : backends())
      EXPECT_EQ(compress(*engine, dithered, x, {3, 4}), compress(*engine, stochastic, x, {3, 4}));
  }
}

/// Mean squared error over a group whose range is that of the codes, in steps.
struct error_of {
  double mean_square = 0;
  double largest = 0;
};

error_of errors(backend& engine, rounding mode, int bits, const std::vector<float>& x) {
  codec c = dithered_codec(bits, 1024, dtype::f32);
  c.rounding = mode;
  const plan p = make_plan(c, {i64(x.size())});
  const random_key key{11, 12};
  const auto blob = compress(engine, p, x, key);
  const auto y = decompress(engine, p, blob, key);
  error_of out;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double step = group_of(p, blob, i64(i) / 1024).step;
    const double error = (double(y[i]) - x[i]) / step;
    out.mean_square += error * error / double(x.size());
    out.largest = std::fmax(out.largest, std::fabs(error));
  }
  return out;
}

// An error uniform in half a step has a variance of 1/12 of it squared, whatever the value is;
// stochastic rounding has up to 1/4, on average over a step 1/6.
TEST(Dithered, HalfTheVarianceAndHalfAStep) {
  const auto x = uniform_floats(200 * 1024, 6);
  for (const int bits : {1, 2, 3, 4, 6}) {
    for (const auto& engine : backends()) {
      const error_of with = errors(*engine, rounding::dithered, bits, x);
      const error_of without = errors(*engine, rounding::stochastic, bits, x);
      EXPECT_NEAR(with.mean_square, 1.0 / 12, 0.02 / 12) << bits;
      EXPECT_NEAR(with.mean_square / without.mean_square, 0.5, 0.01) << bits;
      EXPECT_LT(with.largest, 0.5 + 1e-5) << bits;
      EXPECT_GT(with.largest, 0.49) << bits;
    }
  }
}

TEST(Dithered, NoBias) {
  codec c = dithered_codec(2, 1024, dtype::f32);
  auto x = uniform_floats(1024, 3);
  x[0] = -1.0f;
  x[1] = 1.0f;
  const plan p = make_plan(c, {1024});
  for (const auto& engine : backends()) {
    std::vector<double> sum(1024);
    constexpr int keys = 4096;
    for (u64 k = 0; k < keys; ++k) {
      const auto y = round_trip(*engine, p, x, {k, 1});
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += y[i];
    }
    const double step = 2.0 / 3;
    // Of an error that is uniform in half a step, and 1/512 for the fixed point.
    const double limit = step * (4.5 / std::sqrt(12.0 * keys) + 1.0 / 512);
    for (std::size_t i = 0; i < sum.size(); ++i) EXPECT_NEAR(sum[i] / keys, x[i], limit) << i;
  }
}

// The rule by hand: code 1 with u = 145 is decoded to the middle of the values that it stands for.
TEST(Dithered, OneValueByHand) {
  const random_key key{1080498384712938553u, 10007601719983423543u};
  ASSERT_EQ(random_bits(3, key), 145u);
  codec c = dithered_codec(2, 32, dtype::f32);
  const plan p = make_plan(c, {5});
  for (const auto& engine : backends()) {
    const auto blob = compress(*engine, p, {0.0f, 0.4f, 1.0f, 1.6f, 3.0f}, key);
    const u32 code = blob[3] & 3u;
    EXPECT_EQ(code, (409u + 145u) >> 8);  // 1.6 is 409.6 / 256
    const auto y = decompress(*engine, p, blob, key);
    EXPECT_EQ(y[3], 2.0f + (255.0f - 290.0f) / 512.0f);
  }
}

}  // namespace
}  // namespace furl::test
