// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// NaN, infinity, overflow, constants, subnormals and zeros (FORMAT.md, A3 and A7).

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "support/inputs.hpp"
#include "support/run.hpp"

namespace furl::test {
namespace {

constexpr float largest = std::numeric_limits<float>::max();
constexpr float smallest = std::numeric_limits<float>::denorm_min();

float from_bits(u32 bits) {
  return floats_of({static_cast<u8>(bits), static_cast<u8>(bits >> 8), static_cast<u8>(bits >> 16),
                    static_cast<u8>(bits >> 24)})[0];
}

u32 bits_at(const std::vector<u8>& f32, std::size_t i) {
  return f32[4 * i] | u32(f32[4 * i + 1]) << 8 | u32(f32[4 * i + 2]) << 16 |
         u32(f32[4 * i + 3]) << 24;
}

class SpecialValues : public testing::Test {
 protected:
  /// Compresses with every back end, checks against the reference, returns what f32 output is.
  static std::vector<u8> decoded(const codec& c, const std::vector<float>& x) {
    const reference::problem p{c, {i64(x.size())}};
    expect_as_reference(p, bytes_of(x), dtype::f32, {3, 5});
    return reference::decompress(p, reference::compress(p, bytes_of(x), dtype::f32, {3, 5}),
                                 dtype::f32);
  }
};

const u32 bad_patterns[] = {0x7f800000, 0xff800000,  // infinities
                            0x7fc00000, 0xffc00000, 0x7f800001, 0xffffffff, 0x7fabcdef};

// At every place of a group, for every bad value: NaN there, and all other bytes as without it.
TEST_F(SpecialValues, PoisonStaysInItsGroup) {
  const auto clean = normal_floats(160, 3);
  for (const dtype meta : {dtype::f32, dtype::bf16}) {
    codec c;
    c.bits = 3;
    c.group = 32;
    c.meta = meta;
    const plan p = make_plan(c, {160});
    for (const auto& engine : backends()) {
      const auto clean_y = decompress(*engine, p, compress(*engine, p, clean, {1, 2}));
      for (const u32 bad : bad_patterns) {
        for (std::size_t place = 64; place < 96; ++place) {
          auto x = clean;
          x[place] = from_bits(bad);
          const auto blob = compress(*engine, p, x, {1, 2});
          const auto y = decompress(*engine, p, blob, dtype::f32);
          for (std::size_t i = 0; i < 160; ++i) {
            if (i / 32 == 2) {
              ASSERT_EQ(bits_at(y, i), 0x7fffffffu) << "bad " << bad << " at " << place;
            } else {
              ASSERT_EQ(floats_of(y)[i], clean_y[i]) << "bad " << bad << " at " << place;
            }
          }
        }
      }
    }
  }
}

// The stored bytes of a poisoned group: the one NaN twice, codes 0.
TEST_F(SpecialValues, PoisonedMetadataIsTheOneNan) {
  std::vector<float> x(33, 1.0f);
  x[5] = from_bits(0xffc00123);
  x[32] = -infinity;
  codec c;
  c.group = 32;
  for (const dtype meta : {dtype::f32, dtype::bf16}) {
    c.meta = meta;
    const plan p = make_plan(c, {33});
    const std::size_t size = meta == dtype::f32 ? 4 : 2;
    for (const auto& engine : backends()) {
      const auto blob = compress(*engine, p, x);
      const auto at = static_cast<std::size_t>(p.meta_offset());
      for (std::size_t i = 0; i < 4 * size; ++i)
        EXPECT_EQ(blob[at + i], i % size == size - 1 ? 0x7f : 0xff);
      EXPECT_TRUE(std::all_of(blob.begin(), blob.begin() + 256, [](u8 b) { return b == 0; }));
    }
  }
}

TEST_F(SpecialValues, FiniteGroupsArePoisonedWhenTheyLeaveTheNumbers) {
  codec f32_meta;
  f32_meta.meta = dtype::f32;
  const auto all_nan = [](const std::vector<u8>& y) {
    for (std::size_t i = 0; i < y.size() / 4; ++i)
      if (bits_at(y, i) != 0x7fffffffu) return false;
    return true;
  };
  EXPECT_TRUE(all_nan(decoded(f32_meta, {-largest, largest})));  // the range
  EXPECT_TRUE(all_nan(decoded(codec{}, {-largest, 0.0f})));      // lo' in bf16
  EXPECT_TRUE(all_nan(decoded(codec{}, {0.0f, largest})));       // the top code
  EXPECT_FALSE(all_nan(decoded(f32_meta, {0.0f, largest})));
  EXPECT_FALSE(all_nan(decoded(f32_meta, {-largest, 0.0f})));
  EXPECT_FALSE(all_nan(decoded(f32_meta, {-largest / 2, largest / 2})));
  EXPECT_FALSE(all_nan(decoded(f32_meta, {largest, largest})));
}

TEST_F(SpecialValues, RangesNearTheLargestFloat) {
  for (int bits = 1; bits <= 8; ++bits)
    for (const dtype meta : {dtype::f32, dtype::bf16})
      for (const float lo : {0.0f, -1.0f, largest, largest / 2, -largest / 2, -largest})
        for (const float hi : {largest, largest / 2, std::nextafter(largest, 0.0f), 3.38e38f}) {
          codec c;
          c.bits = bits;
          c.meta = meta;
          c.group = 32;
          decoded(c, {lo, hi, lo / 2 + hi / 2, lo, lo, hi});
        }
}

TEST_F(SpecialValues, ConstantsOfEveryMagnitude) {
  for (const float x : {1.0f, -1.0f, 0.1f, -7.3f, 1e30f, -1e-30f, 0x1p-126f, smallest, -smallest,
                        0x1.8p-130f, largest, -largest, 65504.0f, 1e-8f}) {
    codec c;
    c.meta = dtype::f32;
    const std::vector<float> constant(300, x);
    EXPECT_EQ(floats_of(decoded(c, constant)), constant) << x;
    c.meta = dtype::bf16;
    decoded(c, constant);
  }
}

TEST_F(SpecialValues, SubnormalsAreKept) {
  std::vector<float> x(256);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) * smallest;
  for (int bits = 1; bits <= 8; ++bits) {
    for (const dtype meta : {dtype::f32, dtype::bf16}) {
      codec c;
      c.bits = bits;
      c.meta = meta;
      // The step would be subnormal: the group decodes to lo, and no value is lost to a NaN.
      const auto y = floats_of(decoded(c, x));
      EXPECT_EQ(y, std::vector<float>(256, 0.0f));
      auto shifted = x;  // at the edge of the normal numbers lo and values differ by subnormals
      for (float& v : shifted) v += 0x1.8p-126f;
      decoded(c, shifted);
      auto wide = x;
      for (float& v : wide) v *= 0x1p20f;
      decoded(c, wide);
    }
  }
  // A constant of one subnormal is stored as such.
  codec c;
  c.meta = dtype::f32;
  EXPECT_EQ(bits_at(decoded(c, {from_bits(0x123), from_bits(0x123)}), 1), 0x123u);
}

TEST_F(SpecialValues, StepsAroundTheSmallestNormal) {
  for (int bits = 1; bits <= 8; ++bits) {
    const auto levels = static_cast<float>((1 << bits) - 1);
    for (const dtype meta : {dtype::f32, dtype::bf16}) {
      codec c;
      c.bits = bits;
      c.meta = meta;
      for (const float range : {levels * 0x1p-126f, std::nextafter(levels * 0x1p-126f, 0.0f),
                                std::nextafter(levels * 0x1p-126f, 1.0f), levels * 0x1.fep-127f,
                                levels * 0x1.ffp-127f}) {
        decoded(c, {0.0f, range, range / 2, range / 3, range / 4});
        decoded(c, {-range, 0.0f, -range / 2, -range / 3});
      }
    }
  }
}

TEST_F(SpecialValues, LargeStepsHaveSubnormalInverses) {
  codec c;
  c.bits = 1;
  c.meta = dtype::f32;
  const float step = 0x1.8p127f;  // 1 / step is below 2^-126
  const auto y = floats_of(decoded(c, {0.0f, step, step, 0.0f}));
  EXPECT_EQ(y, (std::vector<float>{0.0f, step, step, 0.0f}));
  decoded(c, {0.0f, step, step * 0.3f, step * 0.7f});
}

TEST_F(SpecialValues, ZerosOfBothSigns) {
  for (const dtype meta : {dtype::f32, dtype::bf16}) {
    codec c;
    c.meta = meta;
    const auto zeros = decoded(c, {0.0f, -0.0f, -0.0f});
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(bits_at(zeros, i), 0u);
    const auto minus = decoded(c, {-0.0f});
    EXPECT_EQ(bits_at(minus, 0), 0u);
    // Negative ranges up to -0: the top code decodes to +0.
    const auto up = decoded(c, {-3.0f, -0.0f, -1.0f, -2.0f});
    EXPECT_EQ(bits_at(up, 1), 0u);
  }
}

// Halves and bfloats have their own subnormals, infinities and NaNs.
TEST_F(SpecialValues, SixteenBitPatterns) {
  for (const dtype type : {dtype::f16, dtype::bf16}) {
    for (const dtype meta : {dtype::f32, dtype::bf16}) {
      codec c;
      c.bits = 4;
      c.group = 32;
      c.meta = meta;
      // Patterns 37 apart: groups of like magnitude, some across zero, infinity and the NaNs.
      std::vector<u8> x;
      for (u32 pattern = 0; pattern <= 0xffff; pattern += 37) {
        x.push_back(static_cast<u8>(pattern));
        x.push_back(static_cast<u8>(pattern >> 8));
      }
      expect_as_reference({c, {i64(x.size() / 2)}}, x, type, {11, 12});
    }
  }
}

// Beyond the output type: the largest finite value; infinities made by the LFC too.
TEST_F(SpecialValues, DecompressSaturates) {
  codec c;
  c.meta = dtype::f32;
  const std::vector<float> x{1e30f, -1e30f, 65520.0f, -65520.0f, largest, 0.0f, 65519.0f};
  for (const float value : x) {
    const std::vector<float> constant(40, value);
    decoded(c, constant);
    c.window = {8};
    decoded(c, constant);
    c.window = {};
  }
}

}  // namespace
}  // namespace furl::test
