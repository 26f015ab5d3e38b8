// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// The device's way from elements to cells, against plain divisions.

#include <gtest/gtest.h>

#include <random>

#include "furl/detail/cell_index.hpp"
#include "furl/detail/cells.hpp"
#include "furl/plan.hpp"

namespace furl::test {
namespace {

TEST(Divisor, IsExactUpToItsLimit) {
  std::mt19937_64 random(1);
  for (int turn = 0; turn < 20000; ++turn) {
    const u64 d64 = (random() >> (random() % 63)) % ((u64(1) << 63) - 1) + 1;
    const u64 n64 = (random() >> (random() % 64)) >> 1;
    EXPECT_EQ(divisor64(d64).divide(n64), n64 / d64);
    const u32 d = u32(d64 % ((u64(1) << 31) - 1)) + 1;
    const divisor32 by(d);
    for (const u32 n :
         {u32(n64) >> 1, 0x7fffffffu, d - 1, d, (0x7fffffffu / d) * d, (0x7fffffffu / d) * d - 1}) {
      ASSERT_EQ(by.divide(n & 0x7fffffffu), (n & 0x7fffffffu) / d) << n << " / " << d;
    }
  }
}

void expect_same_cells(const plan& p, i64 tile) {
  const cell_locator locator(p.grid());
  const i64 index = tile * tile_elements;
  const tile_origin origin = locator.is_wide() ? tile_origin{} : locator.origin(index);
  const u32 granule = locator.granule();
  for (u32 i = 0; i < u32(tile_elements) && index + i < p.num_elements(); ++i) {
    const i64 expected = cell_of(p.grid(), index + i);
    if (locator.is_wide()) {
      ASSERT_EQ(locator.cell_by_division(index + i), expected);
      continue;
    }
    ASSERT_EQ(locator.cell(origin, i), expected) << "tile " << tile << " element " << i;
    const u32 in_granule = i % granule;
    ASSERT_EQ(locator.cell(origin, i - in_granule) + in_granule * locator.cell_step(), expected)
        << "tile " << tile << " element " << i << " granule " << granule;
  }
}

TEST(CellLocator, FindsTheCellOfEveryElement) {
  std::mt19937 random(2);
  const auto below = [&](u32 limit) { return i64(random() % limit); };
  for (int turn = 0; turn < 3000; ++turn) {
    extents shape;
    codec c;
    shape.rank = c.window.rank = 1 + int(below(5));
    const i64 first = below(u32(shape.rank));
    for (int d = 0; d < shape.rank; ++d) {
      shape.size[d] = 1 + below(below(4) == 0 ? 40 : 12);
      if (below(3) == 0) shape.size[d] *= 4;
      c.window.size[d] = d >= first && d < first + 3 ? 1 + below(12) : 1;
    }
    const result<plan> made = plan::make(c, shape);
    if (!made || !made->has_lfc()) continue;
    const i64 last = made->num_tiles() - 1;
    for (const i64 tile : {i64(0), last / 2, last}) {
      expect_same_cells(*made, tile);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(CellLocator, HoldsBeyond32Bits) {
  const struct {
    extents shape;
    extents window;
  } cases[] = {{{i64(1) << 40, 3, 7}, {1, 3, 5}}, {{1 << 20, 1 << 10, 1 << 10, 77}, {1, 64, 64, 1}},
               {{5, i64(1) << 34}, {1, 64}},      {{i64(1) << 34, 5}, {64, 1}},
               {{3, i64(1) << 31, 9}, {1, 8, 1}}, {{(1 << 29) + 1, 1 << 10}, {1, 7}}};
  for (const auto& each : cases) {
    codec c;
    c.window = each.window;
    const plan p = *plan::make(c, each.shape);
    for (const i64 tile :
         {i64(0), i64(1) << 20, (i64(1) << 21) + 1, p.num_tiles() / 3, p.num_tiles() - 1}) {
      expect_same_cells(p, tile);
      if (HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace furl::test
