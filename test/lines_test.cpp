// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Groups that end with lines (FORMAT.md, A15), against the slow reference, and why one wants them.

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "support/coded.hpp"
#include "support/inputs.hpp"

namespace furl::test {
namespace {

codec line_codec(int bits, int group, rounding mode = rounding::stochastic) {
  codec c;
  c.bits = bits;
  c.group = group;
  c.rounding = mode;
  c.by_lines = true;
  return c;
}

class LineWidths : public testing::TestWithParam<i64> {};

TEST_P(LineWidths, AsReference) {
  const i64 width = GetParam();
  int turn = 0;
  for (const i64 lines : {1, 2, 13})
    for (const int group : {32, 64, 256, 1024})
      for (const dtype type : all_types) {
        if (lines * width > 40000) continue;
        codec c = line_codec(1 + turn % 8, group, rounding(turn % 3));
        c.meta = turn % 4 < 2 ? dtype::bf16 : dtype::f32;
        ++turn;
        SCOPED_TRACE(std::to_string(lines) + " lines, groups of " + std::to_string(group));
        const auto count = static_cast<std::size_t>(lines * width);
        const random_key key{u64(turn), 77};
        expect_as_reference({c, {lines, width}}, normal_input(lines * width, type, u32(turn)), type,
                            key);
        expect_as_reference({c, {lines, width}}, awkward_elements(count, type, u32(turn)), type,
                            key);
      }
}
INSTANTIATE_TEST_SUITE_P(Of, LineWidths,
                         testing::Values(1, 3, 31, 32, 33, 64, 100, 127, 197, 384, 768, 1000, 1023,
                                         1024, 1025, 3001));

TEST(Lines, EveryAlignment) {
  for (const std::size_t bytes : {1u, 2u, 4u, 6u, 8u, 12u, 16u, 20u})
    for (const dtype type : all_types)
      for (const i64 width : {50, 197})
        expect_as_reference({line_codec(2, 64), {11, width}}, normal_input(11 * width, type, 8),
                            type, {9, 10}, {bytes});
}

TEST(Lines, ShapesOfAnyRank) {
  for (const extents& shape :
       {extents{}, extents{5}, extents{0, 7}, extents{7, 0}, extents{2, 3, 4, 35}, extents{9, 1}}) {
    i64 n = 1;
    for (int d = 0; d < shape.rank; ++d) n *= shape[d];
    expect_as_reference({line_codec(4, 32), shape}, normal_input(n, dtype::f32, 3), dtype::f32,
                        {1, 2});
  }
}

TEST(Lines, ManyThreadsShareTiles) {
  expect_as_reference({line_codec(2, 128), {97, 201}}, normal_input(97 * 201, dtype::bf16, 3),
                      dtype::bf16, {1, 2});
}

// Lines that are whole groups need no filling: the same bytes as without.
TEST(Lines, ChangeNothingWhereGroupsFit) {
  const plan filled = make_plan(line_codec(2, 128), {6, 384});
  codec c = line_codec(2, 128);
  c.by_lines = false;
  const plan plain = make_plan(c, {6, 384});
  EXPECT_FALSE(filled.fills_lines());
  EXPECT_EQ(filled.size_bytes(), plain.size_bytes());
  const auto x = normal_floats(6 * 384, 1);
  for (const auto& engine : backends())
    EXPECT_EQ(compress(*engine, filled, x, {1, 2}), compress(*engine, plain, x, {1, 2}));
}

TEST(Lines, Sizes) {
  const plan p = make_plan(line_codec(2, 256), {10, 50257});
  EXPECT_TRUE(p.fills_lines());
  EXPECT_EQ(p.num_elements(), 502570);
  EXPECT_EQ(p.num_codes(), 10 * 197 * 256);
  EXPECT_EQ(p.num_groups(), 1970);
  EXPECT_EQ(p.num_tiles(), 493);
  EXPECT_EQ(p.meta_offset(), 493u * 256);
  EXPECT_EQ(p.size_bytes(), 493u * 256 + 1970 * 4 + 8);
}

// A token that is 50 times as loud as its neighbours, of which a group would otherwise hold a part.
TEST(Lines, ALoudTokenLeavesItsNeighboursAlone) {
  constexpr i64 width = 200;
  constexpr i64 tokens = 64;
  auto x = normal_floats(tokens * width, 5);
  for (i64 i = 0; i < i64(x.size()); ++i)
    if (i / width % 8 == 3) x[static_cast<std::size_t>(i)] *= 50;
  const auto error_of_quiet = [&](bool by_lines) {
    codec c = line_codec(4, 256);
    c.by_lines = by_lines;
    const auto y = round_trip(*backends()[0], make_plan(c, {tokens, width}), x, {3, 4});
    double error = 0;
    double energy = 0;
    for (i64 i = 0; i < i64(x.size()); ++i) {
      if (i / width % 8 == 3) continue;
      const auto at = static_cast<std::size_t>(i);
      error += (double(y[at]) - x[at]) * (double(y[at]) - x[at]);
      energy += double(x[at]) * x[at];
    }
    return error / energy;
  };
  EXPECT_LT(error_of_quiet(true), 0.03);
  EXPECT_GT(error_of_quiet(false), 1.0);
}

TEST(LinesArguments, PlansAreRefused) {
  const auto refused = [](const codec& c, const extents& shape, const char* argument) {
    const status s = plan::make(c, shape).status();
    EXPECT_EQ(s.code, error::out_of_range);
    EXPECT_STREQ(s.argument, argument);
  };
  codec c = line_codec(2, 64);
  c.window = {1, 8};
  refused(c, {4, 100}, "codec.by_lines");
  for (codec rotated : {rotated_codec(2), positives_codec(2)}) {
    rotated.by_lines = true;
    refused(rotated, {4, 100}, "codec.by_lines");
  }
  refused(line_codec(1, 1024), {i64(1) << 53, 1}, "shape");
  EXPECT_TRUE(plan::make(line_codec(1, 1024), {i64(1) << 52, 1}));
  EXPECT_STREQ(plan::make_mixed(line_codec(2, 64), {4, 100}, 2).status().argument,
               "codec.by_lines");
}

TEST(LinesArguments, CallsAboutRangesAreRefused) {
  const plan p = make_plan(line_codec(2, 64), {4, 100});
  const std::vector<float> x(400, 1.0f);
  std::vector<double> squared(1);
  std::vector<quality> groups(static_cast<std::size_t>(p.num_groups()));
  quality total;
  const std::vector<float> parts(4, 1.0f);
  std::vector<float> tiles(1);
  const float pair[] = {0.0f, 1.0f};
  for (const auto& engine : backends()) {
    guarded_buffer blob(p.size_bytes());
    const host::const_values in(x);
    for (const status& s : {engine->squared_ranges(p, in, squared),
                            engine->squared_ranges(p, {blob.data(), blob.size()}, squared),
                            engine->measure(p, in, {blob.data(), blob.size()}, groups, &total),
                            engine->expand_sensitivity(p, parts, tiles),
                            engine->compress(p, in, {blob.data(), blob.size()}, {}, {},
                                             given_ranges::of_tensor(pair))}) {
      EXPECT_EQ(s.code, error::wrong_plan) << to_string(s);
      EXPECT_STREQ(s.argument, "plan");
    }
  }
}

TEST(LinesArguments, PlanBytes) {
  const plan p = make_plan(line_codec(2, 64), {4, 100});
  plan_bytes bytes = serialize(p);
  EXPECT_EQ(bytes.data[4], 2);
  EXPECT_EQ(bytes.data[14], 1);
  EXPECT_EQ(*deserialize(bytes), p);
  for (const auto& [at, value] : {std::pair{4, 1}, {14, 2}, {15, 1}}) {
    plan_bytes changed = bytes;
    changed.data[at] = u8(value);
    EXPECT_EQ(deserialize(changed).status().code, error::corrupt) << at;
  }
  bytes.data[14] = 0;
  bytes.data[4] = 1;
  EXPECT_FALSE(deserialize(bytes)->fills_lines());
}

}  // namespace
}  // namespace furl::test
