// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Codebooks that are the best of their size.

#include "furl/host/optimal_codebooks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include "furl/codebook_arguments.hpp"

namespace furl::test {
namespace {

using host::activation;

constexpr activation all_activations[] = {activation::gelu, activation::silu, activation::tanh,
                                          activation::sigmoid, activation::selu};

double value(activation f, double x) {
  switch (f) {
    case activation::gelu:
      return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
    case activation::silu:
      return x / (1 + std::exp(-x));
    case activation::tanh:
      return std::tanh(x);
    case activation::sigmoid:
      return 1 / (1 + std::exp(-x));
    default:
      return 1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * (std::exp(x) - 1));
  }
}

/// By differences, so that it is independent of the derivative that the library has.
double slope(activation f, double x) {
  constexpr double h = 1e-5;
  return (value(f, x + h) - value(f, x - h)) / (2 * h);
}

/// The integral of the squared error from -10 to 10.
double error_of(activation f, const codebook& book) {
  constexpr int points = 200000;
  double sum = 0;
  for (int i = 0; i < points; ++i) {
    const double x = -10 + 20 * (i + 0.5) / points;
    const auto code = std::upper_bound(book.threshold, book.threshold + book.num_levels - 1,
                                       static_cast<float>(x)) -
                      book.threshold;
    const double difference = slope(f, x) - static_cast<double>(book.level[code]);
    sum += difference * difference * 20 / points;
  }
  return sum;
}

codebook make_codebook(const std::vector<double>& thresholds, const std::vector<double>& levels) {
  codebook book;
  book.num_levels = static_cast<int>(levels.size());
  for (std::size_t i = 0; i < thresholds.size(); ++i)
    book.threshold[i] = static_cast<float>(thresholds[i]);
  for (std::size_t i = 0; i < levels.size(); ++i) book.level[i] = static_cast<float>(levels[i]);
  return book;
}

// The table for GELU in 3 bits that the authors of "Few-bit backward" publish with their code.
TEST(DerivativeCodebook, GeluIsThePublishedTable) {
  const codebook published = make_codebook({-2.39798704, -0.711248159, -0.326290283,
                                            -0.000155338428, 0.326182064, 0.71085586, 2.39811567},
                                           {-0.00260009, -0.08883533, 0.1251944, 0.37204148,
                                            0.6277958, 0.87466175, 1.08880716, 1.00259936});
  const auto ours = host::derivative_codebook(activation::gelu, 3);
  ASSERT_TRUE(ours);
  for (int i = 0; i < 8; ++i) EXPECT_NEAR(ours->level[i], published.level[i], 0.0005);
  for (int i = 0; i < 7; ++i) EXPECT_NEAR(ours->threshold[i], published.threshold[i], 0.0015);
  EXPECT_LE(error_of(activation::gelu, *ours), error_of(activation::gelu, published) * 1.00001);
}

// Levels are the means of their intervals, and no threshold can be moved to advantage.
TEST(DerivativeCodebook, IsALocalOptimum) {
  for (const activation f : all_activations) {
    for (int bits = 1; bits <= 4; ++bits) {
      const auto made = host::derivative_codebook(f, bits);
      ASSERT_TRUE(made);
      ASSERT_EQ(made->num_levels, 1 << bits);
      EXPECT_TRUE(detail::check_codebook(*made, bits));
      const double least = error_of(f, *made);
      for (int i = 0; i < made->num_levels; ++i) {
        const double begin = i == 0 ? -10.0 : double(made->threshold[i - 1]);
        const double end = i + 1 == made->num_levels ? 10.0 : double(made->threshold[i]);
        EXPECT_NEAR(made->level[i], (value(f, end) - value(f, begin)) / (end - begin), 1e-5);
        for (const float move : {-0.02f, 0.02f}) {
          if (i + 1 == made->num_levels) continue;
          codebook moved = *made;
          moved.threshold[i] += move;
          EXPECT_GT(error_of(f, moved), least) << int(f) << " " << bits << " threshold " << i;
        }
      }
    }
  }
}

// Twice the steps leave less than half of the squared error, and evenly spread ones more of it.
TEST(DerivativeCodebook, ErrorFallsWithBitsAndIsBelowThatOfEvenSteps) {
  for (const activation f : all_activations) {
    double before = 1e9;
    for (int bits = 1; bits <= 4; ++bits) {
      const double error = error_of(f, *host::derivative_codebook(f, bits));
      EXPECT_LT(error, before / 2);
      before = error;
      std::vector<double> thresholds;
      std::vector<double> levels;
      const int steps = 1 << bits;
      for (int i = 0; i < steps; ++i) {
        const double begin = i == 0 ? -10.0 : -4.0 + 8.0 * i / steps;
        const double end = i + 1 == steps ? 10.0 : -4.0 + 8.0 * (i + 1) / steps;
        if (i > 0) thresholds.push_back(begin);
        levels.push_back((value(f, end) - value(f, begin)) / (end - begin));
      }
      EXPECT_LT(error, error_of(f, make_codebook(thresholds, levels)) * 1.0001);
    }
  }
}

TEST(DerivativeCodebook, Refused) {
  for (const int bits : {-1, 0, 5, 8}) {
    const auto made = host::derivative_codebook(activation::gelu, bits);
    ASSERT_FALSE(made);
    EXPECT_STREQ(made.status().argument, "bits");
  }
  EXPECT_STREQ(host::derivative_codebook(activation(5), 2).status().argument, "f");
}

// Against all ways to cut.
TEST(OptimalCuts, AreOptimal) {
  std::mt19937 random(4);
  for (int trial = 0; trial < 40; ++trial) {
    constexpr int last = 12;
    double costs[last + 1][last + 1];
    for (auto& row : costs)
      for (double& c : row) c = static_cast<double>(random() % 1000);
    const auto cost = [&](int begin, int end) { return costs[begin][end]; };
    const int num_cells = 1 + trial % 5;
    const std::function<double(int, int)> least = [&](int begin, int cells) {
      if (cells == 1) return cost(begin, last);
      double best = 1e18;
      for (int end = begin + 1; end <= last - cells + 1; ++end)
        best = std::min(best, cost(begin, end) + least(end, cells - 1));
      return best;
    };
    const auto cuts = host::detail::optimal_cuts(last, num_cells, 1, cost);
    ASSERT_EQ(cuts.size(), std::size_t(num_cells) + 1);
    EXPECT_EQ(cuts.front(), 0);
    EXPECT_EQ(cuts.back(), last);
    double sum = 0;
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) sum += cost(cuts[i], cuts[i + 1]);
    EXPECT_EQ(sum, least(0, num_cells));
  }
}

/// Mean variance of stochastic rounding between levels, by sampling quantiles.
double variance_of(double shape, double scale, const codebook& book) {
  constexpr int samples = 20000;
  double sum = 0;
  for (int i = 0; i < samples; ++i) {
    const double x = scale * std::pow(-std::log(1 - (i + 0.5) / samples), 1 / shape);
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

TEST(WeibullCodebook, HasLessVarianceThanEvenLevels) {
  for (const double shape : {0.6, 1.0, 2.0}) {
    for (const int bits : {2, 4, 6}) {
      const auto made = host::weibull_codebook(shape, 0.5, 4.0, bits);
      ASSERT_TRUE(made);
      const int count = 1 << bits;
      ASSERT_EQ(made->num_levels, count);
      EXPECT_TRUE(detail::check_codebook(*made, bits));
      EXPECT_EQ(made->level[0], -4.0f);
      EXPECT_EQ(made->level[count - 1], 4.0f);
      std::vector<float> even;
      for (int i = 0; i < count; ++i)
        even.push_back(-4.0f + 8.0f * static_cast<float>(i) / static_cast<float>(count - 1));
      const double least = variance_of(shape, 0.5, *made);
      EXPECT_LT(least, 0.75 * variance_of(shape, 0.5, stochastic_codebook(even.data(), count)));
      for (int i = 1; i + 1 < count; ++i) {
        for (const float move : {-0.1f, 0.1f}) {
          codebook moved = *made;
          moved.level[i] += move * (made->level[i + 1] - made->level[i - 1]);
          EXPECT_GT(variance_of(shape, 0.5, moved), least * 0.9999) << "level " << i;
        }
      }
    }
  }
}

TEST(WeibullCodebook, Refused) {
  const auto expect = [](const result<codebook>& made, const char* argument) {
    ASSERT_FALSE(made);
    EXPECT_STREQ(made.status().argument, argument);
  };
  expect(host::weibull_codebook(1, 1, 1, 0), "bits");
  expect(host::weibull_codebook(1, 1, 1, 9), "bits");
  expect(host::weibull_codebook(0, 1, 1, 2), "shape");
  expect(host::weibull_codebook(1, -1, 1, 2), "scale");
  expect(host::weibull_codebook(1, 1, 0, 2), "largest");
  expect(host::weibull_codebook(1, 1, std::nan(""), 2), "largest");
  // One bit has the two outer levels alone; a scale far off makes no levels that coincide.
  EXPECT_TRUE(host::weibull_codebook(1, 1, 1, 1));
  for (const double scale : {1e-12, 1e12}) {
    const auto made = host::weibull_codebook(0.7, scale, 1.0, 8);
    ASSERT_TRUE(made);
    EXPECT_TRUE(detail::check_codebook(*made, 8));
  }
}

}  // namespace
}  // namespace furl::test
