// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// What rotated codes make of awkward numbers, and what they promise on average: no bias, and the
// distortion of a quantiser of the normal law.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>

#include "support/inputs.hpp"
#include "support/run.hpp"

namespace furl::test {
namespace {

constexpr random_key some_key{0x0123456789abcdef, 0xfedcba9876543210};

void expect_rotated_as_reference(const std::vector<float>& x) {
  for (const int bits : rotated_bits)
    expect_as_reference({rotated_codec(bits), {i64(x.size())}}, bytes_of(x), dtype::f32, some_key);
}

u32 pattern_at(const std::vector<u8>& f32, std::size_t i) {
  u32 bits = 0;
  std::memcpy(&bits, &f32[4 * i], 4);
  return bits;
}

/// Block of an element of a tensor.
std::size_t block_of(std::size_t i) {
  return i / 1024 * 4 + i % 128 / 32;
}

TEST(RotatedValues, PoisonStaysInItsBlock) {
  const auto clean = normal_floats(2100, 3);
  for (const int bits : rotated_bits) {
    const plan p = make_plan(rotated_codec(bits), {2100});
    for (const auto& engine : backends()) {
      const auto clean_y = round_trip(*engine, p, clean, some_key);
      for (const u32 bad : {0x7f800000u, 0xff800000u, 0x7fc00000u, 0xffc00001u, 0x7f800001u}) {
        for (const std::size_t place : {0u, 500u, 1023u, 1024u, 2048u, 2099u}) {
          auto x = clean;
          std::memcpy(&x[place], &bad, 4);
          const auto blob = compress(*engine, p, x, some_key);
          const auto y = decompress(*engine, p, blob, dtype::f32, {}, {}, some_key);
          for (std::size_t i = 0; i < x.size(); ++i) {
            if (block_of(i) == block_of(place)) {
              ASSERT_EQ(pattern_at(y, i), 0x7fffffffu) << bad << " at " << place;
            } else {
              ASSERT_EQ(floats_of(y)[i], clean_y[i]) << bad << " at " << place;
            }
          }
        }
      }
    }
  }
}

TEST(RotatedValues, SpecialBlocks) {
  const float smallest = std::numeric_limits<float>::denorm_min();
  for (const i64 n : {1, 40, 300, 1024, 1500}) {
    const auto count = static_cast<std::size_t>(n);
    const std::vector<float> zeros(count, 0.0f);
    SCOPED_TRACE(n);
    expect_rotated_as_reference(zeros);
    expect_rotated_as_reference(std::vector<float>(count, -0.0f));
    for (const float constant : {1.0f, -3.3f, 1e-20f, 1e15f, smallest, 3e38f})
      expect_rotated_as_reference(std::vector<float>(count, constant));
    for (const i64 hot : {i64(0), n / 2, n - 1}) {
      auto x = zeros;
      x[static_cast<std::size_t>(hot)] = -7.0f;
      expect_rotated_as_reference(x);
    }
    auto x = normal_floats(count, 2);
    for (std::size_t i = 0; i < x.size(); i += 3) x[i] = i % 2 == 0 ? 0.0f : -0.0f;
    expect_rotated_as_reference(x);
  }
}

// From blocks that are stored as zeros to blocks that overflow, and around both ends.
TEST(RotatedValues, MagnitudesOfEveryBlock) {
  const auto x = normal_floats(1024, 9);
  for (int exponent = -149; exponent<128; exponent += exponent> - 70 && exponent < 50 ? 9 : 1) {
    SCOPED_TRACE(exponent);
    auto scaled = x;
    for (float& v : scaled) v = std::ldexp(v, exponent);
    expect_rotated_as_reference(scaled);
  }
  for (u32 seed = 0; seed < 20; ++seed) {  // elements of one block over 250 binades
    auto wide = normal_floats(1500, seed);
    std::mt19937 random(seed);
    for (float& v : wide) v = std::ldexp(v, static_cast<int>(random() % 170) - 120);
    expect_rotated_as_reference(wide);
  }
}

// The energy of a block is 2^13 times the sum of its squares, here 2^18 times one: below 2^-96 all
// is 0, from 2^128 on all is NaN.
TEST(RotatedValues, EndsOfTheRange) {
  const plan p = make_plan(rotated_codec(1), {1024});
  for (const auto& engine : backends()) {
    for (const auto& [x, y] :
         {std::pair{0x1p-57f, 0x1p-57f}, {0x1p-58f, 0.0f}, {0x1p54f, 0x1p54f}, {0x1p55f, nan}}) {
      std::vector<float> one(1024, 0.0f);
      for (const std::size_t block : {0u, 32u, 64u, 96u})
        for (std::size_t i = 0; i < 32; ++i) one[block + i] = x;
      const auto got = round_trip(*engine, p, one, some_key);
      double sum = 0;
      for (std::size_t i = 0; i < 1024; ++i) sum += double(got[i]) * one[i];
      if (std::isnan(y)) {
        EXPECT_TRUE(std::isnan(sum)) << x;
      } else {
        EXPECT_NEAR(sum / (128 * double(x) * x), y == 0 ? 0 : 1, 0.01) << x;
      }
    }
  }
}

TEST(RotatedValues, SixteenBitPatterns) {
  for (const dtype type : {dtype::f16, dtype::bf16})
    for (const int bits : rotated_bits) {
      std::vector<u8> x;
      for (u32 pattern = 0; pattern <= 0xffff; pattern += 7) {
        x.push_back(static_cast<u8>(pattern));
        x.push_back(static_cast<u8>(pattern >> 8));
      }
      expect_as_reference({rotated_codec(bits), {i64(x.size() / 2)}}, x, type, some_key);
    }
}

// Any bytes for codes, scales and means.
TEST(RotatedValues, HostileBlobs) {
  for (u32 seed = 0; seed < 24; ++seed) {
    const extents window = seed % 2 == 0 ? extents{} : extents{6};
    const reference::problem problem{rotated_codec(1 + int(seed / 2) % 4, window), {2500}};
    const plan p = make_plan(problem);
    auto blob = random_bytes(static_cast<std::size_t>(p.size_bytes()), seed);
    const u16 specials[] = {0x0000, 0x8000, 0x0001, 0x7180, 0x717f, 0x7f80,
                            0xff80, 0x7fff, 0xffff, 0x3f80, 0x0080, 0xbf80};
    for (std::size_t i = 0; i < 12; ++i) {
      if (i % 4 == seed % 4) continue;
      blob[static_cast<std::size_t>(p.meta_offset()) + 2 * i] = static_cast<u8>(specials[i]);
      blob[static_cast<std::size_t>(p.meta_offset()) + 2 * i + 1] =
          static_cast<u8>(specials[i] >> 8);
    }
    for (const dtype type : all_types) {
      const auto expected = reference::decompress(problem, blob, type, some_key);
      const auto before = random_bytes(expected.size(), seed + 200);
      const auto added = reference::decompress_add(problem, blob, type, before, some_key);
      for (const auto& engine : backends()) {
        ASSERT_EQ(decompress(*engine, p, blob, type, {}, {}, some_key), expected) << seed;
        ASSERT_EQ(decompress_add(*engine, p, blob, type, before, {}, {}, some_key), added) << seed;
      }
    }
  }
}

/// Sums over many keys of what a tensor decodes to.
struct many_keys {
  std::vector<double> sum;             // of every element's values
  std::vector<double> sum_of_squares;  // of its errors
  double distortion = 0;               // mean of |y - x|^2 / |x|^2
  int keys = 0;

  double mean(std::size_t i) const { return sum[i] / keys; }
  double variance_of_mean(std::size_t i) const { return sum_of_squares[i] / keys / keys; }
};

many_keys decode_with_keys(backend& engine, const std::vector<float>& x, int bits, int keys) {
  const plan p = make_plan(rotated_codec(bits), {i64(x.size())});
  many_keys out{std::vector<double>(x.size()), std::vector<double>(x.size()), 0, keys};
  double energy = 0;
  for (const float v : x) energy += double(v) * v;
  guarded_buffer blob(p.size_bytes());
  std::vector<float> y(x.size());
  for (int k = 0; k < keys; ++k) {
    const random_key key{77, u64(k)};
    EXPECT_TRUE(engine.compress(p, x, {blob.data(), blob.size()}, key));
    EXPECT_TRUE(engine.decompress(p, {blob.data(), blob.size()}, y, {}, key));
    double error = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double e = double(y[i]) - x[i];
      out.sum[i] += y[i];
      out.sum_of_squares[i] += e * e;
      error += e * e;
    }
    out.distortion += error / energy / keys;
  }
  return out;
}

constexpr int many = 4096;
// What the levels reach on the normal law with the unbiased scale: E[q^2] / E[q y]^2 - 1, in closed
// form. The best uniform quantisers' errors D (Max, 1960) give the same by D / (1 - D).
constexpr double distortion_of[] = {0, 0.5708, 0.13488, 0.03890, 0.01168};

// Thousands of keys: too many for sanitizers, which find in them what they find in one.
class RotatedStatistics : public ::testing::Test {
#if defined(FURL_SANITIZED)
  void SetUp() override {
    GTEST_SKIP();
  }
#endif
};

TEST_F(RotatedStatistics, NoBias) {
  auto one_sided = normal_floats(1024, 5);
  for (float& v : one_sided) v = std::fabs(v);
  const std::pair<const char*, std::vector<float>> inputs[] = {
      {"normal", normal_floats(1024, 4)},
      {"one-sided", one_sided},
      {"constant", std::vector<float>(1024, 0.7f)}};
  for (const auto& [name, x] : inputs) {
    for (const int bits : rotated_bits) {
      SCOPED_TRACE(std::string(name) + ", bits " + std::to_string(bits));
      const many_keys found = decode_with_keys(*backends()[0], x, bits, many);
      double bias = 0;
      double deviation = 0;
      double variance = 0;
      double product = 0;
      double energy = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double error = found.mean(i) - x[i];
        const double standard_error = std::sqrt(found.variance_of_mean(i));
        // 4.5 standard errors are passed by one of 150,000. The share of x is what the rows of a
        // block, which the second rotation does not mix, leave: it grows with those of a column.
        EXPECT_LT(std::fabs(error), 4.5 * standard_error + 0.06 * std::fabs(x[i])) << i;
        bias += error * error - found.variance_of_mean(i);
        deviation += error;
        variance += found.variance_of_mean(i);
        product += found.mean(i) * x[i];
        energy += double(x[i]) * x[i];
      }
      EXPECT_LT(bias / energy, 3.5e-4);
      EXPECT_LT(std::fabs(deviation), 4 * std::sqrt(variance));
      EXPECT_NEAR(product / energy, 1, 2e-4);  // the scale makes it so, but for its rounding
    }
  }
}

TEST_F(RotatedStatistics, DistortionIsThatOfTheNormalLaw) {
  for (const auto& x : {normal_floats(8 * 1024, 1), uniform_floats(8 * 1024, 2)})
    for (const int bits : rotated_bits)
      EXPECT_NEAR(decode_with_keys(*backends()[0], x, bits, 64).distortion, distortion_of[bits],
                  0.02 * distortion_of[bits]);
}

// Blocks in which a few elements are much larger than the others: one rotation alone would lose the
// small ones. The slope of the mean on the small elements is 1 where nothing is lost.
TEST_F(RotatedStatistics, SmallElementsBesideLargeOnes) {
  constexpr std::size_t n = 16 * 1024;
  for (const int bits : rotated_bits)
    for (const auto& [count, factor] : {std::pair{1, 10.0f},
                                        {2, 10.0f},
                                        {8, 10.0f},
                                        {32, 10.0f},
                                        {1, 50.0f},
                                        {2, 50.0f},
                                        {8, 50.0f},
                                        {32, 50.0f}}) {
      SCOPED_TRACE(std::to_string(bits) + " bits, " + std::to_string(count) + " of 256 are " +
                   std::to_string(factor) + " times the others");
      auto x = normal_floats(n, 8);
      std::mt19937 random(3);
      std::vector<bool> large(n);
      for (std::size_t block = 0; block < n / 256; ++block)
        for (int left = count; left > 0;) {
          const std::size_t i =
              block / 4 * 1024 + random() % 8 * 128 + block % 4 * 32 + random() % 32;
          if (large[i]) continue;
          large[i] = true;
          x[i] = std::copysign(factor, x[i]);
          --left;
        }
      const many_keys found = decode_with_keys(*backends()[0], x, bits, 512);
      double product = 0;
      double energy = 0;
      double variance = 0;
      for (std::size_t i = 0; i < n; ++i) {
        if (large[i]) continue;
        product += found.mean(i) * x[i];
        energy += double(x[i]) * x[i];
        variance += found.variance_of_mean(i) * x[i] * x[i];
      }
      // Two or more that are 50 times the others may leave rows of a block to the others, with the
      // same scale: without the second rotation slopes of 0.3 come of it.
      const double limit = factor > 10 && count > 1 ? 0.15 : 0.02;
      EXPECT_NEAR(product / energy, 1, limit + 3 * std::sqrt(variance) / energy);
    }
}

/// The word of A6 that a tile's signs are taken from, put together from the bytes of its elements.
u32 word_of_signs(int tile, int column) {
  const u64 element = u64(tile / 8) * 1024 + u64(tile % 8) * 128 + u64(column / 4 * 4);
  const u32 byte[4] = {random_bits(element, some_key), random_bits(element + 2, some_key),
                       random_bits(element + 1, some_key), random_bits(element + 3, some_key)};
  return byte[0] | byte[1] << 8 | byte[2] << 16 | byte[3] << 24;
}

/// Likewise for the second rotation: tiles of A6 that no tensor has.
u32 second_word_of_signs(int tile, int column) {
  return random_words(u64(tile / 8) + (u64(1) << 57), u32(tile % 8 / 4), u32(column / 4), some_key)
      .word[tile % 4];
}

bool has_sign(u32 word, int row, int column) {
  return (word >> (16 * (column % 2) + 2 * row + column % 4 / 2) & 1u) != 0;
}

bool is_odd(int bits) {
  int sum = 0;
  for (; bits != 0; bits >>= 1) sum += bits & 1;
  return sum % 2 != 0;
}

// The signs by hand. With a one in a block of zeros the first rotation gives a row of the
// Walsh-Hadamard matrix, and the second is added up here.
TEST(RotatedValues, SignsAreBitsOfTheWordsOfRandomRounding) {
  const plan p = make_plan(rotated_codec(1), {11 * 1024});
  for (const int place : {0, 35, 127, 128, 700, 1023, 1024 + 300, 5 * 1024 + 1, 10 * 1024 + 444}) {
    std::vector<float> x(11 * 1024, 0.0f);
    x[static_cast<std::size_t>(place)] = 1.0f;
    const int tile = place / 1024;
    const int row = place % 1024 / 128;
    const int column = place % 32;
    const int begin = place % 128 - column;
    const bool sign = has_sign(word_of_signs(tile, begin + column), row, begin + column);
    for (const auto& engine : backends()) {
      const auto blob = compress(*engine, p, x, some_key);
      for (int i = 0; i < 256; ++i) {
        const int r = i / 32;
        const int c = i % 32;
        int y = 0;
        for (int j = 0; j < 32; ++j) {
          bool negative = sign != (is_odd(r & row) != is_odd(j & column));
          negative = negative != has_sign(second_word_of_signs(tile, begin + j), r, begin + j);
          y += negative != is_odd(c & j) ? -1 : 1;
        }
        if (y == 0) continue;  // of either sign
        const int bit = c / 4 + 8 * (c % 4);
        const int word = 8 * (begin / 32) + r;
        const u8 byte = blob[static_cast<std::size_t>(tile * 128 + 4 * word + bit / 8)];
        ASSERT_EQ(byte >> (bit % 8) & 1, y > 0 ? 1 : 0) << place << ", row " << r << " " << c;
      }
    }
  }
}

}  // namespace
}  // namespace furl::test
