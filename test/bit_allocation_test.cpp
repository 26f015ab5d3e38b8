// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// The bits that tiles of a mixed plan are given.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <queue>
#include <string>
#include <tuple>

#include "support/inputs.hpp"
#include "support/run.hpp"

namespace furl::test {
namespace {

std::vector<u8> allocate(backend& engine, u64 sum, const std::vector<float>& sensitivity,
                         const std::vector<double>& squared) {
  std::vector<u8> tile_bits(sensitivity.size(), 99);
  const status s = engine.allocate_bits(sum, sensitivity, squared, tile_bits);
  EXPECT_TRUE(s) << to_string(s);
  return tile_bits;
}

double levels(int bits) {
  return static_cast<double>((1 << bits) - 1);
}

double cost_of(float sensitivity, double squared) {
  const double s = std::isnan(sensitivity) || sensitivity < 0
                       ? 0
                       : std::min(static_cast<double>(sensitivity), std::ldexp(1.0, 128));
  const double r = std::isnan(squared) || squared < 0 ? 0 : std::min(squared, std::ldexp(1.0, 512));
  return s * r;
}

/// One bit after the other from a heap.
std::vector<u8> greedy(u64 sum, const std::vector<float>& sensitivity,
                       const std::vector<double>& squared) {
  // Exponent and 50 binary digits of the gain (a subnormal's fewer), then the tile of fewer bits,
  // then the first.
  constexpr int smallest_exponent = std::numeric_limits<double>::min_exponent;
  using claim = std::tuple<int, double, int, i64>;
  const auto claim_of = [&](std::size_t tile, int bits) -> claim {
    const double share =
        1 / (levels(bits) * levels(bits)) - 1 / (levels(bits + 1) * levels(bits + 1));
    const double gain = cost_of(sensitivity[tile], squared[tile]) * share;
    int exponent = 0;
    if (gain == 0 || std::frexp(gain, &exponent) == 0 || exponent < smallest_exponent)
      exponent = smallest_exponent;
    const double digits = std::floor(std::ldexp(gain, 50 - exponent));
    return {exponent, digits, -bits, -static_cast<i64>(tile)};
  };
  std::priority_queue<claim> claims;
  std::vector<u8> tile_bits(sensitivity.size(), 1);
  for (std::size_t tile = 0; tile < tile_bits.size(); ++tile) claims.push(claim_of(tile, 1));
  for (u64 left = sum - tile_bits.size(); left > 0; --left) {
    const auto tile = static_cast<std::size_t>(-std::get<3>(claims.top()));
    claims.pop();
    if (++tile_bits[tile] < 8) claims.push(claim_of(tile, tile_bits[tile]));
  }
  return tile_bits;
}

double variance(const std::vector<float>& sensitivity, const std::vector<double>& squared,
                const std::vector<u8>& tile_bits) {
  double sum = 0;
  for (std::size_t t = 0; t < tile_bits.size(); ++t)
    sum += cost_of(sensitivity[t], squared[t]) / (levels(tile_bits[t]) * levels(tile_bits[t]));
  return sum;
}

std::vector<double> random_squares(std::size_t count, u32 seed) {
  std::vector<double> out;
  for (const float x : normal_floats(count, seed)) out.push_back(std::exp(4.0 * x));
  return out;
}

TEST(BitAllocation, AsGreedyFromAHeap) {
  u32 seed = 0;
  for (const std::size_t tiles : {1u, 2u, 31u, 32u, 33u, 500u, 3000u})
    for (const int eighths : {0, 1, 9, 16, 24, 40, 63, 64}) {  // of a tile's 8 bits
      const u64 sum = std::max<u64>(tiles, tiles * static_cast<u64>(eighths) / 8);
      auto sensitivity = uniform_floats(tiles, ++seed);
      for (float& s : sensitivity) s = std::abs(s);
      const auto squared = random_squares(tiles, seed);
      const auto expected = greedy(sum, sensitivity, squared);
      for (const auto& engine : backends()) {
        SCOPED_TRACE(std::string(engine->name()) + ", " + std::to_string(tiles) + " tiles, " +
                     std::to_string(sum));
        EXPECT_EQ(allocate(*engine, sum, sensitivity, squared), expected);
      }
    }
}

TEST(BitAllocation, TiesAndOddNumbers) {
  // Few distinct costs, some of which differ by the ratio of two gains of one tile.
  const float odd[] = {0, 1, 1, 4, 0.25f, nan, infinity, -1, -infinity, 1e-45f, 3e38f, -0.0f};
  const double odd_squares[] = {1,    0,     4,     std::nan(""), HUGE_VAL, -1,
                                1e99, 1e300, 1e-99, 4e-324,       -0.0,     1};
  u32 seed = 100;
  for (const std::size_t tiles : {12u, 40u, 777u}) {
    for (u64 sum = tiles; sum <= 8 * tiles; sum += 1 + tiles / 5) {
      std::vector<float> sensitivity(tiles);
      std::vector<double> squared(tiles);
      const auto random = random_bytes(2 * tiles, ++seed);
      for (std::size_t t = 0; t < tiles; ++t) {
        sensitivity[t] = odd[random[2 * t] % std::size(odd)];
        squared[t] = odd_squares[random[2 * t + 1] % std::size(odd_squares)];
      }
      const auto expected = greedy(sum, sensitivity, squared);
      for (const auto& engine : backends()) {
        SCOPED_TRACE(std::string(engine->name()) + ", " + std::to_string(sum));
        EXPECT_EQ(allocate(*engine, sum, sensitivity, squared), expected);
      }
    }
  }
}

TEST(BitAllocation, NoOtherBitsAreBetter) {
  u32 seed = 0;
  for (const std::size_t tiles : {1u, 2u, 3u, 4u}) {
    for (int round = 0; round < 6; ++round) {
      auto sensitivity = uniform_floats(tiles, ++seed);
      for (float& s : sensitivity) s = std::abs(s);
      if (round == 0) sensitivity[0] = 0;
      const auto squared = random_squares(tiles, seed);
      std::vector<double> best(8 * tiles + 1, HUGE_VAL);
      std::vector<u8> tile_bits(tiles, 1);
      for (u64 code = 0; code < u64(1) << (3 * tiles); ++code) {
        for (std::size_t t = 0; t < tiles; ++t)
          tile_bits[t] = static_cast<u8>(1 + (code >> (3 * t)) % 8);
        double& least = best[std::accumulate(tile_bits.begin(), tile_bits.end(), std::size_t(0))];
        least = std::min(least, variance(sensitivity, squared, tile_bits));
      }
      for (const auto& engine : backends()) {
        for (u64 sum = tiles; sum <= 8 * tiles; ++sum) {
          const auto found = allocate(*engine, sum, sensitivity, squared);
          EXPECT_EQ(std::accumulate(found.begin(), found.end(), u64(0)), sum);
          EXPECT_LE(variance(sensitivity, squared, found), best[sum] * (1 + 1e-12));
        }
      }
    }
  }
}

TEST(BitAllocation, EqualTilesShareEvenly) {
  for (const float s : {0.0f, 1.0f, nan, -1.0f, infinity}) {
    const std::vector<float> sensitivity(5, s);
    const std::vector<double> squared(5, 0.5);
    for (const auto& engine : backends()) {
      EXPECT_EQ(allocate(*engine, 5, sensitivity, squared), std::vector<u8>(5, 1));
      EXPECT_EQ(allocate(*engine, 12, sensitivity, squared), (std::vector<u8>{3, 3, 2, 2, 2}));
      EXPECT_EQ(allocate(*engine, 39, sensitivity, squared), (std::vector<u8>{8, 8, 8, 8, 7}));
      EXPECT_EQ(allocate(*engine, 40, sensitivity, squared), std::vector<u8>(5, 8));
    }
  }
}

TEST(BitAllocation, WhatHasNoCostComesLast) {
  for (const auto& engine : backends()) {
    EXPECT_EQ(allocate(*engine, 12, {0, 1e-30f, nan, 0}, {1, 1e-30, 1, 1}),
              (std::vector<u8>{2, 8, 1, 1}));
    EXPECT_EQ(allocate(*engine, 20, {0, 1, 1, 1}, {1, 1, 0, 1}), (std::vector<u8>{2, 8, 2, 8}));
  }
}

TEST(BitAllocation, BadArgumentsAreNamedAndNothingIsWritten) {
  const std::vector<float> s(4, 1);
  const std::vector<double> r(4, 1);
  std::vector<u8> tile_bits(4, 77);
  const auto expect = [&](const status& given, error code, const char* argument, i64 value) {
    EXPECT_EQ(given.code, code) << to_string(given);
    EXPECT_STREQ(given.argument, argument);
    EXPECT_EQ(given.value, value);
    EXPECT_EQ(tile_bits, std::vector<u8>(4, 77));
  };
  for (const auto& engine : backends()) {
    expect(engine->allocate_bits(3, s, r, tile_bits), error::out_of_range, "sum_of_bits", 3);
    expect(engine->allocate_bits(33, s, r, tile_bits), error::out_of_range, "sum_of_bits", 33);
    expect(engine->allocate_bits(8, {s.data(), 3}, r, tile_bits), error::wrong_size, "sensitivity",
           3);
    expect(engine->allocate_bits(8, s, {r.data(), 5}, tile_bits), error::wrong_size,
           "squared_range", 5);
    expect(engine->allocate_bits(8, {nullptr, 4}, r, tile_bits), error::null_pointer, "sensitivity",
           0);
    expect(engine->allocate_bits(8, s, {nullptr, 4}, tile_bits), error::null_pointer,
           "squared_range", 0);
    expect(engine->allocate_bits(8, s, r, {nullptr, 4}), error::null_pointer, "tile_bits", 0);
    EXPECT_TRUE(engine->allocate_bits(0, {}, {}, {}));
  }
}

/// ActNN's step: a sensitivity per sample, 2 bits on average.
TEST(BitAllocation, LowersTheWeightedErrorAtTheSameSize) {
  const extents shape{8, 2048};
  const i64 n = 8 * 2048;
  auto x = normal_floats(n, 5);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] *= std::exp2(static_cast<float>(i / 2048));
  const std::vector<float> of_samples = {9, 1, 0.5f, 4, 1, 0.25f, 1, 2};
  const plan uniform = make_plan({}, shape);
  const plan mixed = *plan::make_mixed({}, shape, u64(2 * uniform.num_tiles()));
  ASSERT_EQ(uniform.size_bytes(), mixed.size_bytes());
  for (const auto& engine : backends()) {
    std::vector<double> squared(16);
    std::vector<float> sensitivity(16);
    ASSERT_TRUE(engine->squared_ranges(uniform, host::const_values(x), squared));
    ASSERT_TRUE(engine->expand_sensitivity(uniform, of_samples, sensitivity));
    const auto tile_bits = allocate(*engine, mixed.sum_of_bits(), sensitivity, squared);
    const auto error = [&](const std::vector<float>& y) {
      double sum = 0;
      for (std::size_t i = 0; i < x.size(); ++i)
        sum += static_cast<double>(of_samples[i / 2048]) * std::pow(double(y[i]) - x[i], 2);
      return sum;
    };
    const auto blob = compress(*engine, mixed, bytes_of(x), dtype::f32, {1, 2}, tile_bits);
    const auto y = floats_of(decompress(*engine, mixed, blob, dtype::f32, tile_bits));
    EXPECT_LT(error(y), 0.5 * error(round_trip(*engine, uniform, x, {1, 2})));
  }
}

}  // namespace
}  // namespace furl::test
