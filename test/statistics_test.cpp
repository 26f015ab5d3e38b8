// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Normalised elements (FORMAT.md, A14): what a norm layer keeps is taken out before coding, and put
// back, against the slow reference.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "support/coded.hpp"
#include "support/inputs.hpp"

namespace furl::test {
namespace {

constexpr random_key statistics_key{0x0123456789abcdef, 0xfedcba9876543210};

/// Means around 0 and inverse deviations around 1.
reference::problem with_statistics(const codec& c, i64 n, i64 extent, i64 count, u32 seed) {
  reference::problem p{c, {n}};
  p.extent = extent;
  p.mean = normal_floats(static_cast<std::size_t>(count), seed);
  p.inverse_deviation = uniform_floats(static_cast<std::size_t>(count), seed + 1);
  for (float& v : p.inverse_deviation) v = 1.5f + v;
  return p;
}

codec dithered_codec() {
  codec c;
  c.rounding = rounding::dithered;
  return c;
}

/// Codecs of every way that codes are made and decoded, in turn.
codec codec_of(u32 turn) {
  codec c;
  c.bits = static_cast<int>(1 + turn % 8);
  c.group = 32 << turn % 6;
  c.meta = turn % 3 == 0 ? dtype::f32 : dtype::bf16;
  c.rounding = turn % 2 == 0 ? rounding::stochastic : rounding::nearest;
  if (turn % 4 == 1) c.rounding = rounding::dithered;
  return turn % 3 == 1 ? rotated_codec(static_cast<int>(1 + turn / 3 % 2)) : c;
}

class StatisticsExtents : public testing::TestWithParam<i64> {};

// Statistics that change with every element, within a lane's four, within a row, a tile, and never.
TEST_P(StatisticsExtents, AsReference) {
  const i64 extent = GetParam();
  u32 turn = 0;
  for (const i64 count : {1, 2, 5, 64, 700, 1023, 1024, 1025, 4000})
    for (const i64 n : {1, 900, 1024, 4097}) {
      SCOPED_TRACE(std::to_string(count) + " statistics, " + std::to_string(n) + " elements");
      const dtype type = all_types[turn % 3];
      const auto p = with_statistics(codec_of(turn), n, extent, count, turn);
      expect_as_reference(p, normal_input(n, type, turn + 3), type, {turn, 7}, {turn % 5 * 4});
      ++turn;
      if (HasFailure()) return;
    }
}
INSTANTIATE_TEST_SUITE_P(Extents, StatisticsExtents,
                         testing::Values(1, 2, 3, 4, 7, 31, 32, 33, 49, 64, 96, 127, 128, 196, 197,
                                         768, 784, 1000, 1023, 1024, 1025, 1500, 2048, 3000, 4096,
                                         i64(1) << 20, (i64(1) << 40) + 7, (i64(1) << 62) + 5));

// Grids in which a warp takes four tiles at once, and more tiles than warps.
TEST(Statistics, ManyTiles) {
  const i64 n = 4 * 1024 * tile_elements + 1300;
  const auto x = normal_input(n, dtype::bf16, 1);
  for (const i64 extent : {1, 768, 1000}) {
    auto p = with_statistics(rotated_codec(1), n, extent, 4000, 2);
    const statistics given = reference::statistics_of(p);
    const plan made = make_plan(p);
    const auto& host = backends()[0];
    const auto blob = compress(*host, made, x, dtype::bf16, statistics_key, {}, {}, {}, given);
    const auto y = decompress(*host, made, blob, dtype::bf16, {}, {}, statistics_key, given);
    for (const auto& engine : backends()) {
      if (engine == host) continue;
      EXPECT_TRUE(compress(*engine, made, x, dtype::bf16, statistics_key, {}, {}, {}, given) ==
                  blob);
      EXPECT_TRUE(decompress(*engine, made, blob, dtype::bf16, {}, {}, statistics_key, given) == y);
    }
  }
}

TEST(Statistics, EveryAlignment) {
  for (const std::size_t bytes : {1u, 2u, 4u, 6u, 8u, 12u, 16u, 20u})
    for (const dtype type : all_types)
      for (const i64 extent : {1, 96, 100})
        for (const codec& c : {rotated_codec(2), dithered_codec()})
          expect_as_reference(with_statistics(c, 2500, extent, 30, 5), normal_input(2500, type, 8),
                              type, statistics_key, {bytes});
}

TEST(Statistics, WithoutMeans) {
  for (const codec& c : {rotated_codec(2), dithered_codec(), codec{}})
    for (const dtype type : all_types)
      for (const i64 extent : {1, 64, 100}) {
        auto p = with_statistics(c, 2500, extent, 40, 6);
        p.mean.clear();
        expect_as_reference(p, normal_input(2500, type, 9), type, statistics_key);
        const auto bare = reference::compress(p, normal_input(2500, type, 9), type, statistics_key);
        p.mean.assign(40, 0.0f);
        EXPECT_EQ(reference::compress(p, normal_input(2500, type, 9), type, statistics_key), bare);
      }
}

// Whatever the elements and the statistics are, host and device write what the rule says.
TEST(Statistics, HostileNumbers) {
  const float least = 0x1p-149f;
  const std::vector<float> hostile = {0.0f,      -0.0f, 1.0f,  -1.0f,  nan,
                                      infinity,  1e38f, 3e38f, -3e38f, -infinity,
                                      0x1p-126f, least, -2.5f, 1e-30f, -0x1p-127f};
  const auto count = hostile.size();
  for (const i64 extent : {1, 5, 32, 64, 256, 333})
    for (const codec& c : {rotated_codec(1), rotated_codec(2), dithered_codec(), codec{}})
      for (std::size_t shift = 0; shift < count; shift += 2) {
        SCOPED_TRACE("extent " + std::to_string(extent) + ", shift " + std::to_string(shift));
        reference::problem p{c, {5000}};
        p.extent = extent;
        p.mean = hostile;
        for (std::size_t i = 0; i < count; ++i)
          p.inverse_deviation.push_back(hostile[(i + shift) % count]);
        const dtype type = all_types[shift % 3];
        expect_as_reference(p, awkward_elements(5000, type, u32(shift) + 1), type, statistics_key);
        expect_as_reference(p, normal_input(5000, type, u32(shift) + 1), type, statistics_key);
        if (HasFailure()) return;
      }
}

// The blob says nothing of statistics: without them it decodes to normalised values.
TEST(Statistics, TheBlobIsThatOfNormalisedElements) {
  const auto x = normal_floats(3000, 4);
  for (const codec& c : {rotated_codec(2), dithered_codec(), codec{}}) {
    const auto p = with_statistics(c, 3000, 100, 30, 7);
    const statistics given = reference::statistics_of(p);
    const plan made = make_plan(p);
    std::vector<float> normalised(x);
    for (std::size_t i = 0; i < x.size(); ++i)
      normalised[i] = (x[i] - p.mean[i / 100]) * p.inverse_deviation[i / 100];
    const maybe_key key = made.needs_key() ? maybe_key(statistics_key) : maybe_key();
    for (const auto& engine : backends()) {
      const auto blob = compress(*engine, made, normalised, statistics_key);
      EXPECT_EQ(compress(*engine, made, bytes_of(x), dtype::f32, statistics_key, {}, {}, {}, given),
                blob);
      const auto v = decompress(*engine, made, blob, key);
      const auto y = floats_of(decompress(*engine, made, blob, dtype::f32, {}, {}, key, given));
      for (std::size_t i = 0; i < y.size(); ++i)
        ASSERT_EQ(y[i], std::fma(v[i], 1.0f / p.inverse_deviation[i / 100], p.mean[i / 100])) << i;
    }
  }
}

/// Squared error of row `row` over its energy, of rows of a width.
double relative_error(const std::vector<float>& x, const std::vector<float>& y, std::size_t row,
                      std::size_t width) {
  double error = 0;
  double energy = 0;
  for (std::size_t i = row * width; i < (row + 1) * width; ++i) {
    error += (double(y[i]) - double(x[i])) * (double(y[i]) - double(x[i]));
    energy += double(x[i]) * double(x[i]);
  }
  return error / energy;
}

// A token that is 50 times as loud as the others, beside which they lie in groups and blocks of
// rows 192 wide: normalised, every token has the error of codes of the normal law. As they are, its
// neighbours have a hundred times that.
TEST(Statistics, ALoudTokenSpoilsNoOther) {
  constexpr std::size_t width = 192;
  constexpr std::size_t tokens = 64;
  constexpr std::size_t loud = 21;
  auto x = normal_floats(width * tokens, 11);
  for (std::size_t i = loud * width; i < (loud + 1) * width; ++i) x[i] *= 50;
  reference::problem p{rotated_codec(2), {i64(tokens), i64(width)}};
  p.extent = i64(width);
  for (std::size_t t = 0; t < tokens; ++t) {
    double sum = 0;
    double squares = 0;
    for (std::size_t i = t * width; i < (t + 1) * width; ++i) {
      sum += double(x[i]);
      squares += double(x[i]) * double(x[i]);
    }
    const double mean = sum / width;
    p.mean.push_back(float(mean));
    p.inverse_deviation.push_back(float(1 / std::sqrt(squares / width - mean * mean)));
  }
  const plan made = make_plan(p);
  const statistics given = reference::statistics_of(p);
  for (const auto& engine : backends()) {
    const auto as_it_is = round_trip(*engine, made, x, statistics_key);
    const auto blob =
        compress(*engine, made, bytes_of(x), dtype::f32, statistics_key, {}, {}, {}, given);
    const auto y =
        floats_of(decompress(*engine, made, blob, dtype::f32, {}, {}, statistics_key, given));
    double worst_as_it_is = 0;
    for (std::size_t t = 0; t < tokens; ++t) {
      const double error = relative_error(x, y, t, width);
      EXPECT_GT(error, 0.09) << t;
      EXPECT_LT(error, 0.19) << t;
      if (t != loud)
        worst_as_it_is = std::max(worst_as_it_is, relative_error(x, as_it_is, t, width));
    }
    EXPECT_GT(worst_as_it_is, 10);
  }
}

TEST(Statistics, BadArgumentsAreNamedAndNothingIsWritten) {
  constexpr i64 n = 2048;
  const plan p = make_plan({}, {2, 8, 128});
  const auto content = random_bytes(32768, 3);
  for (const auto& engine : backends()) {
    guarded_buffer memory(content);
    const auto floats_at = [&](std::size_t byte) {
      return reinterpret_cast<const float*>(memory.data() + byte);
    };
    const values x{memory.data(), dtype::f32, n};
    const bytes blob{memory.data() + 16384, p.size_bytes()};
    const float* const mean = floats_at(24576);
    const float* const inverse = floats_at(28672);
    const auto refused = [&](const plan& of, const statistics& given, error code,
                             const char* argument, i64 value = 0) {
      const bytes out{blob.data, of.size_bytes()};
      for (const status& s : {engine->compress(of, x, out, statistics_key, {}, {}, given),
                              engine->decompress(of, out, x, {}, statistics_key, given),
                              engine->decompress_add(of, out, x, {}, statistics_key, given)}) {
        EXPECT_EQ(s.code, code) << to_string(s);
        EXPECT_STREQ(s.argument, argument) << to_string(s);
        EXPECT_EQ(s.value, value) << to_string(s);
      }
      EXPECT_EQ(memory.bytes(), content);
    };
    const char* const of_inverse = "options.statistics.inverse_deviation";
    const char* const of_count = "options.statistics.count";
    const char* const of_extent = "options.statistics.extent";
    refused(p, {mean, nullptr, 16, 128}, error::null_pointer, of_inverse);
    refused(p, {nullptr, nullptr, 16, 0}, error::null_pointer, of_inverse);
    refused(p, {nullptr, nullptr, 0, 1}, error::null_pointer, of_inverse);
    for (const i64 count : {i64(0), i64(-1), i64(1) << 31, i64(1) << 62})
      refused(p, {mean, inverse, count, 128}, error::out_of_range, of_count, count);
    for (const i64 extent : {i64(0), i64(-5)})
      refused(p, {mean, inverse, 16, extent}, error::out_of_range, of_extent, extent);
    const statistics good{mean, inverse, 16, 128};
    codec pooled;
    pooled.window = {1, 1, 8};
    refused(make_plan(pooled, p.shape()), good, error::wrong_plan, "options.statistics");
    pooled = rotated_codec(2, {1, 1, 8});
    refused(make_plan(pooled, p.shape()), good, error::wrong_plan, "options.statistics");
    refused(make_plan(positives_codec(2), p.shape()), good, error::wrong_plan,
            "options.statistics");
    codec by_lines;
    by_lines.by_lines = true;
    refused(make_plan(by_lines, p.shape()), good, error::wrong_plan, "options.statistics");
    const std::vector<u8> widths = {3, 1};
    const plan mixed = *plan::make_mixed({}, p.shape(), 4);
    const status s = engine->compress(mixed, x, blob, statistics_key, widths, {}, good);
    EXPECT_EQ(s.code, error::wrong_plan) << to_string(s);
    EXPECT_STREQ(s.argument, "options.statistics");
    const float pair[] = {-2, 2};
    const status in_range =
        engine->compress(p, x, blob, statistics_key, {}, given_ranges::of_tensor(pair), good);
    EXPECT_EQ(in_range.code, error::out_of_range) << to_string(in_range);
    EXPECT_STREQ(in_range.argument, "options.ranges");
    EXPECT_EQ(memory.bytes(), content);
  }
}

// An empty batch has no statistics, but what does not fit its plan is refused all the same.
TEST(Statistics, OfNoElements) {
  codec pooled;
  pooled.window = {1, 8};
  const float one = 1;
  for (const auto& engine : backends()) {
    for (const statistics& given :
         {statistics{nullptr, nullptr, 0, 8}, statistics{&one, &one, 1, 8}}) {
      const plan p = make_plan({}, {0, 8});
      EXPECT_TRUE(engine->compress(p, {}, {}, statistics_key, {}, {}, given));
      EXPECT_TRUE(engine->decompress(p, {}, {}, {}, {}, given));
      EXPECT_TRUE(engine->decompress_add(p, {}, {}, {}, {}, given));
      const plan with_means = make_plan(pooled, {0, 8});
      EXPECT_STREQ(engine->compress(with_means, {}, {}, statistics_key, {}, {}, given).argument,
                   "options.statistics");
    }
  }
}

}  // namespace
}  // namespace furl::test
