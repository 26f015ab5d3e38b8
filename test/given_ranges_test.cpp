// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Ranges that are given to compress instead of measured by it.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "furl/detail/quantize.hpp"
#include "support/inputs.hpp"
#include "support/run.hpp"

namespace furl::test {
namespace {

std::vector<range> some_ranges(std::size_t count, u32 seed) {
  const auto ends = uniform_floats(2 * count, seed);
  std::vector<range> out;
  for (std::size_t i = 0; i < count; ++i)
    out.push_back({std::min(ends[2 * i], ends[2 * i + 1]), std::max(ends[2 * i], ends[2 * i + 1])});
  if (count > 3) out[2] = {0.25f, 0.25f};
  return out;
}

std::size_t count_pairs(const reference::problem& p) {
  const i64 groups = (reference::num_elements(p) + p.codec.group - 1) / p.codec.group;
  return static_cast<std::size_t>(p.scope == range_scope::channel ? p.shape[p.dimension]
                                  : p.scope == range_scope::group ? groups
                                                                  : 1);
}

/// Normal elements, many beyond the ranges, some infinite.
void expect_as_reference(reference::problem p, dtype type, u32 seed, misalignment where = {}) {
  SCOPED_TRACE(std::string(name(type)) + ", scope " + std::to_string(int(p.scope)) + " " +
               std::to_string(p.dimension) + ", seed " + std::to_string(seed));
  p.ranges = some_ranges(count_pairs(p), seed);
  auto x = normal_floats(static_cast<std::size_t>(reference::num_elements(p)), seed);
  x[x.size() / 2] = infinity;
  x[x.size() / 3] = -infinity;
  if (seed % 2 == 0) x[x.size() - 1] = nan;
  test::expect_as_reference(p, reference::from_floats(x, type), type, {seed, 7}, where);
}

TEST(GivenRanges, AsReference) {
  u32 seed = 0;
  for (const range_scope scope : {range_scope::tensor, range_scope::group, range_scope::channel})
    for (const dtype type : all_types)
      for (const int group : {32, 256, 1024})
        for (int dimension = 0; dimension < (scope == range_scope::channel ? 4 : 1); ++dimension) {
          reference::problem p{{}, {3, 5, 11, 17}, {}};
          p.scope = scope;
          p.dimension = dimension;
          p.codec.group = group;
          p.codec.bits = static_cast<int>(1 + ++seed % 8);
          p.codec.meta = seed % 3 == 0 ? dtype::f32 : dtype::bf16;
          p.codec.rounding = seed % 5 == 0 ? rounding::nearest : rounding::stochastic;
          expect_as_reference(p, type, seed, {seed % 2 * 4});
        }
}

// Every way that a device has to the means: see LfcPath tests.
TEST(GivenRanges, WithMeansTheyAreOfResiduals) {
  const struct {
    extents shape;
    extents window;
  } problems[] = {{{2, 6, 16, 24}, {1, 1, 8, 8}}, {{2, 6, 16, 25}, {1, 1, 3, 5}},
                  {{50, 7, 24}, {1, 1, 8}},       {{9, 50, 5}, {1, 8, 1}},
                  {{4, 50, 44}, {1, 8, 1}},       {{2, 30, 11, 13}, {1, 8, 8, 1}}};
  u32 seed = 100;
  for (const auto& [shape, window] : problems)
    for (const dtype type : all_types)
      for (const range_scope scope : {range_scope::channel, range_scope::group}) {
        reference::problem p{{}, shape, {}};
        p.codec.window = window;
        p.codec.group = scope == range_scope::channel ? 256 : 64;
        p.scope = scope;
        p.dimension = 1;
        expect_as_reference(p, type, seed, {seed % 3 == 0 ? 4u : 0u});
        ++seed;
      }
}

TEST(GivenRanges, WithMixedWidths) {
  reference::problem p{{}, {7, 600}, {1, 8, 3, 2, 5}};
  for (const int dimension : {0, 1}) {
    p.scope = range_scope::channel;
    p.dimension = dimension;
    expect_as_reference(p, dtype::f32, 200u + static_cast<u32>(dimension));
  }
}

// Channels that change with every element: fewer than a lane has, than a group has, and more.
TEST(GivenRanges, ChannelsLast) {
  u32 seed = 300;
  for (const i64 channels : {1, 3, 31, 32, 33, 100, 255, 256, 1000, 1024, 1500})
    for (const int group : {32, 256, 1024}) {
      reference::problem p{{}, {1 + 2500 / channels, channels}, {}};
      p.codec.group = group;
      p.scope = range_scope::channel;
      p.dimension = 1;
      expect_as_reference(p, dtype::f32, ++seed);
    }
}

TEST(GivenRanges, ElementsBecomeTheEnds) {
  const std::vector<float> x = {-5, -1, -0.5f, 0, 0.5f, 1, 5, infinity, -infinity};
  const float pair[] = {-1, 1};
  codec c;
  c.bits = 8;
  c.meta = dtype::f32;
  const plan p = make_plan(c, {9});
  for (const auto& engine : backends()) {
    const auto blob = compress(*engine, p, bytes_of(x), dtype::f32, {1, 2}, {}, {},
                               given_ranges::of_tensor(pair));
    const auto y = decompress(*engine, p, blob);
    for (const std::size_t low : {0u, 1u, 8u}) EXPECT_EQ(y[low], -1);
    for (const std::size_t high : {5u, 6u, 7u}) EXPECT_NEAR(y[high], 1, 1e-6);
    for (const std::size_t inside : {2u, 3u, 4u}) EXPECT_NEAR(y[inside], x[inside], 2.0 / 255);
  }
}

TEST(GivenRanges, NaNPoisonsItsGroupAlone) {
  auto x = normal_floats(1024, 3);
  x[300] = nan;
  const float pair[] = {-2, 2};
  const plan p = make_plan({}, {1024});
  for (const auto& engine : backends()) {
    const auto y = decompress(*engine, p,
                              compress(*engine, p, bytes_of(x), dtype::f32, {1, 2}, {}, {},
                                       given_ranges::of_tensor(pair)));
    for (std::size_t i = 0; i < y.size(); ++i) EXPECT_EQ(std::isnan(y[i]), i / 256 == 1) << i;
  }
}

/// The host reads pairs beforehand; a device that finds one poisons its groups.
TEST(GivenRanges, PairsThatAreNone) {
  const auto x = normal_floats(2048, 3);
  const plan p = make_plan({}, {2, 8, 128});
  for (const range bad : {range{nan, 1}, range{-1, nan}, range{1, -1}, range{-infinity, 1},
                          range{-1, infinity}, range{1e-40f, -1e-40f}}) {
    std::vector<range> pairs(8, {-2, 2});
    pairs[5] = bad;
    const auto given = given_ranges::of_channels(&pairs[0].lo, 8, 1);
    for (const auto& engine : backends()) {
      guarded_buffer blob(p.size_bytes());
      const auto before = blob.bytes();
      const status s =
          engine->compress(p, host::const_values(x), {blob.data(), blob.size()}, {1, 2}, {}, given);
      if (std::string(engine->name()) != "device") {
        EXPECT_EQ(s.code, error::out_of_range);
        EXPECT_STREQ(s.argument, "options.ranges");
        EXPECT_EQ(s.value, 5);
        EXPECT_EQ(blob.bytes(), before);
        continue;
      }
      EXPECT_TRUE(s);
      const auto y = decompress(*engine, p, blob.bytes());
      for (std::size_t i = 0; i < y.size(); ++i)
        EXPECT_EQ(std::isnan(y[i]), i / 256 % 4 == 2) << i;  // channels 4 and 5
    }
  }
}

TEST(GivenRanges, BadArgumentsAreNamedAndNothingIsWritten) {
  const auto x = normal_floats(2048, 3);
  const std::vector<range> pairs(8, {-2, 2});
  const float* const at = &pairs[0].lo;
  const plan p = make_plan({}, {2, 8, 128});
  guarded_buffer blob(p.size_bytes());
  const auto before = blob.bytes();
  const auto expect = [&](backend& engine, const given_ranges& given, error code,
                          const char* argument, i64 value) {
    const status s =
        engine.compress(p, host::const_values(x), {blob.data(), blob.size()}, {1, 2}, {}, given);
    EXPECT_EQ(s.code, code) << to_string(s);
    EXPECT_STREQ(s.argument, argument);
    EXPECT_EQ(s.value, value);
    EXPECT_EQ(blob.bytes(), before);
  };
  for (const auto& engine : backends()) {
    expect(*engine, given_ranges::of_tensor(nullptr), error::null_pointer, "options.ranges", 0);
    expect(*engine, given_ranges::of_channels(at, 7, 1), error::wrong_size, "options.ranges", 7);
    expect(*engine, given_ranges::of_channels(at, 8, 0), error::wrong_size, "options.ranges", 8);
    expect(*engine, given_ranges::of_groups(at, 1), error::wrong_size, "options.ranges", 1);
    for (const given_ranges& nobodys : {given_ranges{at, 0}, given_ranges{nullptr, 1}})
      expect(*engine, nobodys, error::out_of_range, "options.ranges.scope", 0);
    expect(*engine, given_ranges::of_channels(at, 8, 3), error::out_of_range,
           "options.ranges.dimension", 3);
    expect(*engine, given_ranges::of_channels(at, 8, -1), error::out_of_range,
           "options.ranges.dimension", -1);
    EXPECT_TRUE(engine->compress(make_plan({}, {0, 8}), {}, {}, {}, {},
                                 given_ranges::of_channels(nullptr, 8, 1)));
  }
}

TEST(GivenRanges, SymmetricOnesHoldZero) {
  for (const float maximum : {1.0f, 0.3f, 1234.5f, 7e-20f, 3e30f})
    for (const dtype meta : {dtype::bf16, dtype::f32})
      for (int bits = 2; bits <= 8; ++bits) {
        codec c;
        c.bits = bits;
        c.meta = meta;
        c.rounding = rounding::nearest;
        const range ends = symmetric_range(maximum, bits);
        EXPECT_GE(ends.hi, maximum);
        EXPECT_LE(ends.lo, -maximum);
        const float step = ends.hi / static_cast<float>((1 << (bits - 1)) - 1);
        std::vector<float> x = {0, -0.0f, maximum, -maximum, maximum / 3, -maximum / 5};
        const plan p = make_plan(c, {6});
        for (const auto& engine : backends()) {
          const auto blob = compress(*engine, p, bytes_of(x), dtype::f32, {}, {}, {},
                                     given_ranges::of_tensor(&ends.lo));
          EXPECT_EQ(group_of(p, blob, 0).step, step);
          const auto y = decompress(*engine, p, blob);
          EXPECT_EQ(y[0], 0);
          EXPECT_EQ(y[1], 0);
          for (std::size_t i = 2; i < 6; ++i) EXPECT_NEAR(y[i], x[i], step * 0.503);
        }
      }
}

// Near the largest f32 the step below -maximum has no room: the widest range that can be coded.
TEST(GivenRanges, SymmetricOnesOfTheLargestFloats) {
  const float most = std::numeric_limits<float>::max();
  for (const float maximum : {most, most / 2, most / 3, most / 255, 1e38f})
    for (const dtype meta : {dtype::bf16, dtype::f32})
      for (int bits = 2; bits <= 8; ++bits) {
        SCOPED_TRACE(std::to_string(maximum) + ", " + std::to_string(bits) + " bits");
        const range ends = symmetric_range(maximum, bits);
        EXPECT_TRUE(is_range(ends.lo, ends.hi));
        EXPECT_GE(ends.hi, std::min(maximum, most / 4 / static_cast<float>(bits == 2 ? 2 : 1)));
        codec c;
        c.bits = bits;
        c.meta = meta;
        c.rounding = rounding::nearest;
        const plan p = make_plan(c, {3});
        const std::vector<float> x = {0, maximum, -maximum};
        for (const auto& engine : backends()) {
          const auto y = decompress(*engine, p,
                                    compress(*engine, p, bytes_of(x), dtype::f32, {}, {}, {},
                                             given_ranges::of_tensor(&ends.lo)));
          EXPECT_EQ(y[0], 0);
          const float step = ends.hi / static_cast<float>((1 << (bits - 1)) - 1);
          EXPECT_NEAR(y[1], std::min(maximum, ends.hi), step * 0.503f);
          EXPECT_TRUE(is_finite(y[2])) << y[2];
        }
      }
}

// BLPA: batch-normalised values in bins of a fixed width, 6 over all of them, and reproduced as the
// middle of their bin; a bin of each channel ends where its ReLU bends.
TEST(GivenRanges, FixedBinsOfBLPA) {
  const i64 channels = 4;
  const i64 plane = 512;
  const float bends[] = {0, 0.4f, -1.3f, 2.2f};  // in the normalised values
  const auto x = normal_floats(static_cast<std::size_t>(2 * channels * plane), 9);
  for (const int bits : {4, 8}) {
    const float bins = static_cast<float>(1 << bits);
    const float bin = 6 / bins;
    std::vector<range> pairs;
    for (const float bend : bends) {
      const float first = bend - bin * std::round((3 + bend) / bin);  // an end of a bin, near -3
      pairs.push_back({first + 0.5f * bin, first + (bins - 0.5f) * bin});
    }
    codec c;
    c.bits = bits;
    c.meta = dtype::f32;
    c.rounding = rounding::nearest;
    const plan p = make_plan(c, {2, channels, plane});
    for (const auto& engine : backends()) {
      const auto y = decompress(*engine, p,
                                compress(*engine, p, bytes_of(x), dtype::f32, {}, {}, {},
                                         given_ranges::of_channels(&pairs[0].lo, channels, 1)));
      for (std::size_t i = 0; i < x.size(); ++i) {
        const auto channel = i / static_cast<std::size_t>(plane) % 4;
        const float saturated = std::min(std::max(x[i], pairs[channel].lo), pairs[channel].hi);
        EXPECT_NEAR(y[i], saturated, 0.503 * bin);
        if (std::abs(x[i] - bends[channel]) <= bin / 256) continue;  // rounded first: FORMAT.md, A4
        EXPECT_EQ(y[i] > bends[channel], x[i] > bends[channel]) << x[i];  // the mask is there too
      }
    }
  }
}

// Mesa: 8 bits over running ranges of heads, which a batch may well leave.
TEST(GivenRanges, RunningRangesOfMesa) {
  const i64 heads = 4;
  const std::size_t per_head = 2 * 512;
  const auto x = normal_floats(heads * 2 * per_head, 10);
  std::vector<range> running(heads, {-2.5f, 2.5f});
  for (range& r : running) r = {0.9f * r.lo + 0.1f * -3, 0.9f * r.hi + 0.1f * 3};
  codec c;
  c.bits = 8;
  const plan p = make_plan(c, {2, heads, 2, 512});
  for (const auto& engine : backends()) {
    double sum = 0;
    for (u64 step = 0; step < 20; ++step) {
      const auto y = decompress(*engine, p,
                                compress(*engine, p, bytes_of(x), dtype::f32, {1, step}, {}, {},
                                         given_ranges::of_channels(&running[0].lo, heads, 1)));
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double saturated = std::min(std::max(x[i], running[0].lo), running[0].hi);
        EXPECT_NEAR(y[i], saturated, 5.2 / 255);  // never from one end to the other
        sum += static_cast<double>(y[i]) - saturated;
      }
    }
    EXPECT_LT(std::abs(sum / (20 * static_cast<double>(x.size()))), 5.2 / 255 / 256);
  }
}

}  // namespace
}  // namespace furl::test
