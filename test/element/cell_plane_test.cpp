// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// What a block of the device finds of its run of elements, against plain divisions.

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "furl/detail/cell_index.hpp"
#include "furl/plan.hpp"

namespace furl::test {
namespace {

/// Elements of a box, counted from the first of the run's first cells.
void expect_box(const plan& p, const cell_plane& plane, const cell_box& box, i64 from, i64 cell) {
  for (u32 row = 0; row < box.num_rows; ++row) {
    for (u32 column = 0; column < box.num_columns; ++column) {
      const i64 element = from + box.begin + row * plane.num_columns() + column;
      ASSERT_LT(element, p.num_elements());
      ASSERT_EQ(cell_of(p.grid(), element), cell) << "element " << element;
    }
  }
}

/// Every element of a run lies in one of its boxes, which have no others but head and tail.
void expect_run(const plan& p, i64 begin, u32 count, std::vector<int>& owners) {
  const cell_plane plane(p.grid());
  const cell_run run = plane.run_of(begin, count);
  i64 elements = 0;
  for (u32 c = 0; c < run.num_cells; ++c) {
    const cell_box box = plane.box_of(run, c);
    const i64 cell = run.first_cell + c;
    expect_box(p, plane, box, begin - run.head, cell);
    elements += i64(box.num_rows) * box.num_columns;
    if (box.is_owned) ++owners[std::size_t(cell)];
    if (run.head == 0 && plane.is_whole() && plane.has_one_row() == (run.first_column > 0)) {
      const cell_box whole = plane.whole_box(c);
      ASSERT_EQ(whole.begin, box.begin);
      ASSERT_EQ(whole.num_rows, box.num_rows);
      ASSERT_EQ(whole.num_columns, box.num_columns);
    }
  }
  ASSERT_EQ(elements, i64(run.head) + count + run.tail);
}

plan plan_of(const extents& shape, const extents& window) {
  codec c;
  c.window = window;
  return *plan::make(c, shape);
}

TEST(CellPlane, RunsShareTheCellsAmongThem) {
  std::mt19937 random(2);
  const auto below = [&](u32 limit) { return i64(random() % limit); };
  int planes = 0;
  for (int turn = 0; turn < 400; ++turn) {
    const extents shape{1 + below(9), 1 + below(40), 1 + below(60)};
    const extents windows[] = {
        {1, 1 + below(9), 1 + below(9)}, {1, 1, 2 + below(9)}, {1, 2 + below(9), 1}};
    const plan p = plan_of(shape, windows[turn % 3]);
    if (!p.has_lfc() || !cell_plane::fits(p.grid())) continue;
    ++planes;
    std::vector<int> owners(std::size_t(p.num_cells()), 0);
    const i64 length = 1 + below(2500);
    for (i64 begin = 0; begin < p.num_elements(); begin += length) {
      const i64 left = p.num_elements() - begin;
      expect_run(p, begin, u32(left < length ? left : length), owners);
      if (HasFatalFailure()) FAIL() << "turn " << turn;
    }
    for (const int count : owners) ASSERT_EQ(count, 1) << "turn " << turn;
  }
  EXPECT_GT(planes, 300);
}

TEST(CellPlane, HoldsBeyond32Bits) {
  const plan plans[] = {
      plan_of({i64(1) << 40, 28, 28}, {1, 8, 8}), plan_of({i64(1) << 40, 75, 75}, {1, 8, 8}),
      plan_of({3, (1 << 29) + 1}, {1, 8}), plan_of({i64(1) << 33, 197, 768}, {1, 8, 1})};
  for (const plan& p : plans) {
    const cell_plane plane(p.grid());
    for (const i64 tile : {p.num_tiles() / 3, p.num_tiles() - 8}) {
      const i64 begin = tile * tile_elements;
      const i64 left = p.num_elements() - begin;
      const u32 count = left < 8192 ? u32(left) : 8192u;
      const cell_run run = plane.run_of(begin, count);
      ASSERT_EQ(run.first_cell, cell_of(p.grid(), begin - run.head));
      ASSERT_EQ(run.first_cell + run.num_cells - 1,
                cell_of(p.grid(), begin + count + run.tail - 1));
      for (const u32 c : {0u, run.num_cells / 2, run.num_cells - 1})
        expect_box(p, plane, plane.box_of(run, c), begin - run.head, run.first_cell + c);
    }
  }
}

TEST(CellPlane, FitsWhereTwoDimensionsArePooledLast) {
  EXPECT_TRUE(cell_plane::fits(plan_of({2, 3, 9, 9}, {1, 1, 8, 8}).grid()));
  EXPECT_TRUE(cell_plane::fits(plan_of({2, 9}, {1, 8}).grid()));
  EXPECT_TRUE(cell_plane::fits(plan_of({2, 9, 3}, {1, 8, 1}).grid()));
  EXPECT_FALSE(cell_plane::fits(plan_of({2, 9, 9, 3}, {1, 8, 8, 1}).grid()));
  EXPECT_FALSE(cell_plane::fits(plan_of({9, 9, 9}, {8, 8, 8}).grid()));
  EXPECT_FALSE(cell_plane::fits(plan_of({1, 1 << 15, 1 << 15}, {1, 8, 8}).grid()));
}

}  // namespace
}  // namespace furl::test
