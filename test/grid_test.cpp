// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Inputs that lie on a grid, so that every code is known without arithmetic and whatever is drawn.

#include <gtest/gtest.h>

#include <string>

#include "support/inputs.hpp"
#include "support/run.hpp"

namespace furl::test {
namespace {

/// Code of element `in_group` of a group: every code is taken, neighbours and rows differ.
int grid_code(i64 in_group, int bits) {
  return static_cast<int>((7 * in_group + 3 + in_group / 128) % (1 << bits));
}

struct grid_input {
  std::vector<float> x;
  std::vector<u8> codes;
};

/// lo + code * step, with both ends present in every group of 32 or more: codes 0 and L come first.
grid_input make_grid(i64 n, int group, int bits, float lo, float step) {
  grid_input out;
  for (i64 i = 0; i < n; ++i) {
    const i64 in_group = i % group;
    const int top = (1 << bits) - 1;
    const int code = in_group == 0 ? 0 : in_group == 1 ? top : grid_code(in_group, bits);
    out.codes.push_back(static_cast<u8>(code));
    out.x.push_back(lo + static_cast<float>(code) * step);
  }
  return out;
}

void check_grid(backend& engine, const codec& c, dtype type) {
  const i64 n = 2 * 1024 + 2 + 32;  // two tiles, and a last group of which both ends are there
  const grid_input input = make_grid(n, c.group, c.bits, -4.0f, 0.25f);
  const auto x = reference::from_floats(input.x, type);
  ASSERT_EQ(reference::to_floats(x, type), input.x) << "the grid must be exact in " << name(type);
  const plan p = make_plan(c, {n});
  auto blob = compress(engine, p, x, type, {u64(c.bits), u64(c.group)});
  EXPECT_EQ(decompress(engine, p, blob, type), x);
  for (i64 g = 0; g < p.num_groups(); ++g) {
    EXPECT_EQ(group_of(p, blob, g).lo, -4.0f);
    EXPECT_EQ(group_of(p, blob, g).step, 0.25f);
  }
  blob.resize(p.meta_offset());
  EXPECT_EQ(blob, reference::pack(c.bits, input.codes));
}

TEST(Grid, CodesOfEveryWidthGroupAndType) {
  for (const auto& engine : backends())
    for (int bits = 1; bits <= 8; ++bits)
      for (int group = 32; group <= 1024; group *= 2)
        for (const dtype type : all_types) {
          SCOPED_TRACE(std::string(engine->name()) + " " + std::to_string(bits) + " bits, group " +
                       std::to_string(group) + " " + name(type));
          // bf16 holds 8 bits: -4 + 255 / 4 does not fit, so every other setting of meta is enough.
          codec c;
          c.bits = bits;
          c.group = group;
          c.meta = (bits + group / 32) % 2 == 0 ? dtype::f32 : dtype::bf16;
          check_grid(*engine, c, type);
          if (testing::Test::HasFailure()) return;
        }
}

// No random bit may move a value that is on the grid.
TEST(Grid, StandsStillForEverySeed) {
  codec c;
  c.group = 32;
  for (const auto& engine : backends()) {
    for (int bits = 1; bits <= 8; ++bits) {
      c.bits = bits;
      const grid_input input = make_grid(500, c.group, bits, 1.0f, 2.0f);
      const plan p = make_plan(c, {500});
      const auto first = compress(*engine, p, input.x);
      for (u64 seed = 1; seed < 20; ++seed)
        ASSERT_EQ(compress(*engine, p, input.x, {seed, seed << 40}), first) << bits << " bits";
    }
  }
}

}  // namespace
}  // namespace furl::test
