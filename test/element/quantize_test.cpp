// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

#include "furl/detail/quantize.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "support/inputs.hpp"

namespace furl::test {
namespace {

constexpr float largest = std::numeric_limits<float>::max();

void expect_poisoned(const group_params& g) {
  EXPECT_EQ(bits_of(g.lo), f32_nan_bits);
  EXPECT_EQ(bits_of(g.step), f32_nan_bits);
  EXPECT_FALSE(g.coded);
}

TEST(MakeGroup, MetadataIsRoundedOutwards) {
  const group_params g = make_group(1.006f, 4.0f, 2, dtype::bf16);
  EXPECT_EQ(g.lo, 1.0f);    // down: nearest would be 1.0078125, above the smallest element
  EXPECT_EQ(g.step, 1.0f);  // (4 - 1) / 3
  const group_params h = make_group(-1.0f, 2.01f, 2, dtype::bf16);
  EXPECT_EQ(h.lo, -1.0f);
  EXPECT_EQ(h.step, 1.0078125f);  // 1.00333, up
  const group_params n = make_group(-1.006f, 0.0f, 1, dtype::bf16);
  EXPECT_EQ(n.lo, -1.0078125f);  // down is away from zero
  const group_params f = make_group(1.006f, 4.0f, 2, dtype::f32);
  EXPECT_EQ(f.lo, 1.006f);
  EXPECT_EQ(f.step, (4.0f - 1.006f) / 3.0f);
}

TEST(MakeGroup, PoisonedByNanInfinityAndOverflow) {
  const float nan = float_of(f32_nan_bits);
  for (const dtype meta : {dtype::f32, dtype::bf16}) {
    for (int bits = 1; bits <= 8; ++bits) {
      expect_poisoned(make_group(nan, nan, bits, meta));
      expect_poisoned(make_group(0.0f, infinity, bits, meta));
      expect_poisoned(make_group(-infinity, 0.0f, bits, meta));
      expect_poisoned(make_group(-infinity, infinity, bits, meta));
      expect_poisoned(make_group(infinity, infinity, bits, meta));
      expect_poisoned(make_group(-infinity, -infinity, bits, meta));
      expect_poisoned(make_group(-largest, largest, bits, meta));  // hi - lo overflows
    }
  }
  // Finite in f32, but lo' is -infinity in bf16; or the top code is infinite.
  EXPECT_TRUE(make_group(-largest, 0.0f, 1, dtype::f32).coded);
  expect_poisoned(make_group(-largest, -largest, 1, dtype::bf16));
  expect_poisoned(make_group(0.0f, largest, 1, dtype::bf16));
}

TEST(MakeGroup, FlatBelowTheSmallestNormalStep) {
  const group_params below = make_group(0.0f, std::nextafter(0x1p-126f, 0.0f), 1, dtype::f32);
  EXPECT_FALSE(below.coded);
  EXPECT_EQ(bits_of(below.step), 0u);
  EXPECT_TRUE(make_group(0.0f, 0x1p-126f, 1, dtype::f32).coded);
  // In bf16 the step that counts is the one rounded up.
  EXPECT_TRUE(make_group(0.0f, std::nextafter(0x1p-126f, 0.0f), 1, dtype::bf16).coded);
  const group_params constant = make_group(-7.25f, -7.25f, 4, dtype::bf16);
  EXPECT_FALSE(constant.coded);
  EXPECT_EQ(constant.lo, -7.25f);
}

TEST(MakeGroup, ZerosHaveNoSign) {
  for (const dtype meta : {dtype::f32, dtype::bf16}) {
    EXPECT_EQ(bits_of(make_group(-0.0f, -0.0f, 2, meta).lo), 0u);
    EXPECT_EQ(bits_of(make_group(-0.0f, 3.0f, 2, meta).lo), 0u);
    const group_params g = make_group(-3.0f, -0.0f, 2, meta);
    EXPECT_EQ(bits_of(dequantize(3, g.step, g.lo)), 0u);
  }
}

TEST(RoundCode, AddsThenCutsOff) {
  EXPECT_EQ(round_code(256, 255), 1u);
  EXPECT_EQ(round_code(257, 255), 2u);
  EXPECT_EQ(round_code(255, 0), 0u);
  EXPECT_EQ(round_code(255 * 256, 255), 255u);  // the top code stays whatever is drawn
  EXPECT_EQ(round_code(127, nearest_bits), 0u);
  EXPECT_EQ(round_code(128, nearest_bits), 1u);
}

/// Ranges of every magnitude, ends and near-ends of them.
struct random_range {
  explicit random_range(u32 seed) : random(seed) {}
  float next() {
    const float fraction = 1.0f + static_cast<float>(random() >> 9) * 0x1p-23f;
    const float x = std::ldexp(fraction, static_cast<int>(random() % 276) - 149);
    return random() % 2 == 0 ? x : -x;
  }
  std::mt19937 random;
};

// What makes a clamp superfluous (FORMAT.md, A5), and the promise of A7.
TEST(FixedPoint, NeverBeyondTheTopCodeAndWithinOneStep) {
  random_range range(5);
  int coded = 0;
  for (int trial = 0; trial < 40000; ++trial) {
    const float a = range.next();
    const float b =
        trial % 2 == 0 ? range.next() : a * (1.0f + static_cast<float>(trial % 97) / 64);
    const float lo = std::fmin(a, b);
    const float hi = std::fmax(a, b);
    const int bits = trial % 8 + 1;
    const u32 levels = low_bits(bits);
    const group_params g = make_group(lo, hi, bits, trial % 3 == 0 ? dtype::f32 : dtype::bf16);
    if (!g.coded) continue;
    ++coded;
    for (const float r :
         {lo, hi, std::nextafter(lo, hi), std::nextafter(hi, lo), lo / 2 + hi / 2}) {
      const u32 fixed = fixed_point(r, g.lo, g.inverse);
      ASSERT_LE(fixed, 256 * levels) << lo << " " << hi << " " << bits;
      for (const u32 u : {0u, 128u, 255u}) {
        const float v = dequantize(round_code(fixed, u), g.step, g.lo);
        const float magnitude = std::fabs(v);
        const double half_place = (double(std::nextafter(magnitude, infinity)) - magnitude) / 2;
        ASSERT_LT(std::fabs(double(v) - r), g.step + half_place) << lo << " " << hi << " " << bits;
        ASSERT_NE(bits_of(v), 0x80000000u);
      }
    }
  }
  EXPECT_GT(coded, 20000);
}

}  // namespace
}  // namespace furl::test
