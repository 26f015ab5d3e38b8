// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// What bits are allocated by: squared ranges and sensitivities of tiles.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "support/inputs.hpp"
#include "support/run.hpp"

namespace furl::test {
namespace {

double tree_sum(std::vector<double> summands) {
  if (summands.size() == 1) return summands[0];
  std::vector<double> sums;
  for (std::size_t i = 0; i < summands.size(); i += 2)
    sums.push_back(summands[i] + (i + 1 < summands.size() ? summands[i + 1] : 0.0));
  return tree_sum(sums);
}

/// Of the groups of each tile, from their ranges.
std::vector<double> sum_of_squares(const std::vector<float>& ranges, i64 groups_per_tile) {
  std::vector<double> out;
  for (std::size_t begin = 0; begin < ranges.size();
       begin += static_cast<std::size_t>(groups_per_tile)) {
    std::vector<double> summands;
    for (std::size_t g = begin;
         g < std::min(ranges.size(), begin + static_cast<std::size_t>(groups_per_tile)); ++g) {
      const double range = std::isfinite(ranges[g]) ? static_cast<double>(ranges[g]) : 0.0;
      summands.push_back(range * range);
    }
    out.push_back(tree_sum(summands));
  }
  return out;
}

std::vector<double> squared_ranges(const codec& c, const std::vector<float>& x) {
  std::vector<float> ranges;
  const auto group = static_cast<std::size_t>(c.group);
  for (std::size_t begin = 0; begin < x.size(); begin += group) {
    float lo = infinity;
    float hi = -infinity;
    for (std::size_t i = begin; i < std::min(x.size(), begin + group); ++i) {
      lo = std::isnan(x[i]) || std::isnan(lo) ? nan : std::min(lo, x[i]);
      hi = std::isnan(x[i]) || std::isnan(hi) ? nan : std::max(hi, x[i]);
    }
    ranges.push_back(hi - lo);
  }
  return sum_of_squares(ranges, 1024 / c.group);
}

std::vector<float> varied_floats(std::size_t n, u32 seed) {
  auto x = normal_floats(n, seed);
  for (std::size_t i = 0; i < n; ++i) x[i] *= static_cast<float>(1 + i / 300);
  if (seed % 3 == 0 && n > 700) {
    x[n / 2] = nan;
    x[n / 3] = infinity;
    x[n - 1] = -infinity;
  }
  return x;
}

TEST(SquaredRanges, AsReference) {
  u32 seed = 0;
  for (const std::size_t n : {1u, 31u, 1000u, 1024u, 1025u, 5000u, 9216u})
    for (const int group : {32, 64, 128, 256, 512, 1024})
      for (const dtype type : all_types) {
        codec c;
        c.group = group;
        const auto elements = reference::from_floats(varied_floats(n, ++seed), type);
        const auto expected = squared_ranges(c, reference::to_floats(elements, type));
        const guarded_buffer x(elements, seed % 4 * 4);
        const plan p = make_plan(c, {static_cast<i64>(n)});
        for (const auto& engine : backends()) {
          std::vector<double> found(expected.size(), -1);
          ASSERT_TRUE(engine->squared_ranges(p, {x.data(), type, static_cast<i64>(n)}, found));
          EXPECT_EQ(found, expected) << engine->name() << " " << n << " " << group;
        }
      }
}

TEST(SquaredRanges, LargestAndSmallestRanges) {
  const plan p = make_plan({}, {1024});
  std::vector<float> x(1024, 0);
  x[0] = -1.5e38f;
  x[1] = 1.5e38f;  // its square is far beyond f32
  x[256] = 1e-45f;
  x[512] = -3e38f;  // a range that f32 does not hold: a poisoned group
  x[513] = 3e38f;
  const double large = static_cast<double>(1.5e38f + 1.5e38f);
  const double small = std::ldexp(1.0, -149);
  for (const auto& engine : backends()) {
    std::vector<double> found(1);
    ASSERT_TRUE(engine->squared_ranges(p, host::const_values(x), found));
    EXPECT_EQ(found[0], large * large);
    x[0] = x[1] = 0;
    ASSERT_TRUE(engine->squared_ranges(p, host::const_values(x), found));
    EXPECT_EQ(found[0], small * small);
    x[0] = -1.5e38f;
    x[1] = 1.5e38f;
  }
}

TEST(SquaredRanges, OfABlob) {
  u32 seed = 0;
  for (const std::size_t n : {1u, 1000u, 1025u, 5000u})
    for (const int group : {32, 256, 1024})
      for (const bool mixed : {false, true})
        for (const bool pooled : {false, true}) {
          reference::problem problem{{}, {static_cast<i64>(n)}, {}};
          problem.codec.bits = 3;
          problem.codec.group = group;
          problem.codec.meta = seed % 2 == 0 ? dtype::bf16 : dtype::f32;
          if (pooled) problem.codec.window = {8};
          if (mixed)
            for (std::size_t t = 0; t < (n + 1023) / 1024; ++t)
              problem.widths.push_back(static_cast<u8>(1 + (t + seed) % 8));
          const auto elements = bytes_of(varied_floats(n, ++seed));
          const auto content = reference::compress(problem, elements, dtype::f32, {1, 2});
          const plan p = make_plan(problem);
          std::vector<float> ranges;
          for (i64 g = 0; g < p.num_groups(); ++g) {
            const int bits = reference::bits_of_tile(problem, g * group / 1024);
            const float range = static_cast<float>((1 << bits) - 1) * group_of(p, content, g).step;
            ranges.push_back(range);
          }
          const auto expected = sum_of_squares(ranges, 1024 / group);
          const guarded_buffer blob(content);
          for (const auto& engine : backends()) {
            std::vector<double> found(expected.size(), -1);
            ASSERT_TRUE(engine->squared_ranges(p, const_bytes{blob.data(), blob.size()}, found,
                                               problem.widths));
            EXPECT_EQ(found, expected) << engine->name() << " " << n << " " << group;
          }
        }
}

TEST(SquaredRanges, BadArgumentsAreNamed) {
  const std::vector<float> x(2000, 1);
  std::vector<double> squared(2, 77);
  codec pooled;
  pooled.window = {8};
  const plan p = make_plan({}, {2000});
  const auto expect = [&](const status& given, error code, const char* argument) {
    EXPECT_EQ(given.code, code) << to_string(given);
    EXPECT_STREQ(given.argument, argument);
    EXPECT_EQ(squared, std::vector<double>(2, 77));
  };
  const host::const_values in(x);
  for (const auto& engine : backends()) {
    expect(engine->squared_ranges(make_plan(pooled, {2000}), in, squared), error::wrong_plan,
           "plan");
    expect(engine->squared_ranges(*plan::make_codes(1, {2000}), in, squared), error::wrong_plan,
           "plan");
    expect(engine->squared_ranges(p, const_values(x.data(), 1999), squared), error::wrong_size,
           "x");
    expect(engine->squared_ranges(p, const_values(nullptr, dtype::f32, 2000), squared),
           error::null_pointer, "x");
    expect(engine->squared_ranges(p, in, {squared.data(), 1}), error::wrong_size, "squared");
    expect(engine->squared_ranges(p, in, {nullptr, 2}), error::null_pointer, "squared");
    expect(engine->squared_ranges(p, const_bytes{nullptr, p.size_bytes()}, squared),
           error::null_pointer, "blob");
    EXPECT_TRUE(engine->squared_ranges(make_plan({}, {0}), const_values{}, {}));
  }
}

// ---- Sensitivities ---------------------------------------------------------------------------

TEST(ExpandSensitivity, LargestOfTheParts) {
  u32 seed = 0;
  for (const i64 parts : {1, 2, 3, 7, 600, 3000, 21000}) {
    const i64 n = 21000;
    auto of_parts = uniform_floats(static_cast<std::size_t>(parts), ++seed);
    if (parts > 10) of_parts[3] = nan;
    if (parts > 10) of_parts[static_cast<std::size_t>(parts) / 2] = infinity;
    std::vector<float> expected((n + 1023) / 1024, 0);
    for (i64 i = 0; i < n; ++i) {
      const float s = of_parts[static_cast<std::size_t>(i / (n / parts))];
      float& most = expected[static_cast<std::size_t>(i / 1024)];
      if (s > most) most = s;  // never for NaN
    }
    for (const auto& engine : backends()) {
      std::vector<float> found(expected.size(), -5);
      ASSERT_TRUE(engine->expand_sensitivity(make_plan({}, {n}), of_parts, found));
      EXPECT_EQ(found, expected) << engine->name() << " " << parts;
    }
  }
}

TEST(ExpandSensitivity, BadArgumentsAreNamed) {
  const std::vector<float> in(3, 1);
  std::vector<float> out(3, 77);
  const plan p = make_plan({}, {3000});
  const auto expect = [&](const status& given, error code, const char* argument) {
    EXPECT_EQ(given.code, code) << to_string(given);
    EXPECT_STREQ(given.argument, argument);
    EXPECT_EQ(out, std::vector<float>(3, 77));
  };
  for (const auto& engine : backends()) {
    expect(engine->expand_sensitivity(p, {in.data(), 0}, out), error::wrong_size, "of_parts");
    expect(engine->expand_sensitivity(p, {in.data(), 7}, out), error::wrong_size, "of_parts");
    expect(engine->expand_sensitivity(p, {nullptr, 3}, out), error::null_pointer, "of_parts");
    expect(engine->expand_sensitivity(p, in, {out.data(), 2}), error::wrong_size, "of_tiles");
    expect(engine->expand_sensitivity(p, in, {nullptr, 3}), error::null_pointer, "of_tiles");
    EXPECT_TRUE(engine->expand_sensitivity(make_plan({}, {0, 3}), {}, {}));
  }
}

}  // namespace
}  // namespace furl::test
