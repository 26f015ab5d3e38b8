// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// The codebooks of number formats, against the formats' definitions.

#include "furl/extra/format_codebooks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "furl/detail/extra/codebook.hpp"
#include "support/inputs.hpp"

namespace furl::test {
namespace {

static_assert(e2m1_codebook().level[14] == 6.0f, "codebooks are made at compile time");

/// The value of a bit pattern of 1 + exponent_bits + fraction_bits bits, by the definition.
double decode(int pattern, int exponent_bits, int fraction_bits, int bias) {
  const int fraction = pattern & ((1 << fraction_bits) - 1);
  const int exponent = (pattern >> fraction_bits) & ((1 << exponent_bits) - 1);
  const bool negative = (pattern >> (exponent_bits + fraction_bits)) != 0;
  const double significand = (exponent == 0 ? 0.0 : 1.0) + fraction / double(1 << fraction_bits);
  const double magnitude = significand * std::pow(2.0, (exponent == 0 ? 1 : exponent) - bias);
  return negative ? -magnitude : magnitude;
}

/// The codebook has exactly the values, and each becomes itself.
void expect_levels(const codebook& book, std::vector<double> values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());  // +0 and -0 are one
  ASSERT_EQ(book.num_levels, int(values.size()));
  EXPECT_EQ(book.rounding, rounding::nearest);
  EXPECT_TRUE(detail::check_codebook(book, book.bits()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(double(book.level[i]), values[i]) << i;
    EXPECT_FALSE(values[i] == 0 && std::signbit(book.level[i])) << i;
    if (i == 0) continue;
    EXPECT_EQ(double(book.threshold[i - 1]), (values[i - 1] + values[i]) / 2) << i;
  }
  EXPECT_TRUE(
      detail::check_codebook(stochastic_codebook(book.level, book.num_levels), book.bits()));
}

TEST(FormatCodebooks, E2m1) {
  std::vector<double> values;
  for (int pattern = 0; pattern < 16; ++pattern) values.push_back(decode(pattern, 2, 1, 1));
  EXPECT_EQ(*std::max_element(values.begin(), values.end()), 6.0);
  expect_levels(e2m1_codebook(), values);
  EXPECT_EQ(e2m1_codebook().num_levels, 15);
}

TEST(FormatCodebooks, E4m3) {
  std::vector<double> values;
  for (int pattern = 0; pattern < 256; ++pattern)
    if ((pattern & 0x7f) != 0x7f) values.push_back(decode(pattern, 4, 3, 7));  // the others are NaN
  EXPECT_EQ(*std::max_element(values.begin(), values.end()), 448.0);
  expect_levels(e4m3_codebook(), values);
  EXPECT_EQ(e4m3_codebook().num_levels, 253);
}

TEST(FormatCodebooks, E5m2) {
  std::vector<double> values;
  for (int pattern = 0; pattern < 256; ++pattern)
    if ((pattern & 0x7c) != 0x7c) values.push_back(decode(pattern, 5, 2, 15));  // NaN, infinities
  EXPECT_EQ(*std::max_element(values.begin(), values.end()), 57344.0);
  expect_levels(e5m2_codebook(), values);
  EXPECT_EQ(e5m2_codebook().num_levels, 247);
}

/// The quantile function of the normal law, by bisection.
double quantile(double p) {
  double low = -10;
  double high = 10;
  for (int i = 0; i < 200; ++i) {
    const double middle = (low + high) / 2;
    (0.5 * std::erfc(-middle / std::sqrt(2.0)) < p ? low : high) = middle;
  }
  return low;
}

// Its authors make the levels so: quantiles between an offset and 1/2 on either side, 8 of the
// upper half and 7 of the lower one, and 0, all over the largest. They rounded on the way.
TEST(FormatCodebooks, Nf4) {
  constexpr double offset = (1 - 1.0 / 30 + 1 - 1.0 / 32) / 2 + 0;  // .9677083
  std::vector<double> values{0};
  for (int i = 0; i < 8; ++i) values.push_back(quantile(offset + (0.5 - offset) * i / 8));
  for (int i = 0; i < 7; ++i) values.push_back(-quantile(offset + (0.5 - offset) * i / 7));
  std::sort(values.begin(), values.end());
  const codebook book = nf4_codebook();
  ASSERT_EQ(book.num_levels, 16);
  EXPECT_TRUE(detail::check_codebook(book, 4));
  for (std::size_t i = 0; i < 16; ++i)
    EXPECT_NEAR(double(book.level[i]), values[i] / values[15], 2e-7) << i;
}

TEST(FormatCodebooks, Logarithmic) {
  for (int bits = 2; bits <= 8; ++bits) {
    for (const float ratio : {0.5f, 0.9f}) {
      const auto made = logarithmic_codebook(bits, ratio);
      ASSERT_TRUE(made);
      EXPECT_EQ(made->num_levels, (1 << bits) - 1);
      EXPECT_EQ(made->bits(), bits);
      EXPECT_TRUE(detail::check_codebook(*made, bits));
      const int zero = made->num_levels / 2;
      EXPECT_EQ(bits_of(made->level[zero]), 0u);
      for (int i = 1; i <= zero; ++i) {
        const double power = std::pow(double(ratio), zero - i);
        EXPECT_NEAR(double(made->level[zero + i]) / power, 1.0, 1e-5);
        EXPECT_EQ(made->level[zero - i], -made->level[zero + i]);
      }
    }
  }
  for (const int bits : {-1, 0, 1, 9})
    EXPECT_STREQ(logarithmic_codebook(bits, 0.5f).status().argument, "bits");
  for (const float ratio : {-0.5f, 0.0f, 1.0f, 2.0f, nan, infinity})
    EXPECT_STREQ(logarithmic_codebook(4, ratio).status().argument, "ratio");
  EXPECT_STREQ(logarithmic_codebook(8, 0.3f).status().argument, "ratio");  // 0.3^126 is 0
}

}  // namespace
}  // namespace furl::test
