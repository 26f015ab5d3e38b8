// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Rotated codes of 3 and 4 bits (FORMAT.md, R4b), an element at a time: to the last bit, which the
// codes of random data seldom show.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "furl/detail/rotated.hpp"

namespace furl::test {
namespace {

TEST(RotatedLevels, RangeIsThatOfTheBestUniformQuantisers) {
  for (const auto& [bits, spacing] : {std::pair{3, .5860}, {4, .3352}}) {
    const double range = ((1 << bits) - 1) * spacing;
    const auto square = static_cast<float>(range * range / 256);
    for (float energy = 0x1p-96f; energy < 0x1p127f; energy *= 1.37f) {
      const volatile float product = energy * square;
      const volatile float root = std::sqrt(float(product));
      const volatile float expected = 1 / root;
      ASSERT_EQ(inverse_range(energy, bits), expected) << energy;
    }
    EXPECT_NEAR(inverse_range(256.0f, bits) * range, 1, 1e-6);  // of a root mean square of 1
  }
}

TEST(RotatedLevels, PlacesEndAtZeroAndOne) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(place_in_range(0.0f, 3.0f), 0.5f);
  EXPECT_EQ(place_in_range(-0.0f, 3.0f), 0.5f);
  EXPECT_EQ(place_in_range(0.125f, 2.0f), 0.75f);
  for (const float y : {0.25f, 0.26f, 1e30f, inf}) {
    EXPECT_EQ(place_in_range(y, 2.0f), 1.0f) << y;
    EXPECT_EQ(place_in_range(-y, 2.0f), 0.0f) << y;
  }
  float y = 0.8f;
  for (int i = 0; i < 1000; ++i, y = y < 1.5f ? y * 1.0003f : 0.8f) {
    const float inverse = 0.1f + 0x1.fp-18f * static_cast<float>(i);
    const double exact = double(y) * inverse + 0.5;  // of at most 52 bits
    ASSERT_EQ(place_in_range(y, inverse), static_cast<float>(exact)) << y << ' ' << inverse;
  }
}

// A product rounded before it is rounded to an integer would move what lies beside the middles.
TEST(RotatedLevels, CodesAreNearestToTheExactProduct) {
  for (const int highest : {7, 15}) {
    for (int code = 0; code < highest; ++code) {
      float place = static_cast<float>((code + 0.5) / highest);
      for (int i = 0; i < 8; ++i) place = std::nextafter(place, 0.0f);
      for (int i = 0; i < 17; ++i, place = std::nextafter(place, 1.0f)) {
        const double product = double(place) * highest;
        const double expected = product < code + 0.5   ? code
                                : product > code + 0.5 ? code + 1
                                                       : code + code % 2;
        ASSERT_EQ(code_at(place, float(highest)), expected) << code << " of " << highest;
      }
    }
    EXPECT_EQ(code_at(0.0f, float(highest)), 0);
    EXPECT_EQ(code_at(0.5f, float(highest)), (highest + 1) / 2);  // the even one
    EXPECT_EQ(code_at(1.0f, float(highest)), highest);
    EXPECT_EQ(level_of(0.0f, float(highest)), -highest);
    EXPECT_EQ(level_of(float(highest), float(highest)), highest);
  }
}

}  // namespace
}  // namespace furl::test
