// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// The parameters of groups without divisions, against those with them: over all significands, with
// every reciprocal that a device may give.

#include "furl/detail/usual_group.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace furl {
namespace {

/// 1 / x, so many units in the last place away.
struct inexact_reciprocal {
  int units;

  float operator()(float x) const { return float_of(bits_of(1.0f / x) + u32(units)); }
};

/// Expects that a group is as make_group has it, or left to it. Returns whether it is left.
template <class T>
bool is_left(float lo, float hi, int bits, dtype meta, int units) {
  const inexact_reciprocal reciprocal{units};
  const detail::group_scale scale =
      detail::make_scale(bits, meta, reciprocal(detail::levels_of(bits)));
  group_params found;
  if (!detail::make_usual_group<T>(lo, hi, scale, reciprocal, found)) return true;
  const group_params expected = make_group(lo, hi, bits, meta);
  const auto differ = [](float a, float b) { return bits_of(a) != bits_of(b); };
  if (differ(found.lo, expected.lo) || differ(found.step, expected.step) ||
      differ(found.inverse, expected.inverse))
    ADD_FAILURE() << lo << ' ' << hi << ", " << bits << " bits: " << found.step << ' '
                  << found.inverse << ", not " << expected.step << ' ' << expected.inverse;
  return false;
}

// Sanitizers see as much in a part of them.
#if defined(FURL_SANITIZED)
constexpr u32 significand_step = 47;  // which hits the last
#else
constexpr u32 significand_step = 1;
#endif

TEST(UsualGroup, IsThatOfDivisionsForAllSignificands) {
  for (const dtype meta : {dtype::bf16, dtype::f32}) {
    for (int units = -1; units <= 1; ++units) {
      for (u32 significand = 0; significand < 1u << 23 && !testing::Test::HasFailure();
           significand += significand_step) {
        // All widths at one bit, where the step is the width; at others a part of them.
        const float width = float_of(0x3f800000u | significand);
        const bool left = is_left<float>(0.0f, width, 1, meta, units);
        if (left != (meta == dtype::f32 && significand == 0x7fffffu)) ADD_FAILURE() << width;
        const int bits = 2 + int(significand % 7);
        is_left<float>(0.0f, width, bits, meta, units);
      }
    }
  }
}

TEST(UsualGroup, LeavesWhatIsNotUsual) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float largest = std::numeric_limits<float>::max();
  for (const dtype meta : {dtype::bf16, dtype::f32}) {
    for (int bits = 1; bits <= 8; ++bits) {
      EXPECT_TRUE(is_left<float>(nan, nan, bits, meta, 0));
      EXPECT_TRUE(is_left<float>(-infinity, 0.0f, bits, meta, 0));
      EXPECT_TRUE(is_left<float>(0.0f, infinity, bits, meta, 0));
      EXPECT_TRUE(is_left<float>(infinity, infinity, bits, meta, 0));
      EXPECT_TRUE(is_left<float>(-largest, largest, bits, meta, 0));
      EXPECT_TRUE(is_left<float>(0.0f, smallest_normal, bits, meta, 0));
    }
  }
}

TEST(UsualGroup, TakesFlatGroups) {
  for (const dtype meta : {dtype::bf16, dtype::f32}) {
    for (const float value : {0.0f, -0.0f, 1.0f, -3.0f, 0x1p-126f, 0x1p127f}) {
      EXPECT_FALSE(is_left<float>(value, value, 2, meta, 0)) << value;
      EXPECT_FALSE(is_left<bf16>(value, value, 2, meta, 0)) << value;
    }
    EXPECT_FALSE(is_left<float>(-0.0f, 0.0f, 2, meta, 0));
  }
}

TEST(UsualGroup, IsThatOfDivisionsForRandomRanges) {
  std::mt19937 random(1);
  for (int i = 0; i < 2000000 && !testing::Test::HasFailure(); ++i) {
    float lo = float_of(u32(random()));
    float hi = float_of(u32(random()));
    if (std::isnan(lo) || std::isnan(hi)) lo = hi = std::numeric_limits<float>::quiet_NaN();
    if (hi < lo) std::swap(lo, hi);
    const int bits = 1 + i % 8;
    const int units = i % 3 - 1;
    const dtype meta = i % 2 == 0 ? dtype::bf16 : dtype::f32;
    is_left<float>(lo, hi, bits, meta, units);
    const auto narrow = [](float x) { return float_of(bits_of(x) & 0xffff0000u); };
    is_left<bf16>(narrow(lo), narrow(hi), bits, meta, units);
  }
}

}  // namespace
}  // namespace furl
