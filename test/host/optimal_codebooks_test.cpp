// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Codebooks that are the best of their size.

#include "furl/extra/optimal_codebooks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "furl/types.hpp"

namespace furl::test {
namespace {

using host::activation;

constexpr activation all_activations[] = {activation::gelu, activation::silu,
                                          activation::tanh, activation::sigmoid,
                                          activation::selu, activation::softplus};

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
    case activation::softplus:
      return std::log(1 + std::exp(x));
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
  constexpr int points = 20000;
  double sum = 0;
  for (int i = 0; i < points; ++i) {
    const double x = -10 + 20 * (i + 0.5) / points;
    const auto code = std::upper_bound(book.threshold, book.threshold + book.num_levels - 1,
                                       static_cast<float>(book.of_magnitudes ? std::fabs(x) : x)) -
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

// The squared errors that the paper prints for 1 to 4 bits, to the digits it prints.
TEST(DerivativeCodebook, ErrorsAreThePublishedOnes) {
  const struct {
    activation f;
    double error[4];
  } published[] = {{activation::gelu, {0.1410, 0.0406, 0.0119, 0.0031}},
                   {activation::silu, {0.2150, 0.0479, 0.0170, 0.0045}},
                   {activation::selu, {0.2554, 0.1010, 0.0184, 0.0039}},
                   {activation::tanh, {0.1584, 0.0319, 0.0073, 0.0017}},
                   {activation::sigmoid, {0.0181, 0.0038, 0.0009, 0.0002}}};
  for (const auto& [f, error] : published)
    for (int bits = 1; bits <= 4; ++bits)
      EXPECT_NEAR(error_of(f, *host::derivative_codebook(f, bits)), error[bits - 1], 0.00007)
          << int(f) << " " << bits;
}

// ReGELU2 and ReSiLU2 of "Approx-BP" (ICML 2024): 2 bits too, made for another aim.
TEST(DerivativeCodebook, ErrorIsBelowThatOfApproxBackpropagation) {
  const codebook regelu2 = make_codebook({-3.19, -0.001, 3.19}, {0, -0.049, 1.049, 1});
  EXPECT_LT(error_of(activation::gelu, *host::derivative_codebook(activation::gelu, 2)),
            0.5 * error_of(activation::gelu, regelu2));
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
        const double first = made->of_magnitudes ? 0.0 : -10.0;
        const double begin = i == 0 ? first : double(made->threshold[i - 1]);
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
  EXPECT_STREQ(host::derivative_codebook(activation(6), 2).status().argument, "f");
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

}  // namespace
}  // namespace furl::test
