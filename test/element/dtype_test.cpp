// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Conversions, exhaustively: every 16-bit pattern, and between each pair of neighbours the numbers
// at which a rounding can change its mind.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "furl/detail/number.hpp"
#include "support/inputs.hpp"
#include "support/reference.hpp"

namespace furl::test {
namespace {

using reference::bf16_format;
using reference::decode;
using reference::f16_format;
using reference::format16;

/// Both formats behind the same names.
struct f16_codec {
  static constexpr format16 format = f16_format;
  static constexpr u16 infinity = 0x7c00;
  static float to_f32(u16 bits) { return f32_from_f16(bits); }
  static u16 nearest(float x) { return f16_nearest(x); }
  static u16 saturated(float x) { return f16_saturated(x); }
};
struct bf16_codec {
  static constexpr format16 format = bf16_format;
  static constexpr u16 infinity = 0x7f80;
  static float to_f32(u16 bits) { return f32_from_bf16(bits); }
  static u16 nearest(float x) { return bf16_nearest(x); }
  static u16 saturated(float x) { return bf16_saturated(x); }
};

template <class Codec>
class Dtype16 : public testing::Test {};
using codecs = testing::Types<f16_codec, bf16_codec>;
struct codec_name {
  template <class Codec>
  static std::string GetName(int) {
    return Codec::format.fraction_bits == f16_format.fraction_bits ? "f16" : "bf16";
  }
};
TYPED_TEST_SUITE(Dtype16, codecs, codec_name);

TYPED_TEST(Dtype16, EveryPatternToF32) {
  for (u32 bits = 0; bits <= 0xffff; ++bits) {
    const auto pattern = static_cast<u16>(bits);
    const double expected = decode(pattern, TypeParam::format);
    const float got = TypeParam::to_f32(pattern);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(got)) << bits;
    } else {
      EXPECT_EQ(static_cast<double>(got), expected) << bits;
      EXPECT_EQ(std::signbit(got), (bits & 0x8000) != 0) << bits;
    }
  }
}

TYPED_TEST(Dtype16, EveryPatternComesBack) {
  for (u32 bits = 0; bits <= 0xffff; ++bits) {
    const auto pattern = static_cast<u16>(bits);
    const u32 magnitude = bits & 0x7fffu;
    const u16 expected = magnitude > TypeParam::infinity ? u16(0x7fff) : pattern;
    EXPECT_EQ(TypeParam::nearest(TypeParam::to_f32(pattern)), expected);
    const u16 largest = static_cast<u16>((bits & 0x8000u) | (TypeParam::infinity - 1u));
    EXPECT_EQ(TypeParam::saturated(TypeParam::to_f32(pattern)),
              magnitude == TypeParam::infinity ? largest : expected);
  }
}

/// Calls check(below, above, x, mid) for finite neighbours below < above in magnitude and each
/// magnitude x at a corner between them. Past the largest finite pattern comes the power of two
/// that would follow if there were one: IEEE rounds to nearest as if.
template <class Codec, class Check>
void for_each_corner(const Check& check) {
  for (u16 below = 0; below < Codec::infinity; ++below) {
    const u16 above = static_cast<u16>(below + 1);
    const double low = decode(below, Codec::format);
    const double high =
        above == Codec::infinity
            ? 2 * decode(static_cast<u16>(above - (1 << Codec::format.fraction_bits)),
                         Codec::format)
            : decode(above, Codec::format);
    const double mid = (low + high) / 2;
    const auto low_f32 = static_cast<float>(low);
    const auto mid_f32 = static_cast<float>(mid);
    const float high_f32 = high > static_cast<double>(std::numeric_limits<float>::max())
                               ? infinity
                               : static_cast<float>(high);
    for (const float x :
         {low_f32, std::nextafter(low_f32, infinity), std::nextafter(mid_f32, 0.0f), mid_f32,
          std::nextafter(mid_f32, infinity), std::nextafter(high_f32, 0.0f), high_f32})
      check(below, above, x, mid);
  }
}

TYPED_TEST(Dtype16, NearestAtEveryCorner) {
  for_each_corner<TypeParam>([](u16 below, u16 above, float x, double mid) {
    const u16 even = below % 2 == 0 ? below : above;
    const u16 nearest = x == mid ? even : x < mid ? below : above;
    EXPECT_EQ(TypeParam::nearest(x), nearest) << x;
    EXPECT_EQ(TypeParam::nearest(-x), nearest | 0x8000u) << x;
    const u16 finite = nearest == TypeParam::infinity ? below : nearest;
    EXPECT_EQ(TypeParam::saturated(x), finite) << x;
    EXPECT_EQ(TypeParam::saturated(-x), finite | 0x8000u) << x;
  });
}

TEST(Dtype, Bf16DirectedAtEveryCorner) {
  for_each_corner<bf16_codec>([](u16 below, u16 above, float x, double) {
    const auto value = [](u16 pattern) { return decode(pattern, bf16_format); };
    // Above the largest finite pattern value(above) is infinite, as is x when it equals it.
    const u16 towards_zero = x == value(above) ? above : below;
    const u16 away = x == value(below) ? below : above;
    EXPECT_EQ(bf16_down(x), towards_zero) << x;
    EXPECT_EQ(bf16_up(x), away) << x;
    EXPECT_EQ(bf16_down(-x), away | 0x8000u) << x;
    EXPECT_EQ(bf16_up(-x), towards_zero | 0x8000u) << x;
  });
}

// All f32 patterns would take minutes: a prime step visits every exponent and sign.
TEST(Dtype, SampledF32PatternsAsReference) {
  using reference::direction;
  using reference::encode;
  for (u64 wide = 0; wide < (1ull << 32); wide += 65521) {
    const u32 bits = static_cast<u32>(wide);
    const float x = float_of(bits);
    EXPECT_EQ(f16_nearest(x), encode(x, f16_format, direction::nearest)) << bits;
    EXPECT_EQ(f16_saturated(x), encode(x, f16_format, direction::saturated)) << bits;
    EXPECT_EQ(bf16_nearest(x), encode(x, bf16_format, direction::nearest)) << bits;
    EXPECT_EQ(bf16_down(x), encode(x, bf16_format, direction::down)) << bits;
    EXPECT_EQ(bf16_up(x), encode(x, bf16_format, direction::up)) << bits;
    EXPECT_EQ(bf16_saturated(x), encode(x, bf16_format, direction::saturated)) << bits;
  }
}

TEST(Dtype, EveryNanBecomesTheOneNan) {
  for (const u32 bits : {0x7f800001u, 0x7fc00000u, 0x7fffffffu, 0xff800001u, 0xffc12345u, ~0u}) {
    const float nan = float_of(bits);
    EXPECT_EQ(bf16_nearest(nan), 0x7fff);
    EXPECT_EQ(bf16_down(nan), 0x7fff);
    EXPECT_EQ(bf16_up(nan), 0x7fff);
    EXPECT_EQ(bf16_saturated(nan), 0x7fff);
    EXPECT_EQ(f16_nearest(nan), 0x7fff);
    EXPECT_EQ(f16_saturated(nan), 0x7fff);
    EXPECT_EQ(bits_of(saturate_to<float>(nan)), 0x7fffffffu);
    EXPECT_EQ(bits_of(round_to<float>(nan)), 0x7fffffffu);
  }
}

TEST(Dtype, ByTypeTakesTheRightConversion) {
  EXPECT_EQ(saturate_to<f16>(1e6f).bits, 0x7bff);
  EXPECT_EQ(round_to<f16>(1e6f).bits, 0x7c00);
  EXPECT_EQ(saturate_to<bf16>(-infinity).bits, 0xff7f);
  EXPECT_EQ(round_to<bf16>(-infinity).bits, 0xff80);
  EXPECT_EQ(saturate_to<float>(infinity), infinity);
  EXPECT_EQ(to_f32(f16{0x3e00}), 1.5f);
  EXPECT_EQ(to_f32(bf16{0x3fc0}), 1.5f);
  EXPECT_STREQ(name(dtype::f32), "f32");
  EXPECT_STREQ(name(dtype::f16), "f16");
  EXPECT_STREQ(name(dtype::bf16), "bf16");
}

}  // namespace
}  // namespace furl::test
