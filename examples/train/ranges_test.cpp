// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
// What is known of the ranges of channels without a look at their values.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "layers.hpp"
#include "saved_tensors.hpp"
#include "tape.hpp"

namespace trainer {
namespace {

class ranges_test : public testing::Test {
 protected:
  ranges_test() : t(pool, &hooks) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal(3.0F, 2.0F);
    for (float& v : x.values) v = normal(random);
    const float scale[] = {-1.0F, 0.5F};
    const float offset[] = {0.25F, -2.0F};
    std::copy(scale, scale + 2, layer.scale.value.values.begin());
    std::copy(offset, offset + 2, layer.offset.value.values.begin());
  }

  static void expect_ranges(const variable& v, std::vector<float> expected) {
    ASSERT_EQ(v.ranges.size(), index(expected.size()));
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_FLOAT_EQ(v.ranges.data()[i], expected[i]) << i;
  }
  /// Nearly all values are in the ranges, and come near their ends.
  static void expect_tight(const variable& v, float slack) {
    for (index c = 0; c < v.value.shape.c; ++c) {
      const float lo = v.ranges.data()[2 * c];
      const float hi = v.ranges.data()[2 * c + 1];
      index num_outside = 0;
      float least = hi;
      float most = lo;
      for (index i = 0; i < v.value.shape.n; ++i)
        for (index k = 0; k < v.value.shape.plane(); ++k) {
          const float value = v.value.plane(i, c)[k];
          num_outside += value < lo || value > hi ? 1 : 0;
          least = std::min(least, value);
          most = std::max(most, value);
        }
      EXPECT_LT(num_outside, v.value.shape.n * v.value.shape.plane() / 100);
      EXPECT_LT(least, lo + slack);
      EXPECT_GT(most, hi - slack);
    }
  }

  thread_pool pool{1};
  const std::unique_ptr<fold_store> store = make_host_store(pool);
  const scheme plain = scheme_named("none");
  saver hooks{plain, *store, 1};
  tape t;
  batch_norm layer{2};
  batch_norm three{3};
  const tensor x{{32, 2, 16, 16}};
};

TEST_F(ranges_test, follow_from_scale_and_offset) {
  const variable y = normalize(t, {x}, layer);
  expect_ranges(y, {-2.75F, 3.25F, -3.5F, -0.5F});
  expect_tight(y, 0.6F);
  expect_ranges(rectify(t, y), {0.0F, 3.25F, 0.0F, 0.0F});
  expect_ranges(gelu(t, y), {-0.17F, 3.25F, -0.17F, 0.0F});
  expect_ranges(max_pool(t, rectify(t, y)), {0.0F, 3.25F, 0.0F, 0.0F});
  expect_ranges(add(t, y, y), {-5.5F, 6.5F, -7.0F, -1.0F});
}

TEST_F(ranges_test, are_unknown_where_weights_are_unknown) {
  parameter weight({3, 2, 3, 3});
  const variable y = normalize(t, {x}, layer);
  const variable z = convolve(t, y, weight);
  EXPECT_EQ(z.ranges.size(), 0);
  EXPECT_EQ(rectify(t, z).ranges.size(), 0);
  EXPECT_EQ(add(t, normalize(t, {z.value}, three), z).ranges.size(), 0);
}

}  // namespace
}  // namespace trainer
