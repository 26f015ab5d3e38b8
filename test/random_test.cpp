// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Stochastic rounding as statistics see it: no bias, no dependence between elements, tiles, seeds
// or offsets. Seeds are fixed, so a test that passes once passes always.

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "support/inputs.hpp"
#include "support/run.hpp"

namespace furl::test {
namespace {

// Groups with the ends 0 and L and values in between, f32 metadata: step is 1, so that the mean of
// the decoded value is T / 256 exactly, T being x in 8.8 fixed point.
TEST(Random, UnbiasedOverSeeds) {
  constexpr int seeds = 2000;
  for (const int bits : {1, 2, 4, 8}) {
    codec c;
    c.bits = bits;
    c.group = 64;
    c.meta = dtype::f32;
    const auto levels = static_cast<float>((1 << bits) - 1);
    std::vector<float> x(64);
    for (std::size_t i = 0; i < x.size(); ++i)  // multiples of 1/256 of every residue
      x[i] = std::fmod(static_cast<float>(i * 5 + 1) / 256.0f + static_cast<float>(i), levels);
    x[0] = 0;
    x[1] = levels;
    const plan p = make_plan(c, {64});
    for (const auto& engine : backends()) {
      std::vector<double> sum(64);
      for (u64 seed = 0; seed < seeds; ++seed) {
        const auto y = round_trip(*engine, p, x, {seed * 0x9E3779B97F4A7C15u, seed});
        for (std::size_t i = 0; i < 64; ++i) sum[i] += y[i];
      }
      for (std::size_t i = 0; i < 64; ++i) {
        const double part = x[i] - std::floor(x[i]);
        const double error = std::sqrt(part * (1 - part) / seeds);
        EXPECT_LE(std::fabs(sum[i] / seeds - x[i]), 4 * error) << bits << " bits, element " << i;
      }
    }
  }
}

// With bf16 metadata too: the pair is rounded before the codes are made.
TEST(Random, UnbiasedWithNarrowMetadata) {
  constexpr int seeds = 2000;
  codec c;
  c.group = 32;
  const auto x = uniform_floats(32, 9);
  const plan p = make_plan(c, {32});
  for (const auto& engine : backends()) {
    std::vector<double> sum(32);
    std::vector<double> squares(32);
    float step = 0;
    for (u64 seed = 0; seed < seeds; ++seed) {
      const auto blob = compress(*engine, p, x, {seed, 77});
      step = group_of(p, blob, 0).step;
      const auto y = decompress(*engine, p, blob);
      for (std::size_t i = 0; i < 32; ++i) {
        sum[i] += y[i];
        squares[i] += double(y[i]) * y[i];
      }
    }
    for (std::size_t i = 0; i < 32; ++i) {
      const double mean = sum[i] / seeds;
      const double error = std::sqrt(std::fmax(squares[i] / seeds - mean * mean, 0) / seeds);
      // 1/512 of a step is what rounding to 8.8 fixed point may shift it.
      EXPECT_LE(std::fabs(mean - x[i]), 4 * error + step / 512 + 1e-7) << "element " << i;
    }
  }
}

/// One bit per element, each drawn with probability 1/2.
std::vector<u8> coin_flips(backend& engine, i64 n, random_key key) {
  codec c;
  c.bits = 1;
  c.group = 1024;
  c.meta = dtype::f32;
  std::vector<float> x(static_cast<std::size_t>(n), 0.5f);
  for (std::size_t g = 0; g < x.size(); g += 1024) {
    x[g] = 0;
    x[g + 1] = 1;
  }
  const plan p = make_plan(c, {n});
  std::vector<u8> flips;
  for (const float y : round_trip(engine, p, x, key)) flips.push_back(y == 1.0f ? 1 : 0);
  return flips;
}

/// Share of equal elements of two sequences, each shifted by a number of places.
double agreement(const std::vector<u8>& a, const std::vector<u8>& b, std::size_t shift) {
  double equal = 0;
  for (std::size_t i = 0; i + shift < a.size(); ++i) equal += a[i] == b[i + shift] ? 1 : 0;
  return equal / static_cast<double>(a.size() - shift);
}

constexpr i64 flips_count = 64 * 1024;
constexpr double four_errors = 4 * 0.5 / 256;  // of a share of 65,536 coins

TEST(Random, IndependentOfNeighboursRowsAndTiles) {
  for (const auto& engine : backends()) {
    const auto flips = coin_flips(*engine, flips_count, {12, 34});
    // Neighbours, words, rows, halves of a tile, tiles.
    for (const std::size_t shift :
         {1u, 2u, 3u, 4u, 8u, 32u, 64u, 128u, 256u, 512u, 1024u, 2048u, 32768u})
      EXPECT_NEAR(agreement(flips, flips, shift), 0.5, four_errors * 1.5) << "shift " << shift;
  }
}

TEST(Random, IndependentBetweenSeedsAndOffsets) {
  for (const auto& engine : backends()) {
    const auto flips = coin_flips(*engine, flips_count, {1, 0});
    EXPECT_EQ(coin_flips(*engine, flips_count, {1, 0}), flips);
    const u64 high = u64(1) << 32;
    for (const random_key other : {random_key{1, 1},
                                   {2, 0},
                                   {1, high},
                                   {1 + high, 0},
                                   {0, 1},
                                   {1, u64(1) << 63},
                                   {u64(1) << 63, 0}})
      for (const std::size_t shift : {0u, 1u, 4u, 1024u})
        EXPECT_NEAR(agreement(flips, coin_flips(*engine, flips_count, other), shift), 0.5,
                    four_errors)
            << other.seed << " " << other.offset << " shift " << shift;
  }
}

// The draw of an element is a function of its index in the tensor: all of it can be predicted.
TEST(Random, DrawsAreRandomBitsOfTheIndex) {
  for (const auto& engine : backends()) {
    const random_key key{0x123456789abcdef0u, 0xfedcba9876543210u};
    const auto flips = coin_flips(*engine, 5 * 1024, key);
    for (std::size_t i = 0; i < flips.size(); ++i) {
      if (i % 1024 < 2) continue;  // the ends of the range
      ASSERT_EQ(flips[i], random_bits(i, key) >= 128 ? 1 : 0) << i;
    }
  }
}

TEST(Random, NearestIgnoresTheKey) {
  codec c;
  c.rounding = rounding::nearest;
  const auto x = normal_floats(3000, 2);
  const plan p = make_plan(c, {3000});
  for (const auto& engine : backends()) {
    const auto blob = compress(*engine, p, x, {0, 0});
    EXPECT_EQ(compress(*engine, p, x, {~u64(0), 1}), blob);
    c.rounding = rounding::stochastic;
    const plan drawn = make_plan(c, {3000});
    EXPECT_NE(compress(*engine, drawn, x, {0, 0}), blob);
    EXPECT_NE(compress(*engine, drawn, x, {0, 0}), compress(*engine, drawn, x, {0, 1}));
    c.rounding = rounding::nearest;
  }
}

}  // namespace
}  // namespace furl::test
