// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "furl/detail/cells.hpp"
#include "support/inputs.hpp"
#include "support/run.hpp"

namespace furl::test {
namespace {

/// Terms whose sum depends on the order of the additions.
std::vector<float> uneven_terms(std::size_t count, u32 seed) {
  std::mt19937 random(seed);
  auto out = uniform_floats(count, seed + 1);
  for (float& x : out) x = std::ldexp(x, static_cast<int>(random() % 24));
  return out;
}

TEST(PairwiseSum, IsTheTreeForEveryCount) {
  int differs_from_a_chain = 0;
  for (std::size_t count = 1; count <= 64; ++count) {
    for (u32 seed = 0; seed < 50; ++seed) {
      const auto terms = uneven_terms(count, seed);
      pairwise_sum sum;
      float chain = 0;
      for (const float term : terms) {
        sum.push(term);
        chain = add_rn(chain, term);
      }
      const float expected = reference::tree_sum(terms);
      ASSERT_EQ(bits_of(sum.total()), bits_of(expected)) << count << " terms, seed " << seed;
      differs_from_a_chain += chain != expected ? 1 : 0;
    }
  }
  EXPECT_GT(differs_from_a_chain, 1000);  // else this test could not tell
}

TEST(PairwiseSum, CanBeReadBetweenTerms) {
  pairwise_sum sum;
  EXPECT_EQ(sum.total(), 0.0f);
  for (int i = 1; i <= 64; ++i) {
    sum.push(1.0f);
    EXPECT_EQ(sum.total(), static_cast<float>(i));
  }
}

TEST(LfcValue, IsFiniteAndNeverMinusZero) {
  for (const dtype meta : {dtype::f32, dtype::bf16}) {
    for (const float mean : {infinity, -infinity, float_of(f32_nan_bits), -0.0f, 0.0f})
      EXPECT_EQ(bits_of(lfc_value(mean, meta)), 0u) << mean;
    EXPECT_EQ(lfc_value(-1.5f, meta), -1.5f);
  }
  const float largest = std::numeric_limits<float>::max();
  EXPECT_EQ(lfc_value(largest, dtype::f32), largest);
  EXPECT_EQ(bits_of(lfc_value(largest, dtype::bf16)), 0u);  // rounds to infinity in bf16
  EXPECT_EQ(lfc_value(1.00390625f, dtype::bf16), 1.0f);     // half-way: to even
  EXPECT_EQ(bits_of(lfc_value(-0x1p-140f, dtype::bf16)), 0u);
  EXPECT_EQ(lfc_value(0x1p-140f, dtype::f32), 0x1p-140f);
}

struct geometry {
  extents shape;
  extents window;
};

const geometry geometries[] = {
    {{5}, {2}},
    {{17}, {8}},
    {{1}, {64}},
    {{200}, {64}},
    {{3, 130, 2}, {1, 64, 1}},
    {{3, 7}, {1, 4}},
    {{3, 7}, {2, 1}},
    {{7, 5}, {3, 2}},
    {{2, 3, 7, 5}, {1, 1, 4, 3}},
    {{2, 7, 5, 3}, {1, 4, 3, 1}},
    {{2, 3, 9, 4}, {1, 2, 1, 1}},
    {{2, 5, 6, 7, 3}, {1, 2, 4, 3, 1}},
    {{5, 6, 7}, {3, 2, 64}},
    {{2, 3, 2, 2, 1, 2, 3, 2}, {1, 1, 1, 1, 2, 2, 2, 1}},
};

TEST(CellGrid, CellOfEveryElementByCoordinates) {
  for (const auto& g : geometries) {
    codec c;
    c.window = g.window;
    const plan p = make_plan(c, g.shape);
    const reference::problem same{c, g.shape};
    ASSERT_TRUE(p.has_lfc());
    EXPECT_EQ(p.num_cells(), reference::num_cells(same));
    for (i64 i = 0; i < p.num_elements(); ++i)
      ASSERT_EQ(cell_of(p.grid(), i), reference::cell_of(same, i)) << "element " << i;
  }
}

// A band holds whole cells, its elements and its cells are contiguous, and bands follow each other.
TEST(CellGrid, BandsCutBetweenCells) {
  for (const auto& g : geometries) {
    codec c;
    c.window = g.window;
    const plan p = make_plan(c, g.shape);
    const cell_grid& grid = p.grid();
    ASSERT_EQ(grid.band_begin(0), 0);
    ASSERT_EQ(grid.band_begin(grid.num_bands()), p.num_elements());
    const i64 cells_per_band = p.num_cells() / grid.num_bands();
    ASSERT_EQ(cells_per_band * grid.num_bands(), p.num_cells());
    for (i64 band = 0; band < grid.num_bands(); ++band) {
      const i64 first = grid.band_begin(band);
      const i64 last = grid.band_begin(band + 1);
      ASSERT_LT(first, last);
      ASSERT_LE(last - first, grid.band_elements());
      for (i64 i = first; i < last; ++i)
        ASSERT_EQ(cell_of(grid, i) / cells_per_band, band) << "element " << i;
    }
  }
}

}  // namespace
}  // namespace furl::test
