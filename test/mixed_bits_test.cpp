// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// A width for every tile (FORMAT.md).

#include <gtest/gtest.h>

#include <string>

#include "support/inputs.hpp"
#include "support/run.hpp"

namespace furl::test {
namespace {

std::vector<u8> some_widths(std::size_t tiles, u32 seed) {
  auto widths = random_bytes(tiles, seed);
  for (u8& width : widths) width = static_cast<u8>(width % 8 + 1);
  return widths;
}

TEST(MixedWidths, AsReference) {
  u32 seed = 0;
  for (const i64 n : {1, 1023, 1024, 1025, 3000, 8 * 1024, 11 * 1024 + 5})
    for (const dtype type : all_types)
      for (const bool pooled : {false, true}) {
        codec c;
        c.bits = 0;
        c.group = 32 << ++seed % 6;
        if (pooled) c.window = {5};
        const auto widths = some_widths(static_cast<std::size_t>((n + 1023) / 1024), seed);
        const auto x =
            reference::from_floats(normal_floats(static_cast<std::size_t>(n), seed), type);
        SCOPED_TRACE(std::to_string(n) + " of " + name(type));
        expect_as_reference({c, {n}, widths}, x, type, {seed, 1}, {seed % 2 == 0 ? 4u : 0u});
      }
}

TEST(MixedWidths, EveryPairOfNeighbours) {
  for (u8 a = 1; a <= 8; ++a)
    for (u8 b = 1; b <= 8; ++b) {
      const auto x = bytes_of(normal_floats(2048 + 50, a * 8u + b));
      codec c;
      c.group = 1024;
      expect_as_reference({c, {2048 + 50}, {a, b, a}}, x, dtype::f32, {1, 2});
    }
}

TEST(MixedWidths, EqualWidthsAreTheUniformBlob) {
  const auto x = normal_floats(5000, 3);
  for (const auto& engine : backends()) {
    for (u8 bits = 1; bits <= 8; ++bits) {
      codec c;
      c.bits = bits;
      const plan uniform = make_plan(c, {5000});
      const plan mixed = *plan::make_mixed(c, {5000}, 5u * bits);
      const std::vector<u8> widths(5, bits);
      EXPECT_EQ(compress(*engine, mixed, bytes_of(x), dtype::f32, {8, 9}, widths),
                compress(*engine, uniform, x, {8, 9}));
    }
  }
}

TEST(MixedWidths, EmptyTensorNeedsNone) {
  const plan p = *plan::make_mixed({}, {0, 3}, 0);
  for (const auto& engine : backends()) {
    EXPECT_TRUE(compress(*engine, p, {}, dtype::f32, {}).empty());
    EXPECT_TRUE(decompress(*engine, p, {}, dtype::f32).empty());
  }
}

}  // namespace
}  // namespace furl::test
