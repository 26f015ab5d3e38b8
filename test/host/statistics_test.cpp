// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Statistics to normalise by, where host memory alone matters.

#include <gtest/gtest.h>

#include <cmath>

#include "furl/compress.hpp"
#include "support/inputs.hpp"
#include "support/run.hpp"

namespace furl::test {
namespace {

TEST(HostStatistics, AStashRestoresWithThem) {
  const std::vector<float> x = normal_floats(1500, 2);
  const std::vector<float> mean = {0.5f, -2.0f, 3.0f};
  const std::vector<float> inverse = {2.0f, 0.25f, 1.5f};
  host::options o;
  o.statistics = {mean.data(), inverse.data(), 3, 500};
  for (const plan& of : {make_plan({}, {3, 500}), make_plan(rotated_codec(2), {3, 500})}) {
    const auto kept = host::stash::compress(of, x, {1, 2}, o);
    ASSERT_TRUE(kept);
    std::vector<float> v(x.size());
    std::vector<float> y(x.size());
    ASSERT_TRUE(kept->restore(v));
    ASSERT_TRUE(kept->restore(y, o));
    for (std::size_t i = 0; i < y.size(); ++i)
      ASSERT_EQ(y[i], std::fma(v[i], 1.0f / inverse[i / 500], mean[i / 500]));
    auto twice = y;
    ASSERT_TRUE(kept->restore_add(twice, o));
    for (std::size_t i = 0; i < y.size(); ++i) ASSERT_EQ(twice[i], y[i] + y[i]);
  }
}

}  // namespace
}  // namespace furl::test
