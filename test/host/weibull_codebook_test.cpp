// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Levels for stochastic rounding of Weibull-distributed values.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "furl/extra/optimal_codebooks.hpp"
#include "furl/types.hpp"

namespace furl::test {
namespace {

using host::weibull;

/// Mean variance of stochastic rounding between levels, by sampling quantiles.
double variance_of(const weibull& d, const codebook& book, int samples = 20000) {
  double sum = 0;
  for (int i = 0; i < samples; ++i) {
    const double x = d.scale * std::pow(-std::log(1 - (i + 0.5) / samples), 1 / d.shape);
    if (x >= static_cast<double>(book.level[book.num_levels - 1])) continue;
    for (const double signed_x : {x, -x}) {
      const float* const above =
          std::upper_bound(book.level, book.level + book.num_levels, static_cast<float>(signed_x));
      const float* const high = std::min(above, book.level + book.num_levels - 1);
      sum += (signed_x - double(high[-1])) * (double(*high) - signed_x) / (2.0 * samples);
    }
  }
  return sum;
}

/// Levels in eighths.
codebook grid_levels(std::initializer_list<int> eighths) {
  float levels[max_levels];
  int count = 0;
  for (const int level : eighths) levels[count++] = static_cast<float>(level) / 8;
  return stochastic_codebook(levels, count);
}

TEST(WeibullCodebook, IsSymmetricAndNoPairOfLevelsCanBeMovedToAdvantage) {
  for (const double shape : {0.6, 1.0, 2.0}) {
    for (const int bits : {2, 4, 6}) {
      const weibull d{shape, 0.5};
      const auto made = host::weibull_codebook(d, 4.0, bits);
      ASSERT_TRUE(made);
      const int count = 1 << bits;
      ASSERT_EQ(made->num_levels, count);
      EXPECT_TRUE(detail::check_codebook(*made, bits));  // finite, ascending
      EXPECT_EQ(made->level[count - 1], 4.0f);
      float even[max_levels];
      for (int i = 0; i < count; ++i)
        even[i] = -4.0f + 8.0f * static_cast<float>(i) / static_cast<float>(count - 1);
      const double least = variance_of(d, *made);
      EXPECT_LT(least, 0.75 * variance_of(d, stochastic_codebook(even, count)));
      for (int i = 0; i < count; ++i) EXPECT_EQ(made->level[i], -made->level[count - 1 - i]);
      for (int i = count / 2; i + 1 < count; ++i) {
        for (const float part : {-0.1f, 0.1f}) {
          codebook moved = *made;
          moved.level[i] += part * (made->level[i + 1] - made->level[i - 1]);
          moved.level[count - 1 - i] = -moved.level[i];
          EXPECT_GT(variance_of(d, moved), least * 0.9999) << "level " << i;
        }
      }
    }
  }
}

// Against all levels of a grid: three magnitudes and the largest, or two levels of any sign.
TEST(WeibullCodebook, IsAtLeastAsGoodAsAllOthers) {
  constexpr int samples = 1000;
  for (const double shape : {0.5, 0.7, 1.0, 2.0}) {
    const weibull d{shape, 0.5};
    double best = 1e9;
    for (int c = 3; c < 24; ++c)
      for (int b = 2; b < c; ++b)
        for (int a = 1; a < b; ++a)
          best =
              std::min(best, variance_of(d, grid_levels({-32, -c, -b, -a, a, b, c, 32}), samples));
    EXPECT_LE(variance_of(d, *host::weibull_codebook(d, 4.0, 3), samples), best);
    best = 1e9;
    for (int a = -31; a < 32; ++a)
      for (int b = a + 1; b < 32; ++b)
        best = std::min(best, variance_of(d, grid_levels({-32, a, b, 32}), samples));
    EXPECT_LE(variance_of(d, *host::weibull_codebook(d, 4.0, 2), samples), best);
  }
}

TEST(FitWeibull, FindsTheDistributionOfItsMoments) {
  for (const double shape : {0.5, 1.0, 1.7, 3.0, 60.0}) {
    for (const double scale : {1e-6, 0.5, 300.0}) {
      constexpr int samples = 200000;
      double mean = 0;
      double mean_square = 0;
      for (int i = 0; i < samples; ++i) {
        const double x = scale * std::pow(-std::log1p(-(i + 0.5) / samples), 1 / shape);
        mean += x / samples;
        mean_square += x * x / samples;
      }
      const auto fitted = host::fit_weibull(mean, mean_square);
      ASSERT_TRUE(fitted) << shape;
      EXPECT_NEAR(fitted->shape / shape, 1.0, 0.005) << shape;
      EXPECT_NEAR(fitted->scale / scale, 1.0, 0.005) << shape;
    }
  }
  // The exponential distribution has mean s and mean square 2 s^2, Rayleigh's s sqrt(pi) / 2 and
  // s^2.
  EXPECT_NEAR(host::fit_weibull(3.0, 18.0)->shape, 1.0, 1e-12);
  EXPECT_NEAR(host::fit_weibull(3.0, 18.0)->scale, 3.0, 1e-11);
  EXPECT_NEAR(host::fit_weibull(std::sqrt(std::acos(-1.0)), 4.0)->shape, 2.0, 1e-12);
  EXPECT_NEAR(host::fit_weibull(std::sqrt(std::acos(-1.0)), 4.0)->scale, 2.0, 1e-11);
  EXPECT_STREQ(host::fit_weibull(0.0, 1.0).status().argument, "mean");
  EXPECT_STREQ(host::fit_weibull(std::nan(""), 1.0).status().argument, "mean");
  for (const double mean_square : {0.0, 0.9, 1.0, 1e6, std::nan("")})
    EXPECT_STREQ(host::fit_weibull(1.0, mean_square).status().argument, "mean_square");
}

TEST(WeibullCodebook, Refused) {
  const auto expect = [](const result<codebook>& made, const char* argument) {
    ASSERT_FALSE(made);
    EXPECT_STREQ(made.status().argument, argument);
  };
  expect(host::weibull_codebook({1, 1}, 1, 0), "bits");
  expect(host::weibull_codebook({1, 1}, 1, 9), "bits");
  expect(host::weibull_codebook({0, 1}, 1, 2), "shape");
  expect(host::weibull_codebook({1, -1}, 1, 2), "scale");
  expect(host::weibull_codebook({1, 1}, 0, 2), "largest");
  expect(host::weibull_codebook({1, 1}, std::nan(""), 2), "largest");
  // One bit has the two outer levels alone; a scale far off makes no levels that coincide.
  EXPECT_TRUE(host::weibull_codebook({1, 1}, 1, 1));
  for (const double scale : {1e-12, 1e12}) {
    const auto made = host::weibull_codebook({0.7, scale}, 1.0, 8);
    ASSERT_TRUE(made);
    EXPECT_TRUE(detail::check_codebook(*made, 8));
  }
}

}  // namespace
}  // namespace furl::test
