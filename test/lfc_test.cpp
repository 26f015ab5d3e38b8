// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Windows: every arrangement of pooled dimensions against the reference, means by hand, and a
// double-precision mean that does not know the order of additions.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>

#include "support/inputs.hpp"
#include "support/run.hpp"

namespace furl::test {
namespace {

struct cells {
  const char* name;
  extents shape;
  extents window;
};
std::ostream& operator<<(std::ostream& out, const cells& c) {
  return out << c.name;
}

const cells arrangements[] = {
    {"nchw_8x8", {2, 3, 16, 16}, {1, 1, 8, 8}},
    {"nchw_28x28", {1, 2, 28, 28}, {1, 1, 8, 8}},
    {"nchw_14x14", {2, 3, 14, 14}, {1, 1, 8, 8}},
    {"nchw_7x7", {4, 5, 7, 7}, {1, 1, 8, 8}},
    {"nchw_75x75", {1, 1, 75, 75}, {1, 1, 8, 8}},
    {"nchw_3x5", {2, 3, 10, 11}, {1, 1, 3, 5}},
    {"one_row", {1, 333}, {8, 8}},
    {"one_column", {333, 1}, {8, 8}},
    {"channels_last", {2, 9, 10, 7}, {1, 4, 4, 1}},
    {"channels_last_wide", {1, 5, 3, 700}, {1, 2, 2, 1}},
    {"channels_last_8x8", {2, 14, 14, 12}, {1, 8, 8, 1}},
    {"features", {9, 100}, {1, 8}},
    {"features_3", {9, 100}, {1, 3}},
    {"sequence", {2, 37, 24}, {1, 8, 1}},
    {"batch", {37, 24}, {8, 1}},
    {"volume", {2, 5, 6, 7}, {1, 4, 4, 4}},
    {"volume_last", {5, 6, 7, 3}, {2, 4, 3, 1}},
    {"volume_16", {20, 17, 19}, {16, 16, 16}},
    {"volume_ones", {3, 4, 5, 6}, {1, 2, 2, 1}},
    {"all", {5, 6, 7}, {64, 8, 8}},
    {"window_64", {200, 3}, {64, 1}},
    {"window_64_inner", {3, 200}, {1, 64}},
    {"cell_4096", {70, 130}, {64, 64}},
    {"rank_8", {2, 1, 3, 2, 5, 3, 1, 4}, {1, 1, 2, 2, 3, 1, 1, 1}},
    {"one_element", {1, 1}, {64, 64}},
};

class Lfc : public testing::TestWithParam<cells> {};

TEST_P(Lfc, AsReference) {
  u32 seed = 40;
  for (const dtype type : all_types)
    for (const dtype meta : {dtype::f32, dtype::bf16}) {
      codec c;
      c.bits = static_cast<int>(++seed % 8) + 1;
      c.group = 32 << seed % 6;
      c.meta = meta;
      c.window = GetParam().window;
      const reference::problem p{c, GetParam().shape};
      const i64 n = reference::num_elements(p);
      // A slope and noise: cells differ, and their sums depend on the order of the additions.
      auto x = normal_floats(static_cast<std::size_t>(n), seed);
      for (std::size_t i = 0; i < x.size(); ++i) x[i] += static_cast<float>(i % 977) * 0.37f;
      SCOPED_TRACE(std::string(name(type)) + ", meta " + name(meta));
      expect_as_reference(p, reference::from_floats(x, type), type, {seed, 1},
                          {seed % 2 == 0 ? std::size_t(0) : std::size_t(2)});
    }
}
INSTANTIATE_TEST_SUITE_P(Arrangements, Lfc, testing::ValuesIn(arrangements),
                         [](const auto& parameters) { return std::string(parameters.param.name); });

// The only reference for the mean that is not the format's own: sums in double, any order.
TEST_P(Lfc, MeansAreThoseOfDoublePrecision) {
  codec c;
  c.meta = dtype::f32;
  c.window = GetParam().window;
  const reference::problem same{c, GetParam().shape};
  const plan p = make_plan(c, GetParam().shape);
  const auto x = uniform_floats(static_cast<std::size_t>(p.num_elements()), 77);
  std::vector<double> sum(static_cast<std::size_t>(p.num_cells()));
  std::vector<double> count(sum.size());
  for (i64 i = 0; i < p.num_elements(); ++i) {
    const auto cell = static_cast<std::size_t>(reference::cell_of(same, i));
    sum[cell] += x[static_cast<std::size_t>(i)];
    count[cell] += 1;
  }
  for (const auto& engine : backends()) {
    const auto blob = compress(*engine, p, x);
    const auto begin = blob.begin() + static_cast<std::ptrdiff_t>(p.lfc_offset());
    const auto lfc = floats_of({begin, begin + 4 * p.num_cells()});
    // Each of at most 3 * 6 levels of additions of numbers up to 1 errs by 2^-24 of a partial mean.
    for (std::size_t i = 0; i < lfc.size(); ++i)
      ASSERT_NEAR(double(lfc[i]), sum[i] / count[i], 20 * 0x1p-24) << "cell " << i;
  }
}

TEST(LfcValues, OrderOfAdditionsIsTheTree) {
  // In a chain 1 + 2^-24 + .. stays 1; as neighbours the small ones meet first.
  std::vector<float> x(8, 0x1p-24f);
  x[0] = 1.0f;
  codec c;
  c.meta = dtype::f32;
  c.window = {8};
  const plan p = make_plan(c, {8});
  const float expected = (1.0f + 0x1p-23f + 0x1p-22f) / 8;  // 1 + 2^-24 rounds to 1
  for (const auto& engine : backends()) {
    const auto blob = compress(*engine, p, x);
    const auto begin = blob.begin() + static_cast<std::ptrdiff_t>(p.lfc_offset());
    EXPECT_EQ(floats_of({begin, begin + 4})[0], expected);
  }
}

TEST(LfcValues, NegativeZeroMeansBecomePlusZero) {
  codec c;
  c.window = {8};
  for (const i64 n : {8, 11, 1024, 1027}) {
    const std::vector<float> x(static_cast<std::size_t>(n), -0.0f);
    const plan p = make_plan(c, {n});
    for (const auto& engine : backends()) {
      const auto blob = compress(*engine, p, x);
      EXPECT_EQ(blob, std::vector<u8>(blob.size(), 0)) << "lo, step and LFC are all +0";
      for (const u8 b : decompress(*engine, p, blob, dtype::f32)) EXPECT_EQ(b, 0);
    }
  }
}

// A mean that is not finite is +0: the cell's group is poisoned if an element is, no other.
TEST(LfcValues, AreFiniteWhateverTheCellHolds) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float largest = std::numeric_limits<float>::max();
  for (const float bad : {infinity, -infinity, std::nanf(""), largest}) {
    codec c;
    c.window = {16};
    c.group = 32;
    c.meta = dtype::f32;
    std::vector<float> x(320, 1.0f);
    x[100] = bad;
    x[101] = bad;  // twice the largest overflows the sum
    const plan p = make_plan(c, {320});
    for (const auto& engine : backends()) {
      const auto blob = compress(*engine, p, x);
      const auto begin = blob.begin() + static_cast<std::ptrdiff_t>(p.lfc_offset());
      const auto lfc = floats_of({begin, begin + 80});
      for (std::size_t cell = 0; cell < 20; ++cell)
        EXPECT_EQ(lfc[cell], cell == 6 ? 0.0f : 1.0f) << bad << " in cell " << cell;
      const auto y = decompress(*engine, p, blob);
      for (std::size_t i = 0; i < x.size(); ++i) {
        const bool in_bad_group = i / 32 == 3;
        if (!in_bad_group) {
          EXPECT_EQ(y[i], 1.0f) << i;
        } else if (bad != largest) {
          EXPECT_TRUE(std::isnan(y[i])) << i;
        }
      }
    }
  }
}

// Without LFC a constant that is far from zero in bf16 metadata is coded; with it, it is exact.
TEST(LfcValues, ConstantsHaveNoResidual) {
  for (const auto& a : arrangements) {
    codec c;
    c.window = a.window;
    c.meta = dtype::f32;
    const plan p = make_plan(c, a.shape);
    const std::vector<float> x(static_cast<std::size_t>(p.num_elements()), 3.5f);
    for (const auto& engine : backends()) {
      const auto blob = compress(*engine, p, x);
      EXPECT_EQ(decompress(*engine, p, blob), x) << a.name;
      for (i64 g = 0; g < p.num_groups(); ++g) EXPECT_EQ(group_of(p, blob, g).step, 0.0f);
    }
  }
}

}  // namespace
}  // namespace furl::test
