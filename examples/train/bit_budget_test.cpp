// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
// Bits shared out among activations.

#include "bit_budget.hpp"

#include <gtest/gtest.h>

namespace trainer {
namespace {

using squared = std::vector<double>;

TEST(bit_budget_test, is_the_mean_at_first) {
  bit_budget budget(2);
  budget.begin_step();
  EXPECT_EQ(budget.sum_of_bits(0, 10), 20U);
  EXPECT_EQ(budget.sum_of_bits(1, 3), 6U);
}

TEST(bit_budget_test, moves_bits_and_keeps_their_number) {
  bit_budget budget(2);
  for (int step = 0; step < 3; ++step) {
    budget.begin_step();
    const u64 first = budget.sum_of_bits(0, 4);
    const u64 second = budget.sum_of_bits(1, 4);
    // From 2 to 3 bits a tile gains 4/49 * 100 or so, from 1 to 2 bits the other 8/9 * 1.
    EXPECT_EQ(first, step == 0 ? 8U : 4U);
    EXPECT_EQ(second, step == 0 ? 8U : 12U);
    budget.report(0, 1.0, squared(4, 1.0));
    budget.report(1, 100.0, squared(4, 1.0));
  }
}

TEST(bit_budget_test, adds_up_the_reports_of_an_activation) {
  bit_budget budget(2);
  budget.begin_step();
  budget.sum_of_bits(0, 4);
  budget.sum_of_bits(1, 4);
  budget.report(0, 10.0, squared(4, 1.0));
  budget.report(1, 60.0, squared(4, 1.0));  // alone not enough to take a bit from the first
  budget.report(1, 60.0, squared(4, 1.0));
  budget.begin_step();
  EXPECT_EQ(budget.sum_of_bits(0, 4), 4U);
  EXPECT_EQ(budget.sum_of_bits(1, 4), 12U);
}

TEST(bit_budget_test, takes_an_activation_without_report_for_the_one_before) {
  bit_budget budget(3);
  budget.begin_step();
  for (std::size_t a = 0; a < 4; ++a) budget.sum_of_bits(a, 2 + a);
  budget.report(0, 1.0, squared(2, 1.0));
  budget.report(2, 1000.0, squared(4, 1.0));
  budget.begin_step();
  const u64 widths[] = {budget.sum_of_bits(0, 2), budget.sum_of_bits(1, 3),
                        budget.sum_of_bits(2, 4), budget.sum_of_bits(3, 5)};
  EXPECT_EQ(widths[0] + widths[1] + widths[2] + widths[3], 3U * 14U);
  EXPECT_NEAR(double(widths[0]) / 2.0, double(widths[1]) / 3.0, 1.0);
  EXPECT_NEAR(double(widths[2]) / 4.0, double(widths[3]) / 5.0, 1.0);
  EXPECT_GT(double(widths[3]) / 5.0, double(widths[0]) / 2.0 + 1.0);
}

TEST(bit_budget_test, starts_again_where_sizes_have_changed) {
  bit_budget budget(2);
  budget.begin_step();
  budget.sum_of_bits(0, 4);
  budget.sum_of_bits(1, 4);
  budget.report(0, 1.0, squared(4, 1.0));
  budget.report(1, 100.0, squared(4, 1.0));
  budget.begin_step();
  EXPECT_EQ(budget.sum_of_bits(0, 7), 14U);
  EXPECT_EQ(budget.sum_of_bits(1, 7), 14U);
}

}  // namespace
}  // namespace trainer
