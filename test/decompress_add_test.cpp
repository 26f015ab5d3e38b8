// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// decompress_add: sums in f32, converted plainly (FORMAT.md, A7).

#include <gtest/gtest.h>

#include "support/inputs.hpp"
#include "support/run.hpp"

namespace furl::test {
namespace {

/// The bytes of a tensor of one repeated value.
std::vector<u8> repeat(float x, std::size_t count, dtype type) {
  return reference::from_floats(std::vector<float>(count, x), type);
}

std::vector<u8> constant_blob(backend& engine, const plan& p, float x) {
  return compress(engine, p, std::vector<float>(static_cast<std::size_t>(p.num_elements()), x));
}

TEST(DecompressAdd, AddsOnceToEveryElement) {
  for (const auto& engine : backends())
    for (const dtype type : all_types)
      for (const i64 n : {1, 3, 31, 1003, 1024, 1025, 4099}) {
        const plan p = make_plan({}, {n});
        const auto count = static_cast<std::size_t>(n);
        EXPECT_EQ(decompress_add(*engine, p, constant_blob(*engine, p, 2.0f), type,
                                 repeat(1.0f, count, type)),
                  repeat(3.0f, count, type));
      }
}

// Loss scalers look for the infinity that decompress would saturate.
TEST(DecompressAdd, OverflowIsInfinity) {
  const plan p = make_plan({}, {40});
  for (const auto& engine : backends()) {
    const auto large = constant_blob(*engine, p, 32768.0f);
    EXPECT_EQ(decompress_add(*engine, p, large, dtype::f16, repeat(32768.0f, 40, dtype::f16)),
              repeat(infinity, 40, dtype::f16));
    EXPECT_EQ(decompress(*engine, p, constant_blob(*engine, p, 65536.0f), dtype::f16),
              repeat(65504.0f, 40, dtype::f16));
    const auto huge = constant_blob(*engine, p, 0x1p127f);
    for (const dtype type : {dtype::f32, dtype::bf16})
      EXPECT_EQ(decompress_add(*engine, p, huge, type, repeat(0x1p127f, 40, type)),
                repeat(infinity, 40, type));
    const auto negative = constant_blob(*engine, p, -0x1p127f);
    EXPECT_EQ(decompress_add(*engine, p, negative, dtype::f32, repeat(-0x1p127f, 40, dtype::f32)),
              repeat(-infinity, 40, dtype::f32));
  }
}

TEST(DecompressAdd, SpecialValuesInTheOutput) {
  const plan p = make_plan({}, {8});
  for (const auto& engine : backends()) {
    const auto one = constant_blob(*engine, p, 1.0f);
    EXPECT_EQ(decompress_add(*engine, p, one, dtype::f32, repeat(-infinity, 8, dtype::f32)),
              repeat(-infinity, 8, dtype::f32));
    // Any NaN in the output becomes the one NaN.
    const std::vector<u8> half_nan{1, 0xfc, 1, 0xfe, 0xff, 0xff, 1, 0x7c,
                                   0, 0x7e, 2, 0xfd, 3,    0xfc, 4, 0xfc};
    const auto y = decompress_add(*engine, p, one, dtype::f16, half_nan);
    for (std::size_t i = 0; i < 16; i += 2) {
      EXPECT_EQ(y[i], 0xff);
      EXPECT_EQ(y[i + 1], 0x7f);
    }
    // 0 added to -0 is +0, and to a subnormal that subnormal.
    const auto zero = constant_blob(*engine, p, 0.0f);
    EXPECT_EQ(decompress_add(*engine, p, zero, dtype::f32, repeat(-0.0f, 8, dtype::f32)),
              repeat(0.0f, 8, dtype::f32));
    EXPECT_EQ(decompress_add(*engine, p, zero, dtype::f32, repeat(0x1p-149f, 8, dtype::f32)),
              repeat(0x1p-149f, 8, dtype::f32));
  }
}

// One rounding of the sum: v itself is not rounded to the output type first.
TEST(DecompressAdd, RoundsOnce) {
  codec c;
  c.meta = dtype::f32;
  const plan p = make_plan(c, {4});
  for (const auto& engine : backends()) {
    // In bf16 1.00390625 alone is a tie that goes to 1; with 2^-10 it is not.
    const auto v = constant_blob(*engine, p, 1.00390625f);
    EXPECT_EQ(decompress_add(*engine, p, v, dtype::bf16, repeat(0x1p-10f, 4, dtype::bf16)),
              repeat(1.0078125f, 4, dtype::bf16));
  }
}

TEST(DecompressAdd, PoisonMakesNan) {
  std::vector<float> x(64, 1.0f);
  x[40] = infinity;
  codec c;
  c.group = 32;
  const plan p = make_plan(c, {64});
  for (const auto& engine : backends()) {
    const auto y = decompress_add(*engine, p, compress(*engine, p, x), dtype::bf16,
                                  repeat(infinity, 64, dtype::bf16));
    for (std::size_t i = 0; i < 64; ++i) {
      EXPECT_EQ(y[2 * i], i < 32 ? 0x80 : 0xff);
      EXPECT_EQ(y[2 * i + 1], 0x7f);
    }
  }
}

}  // namespace
}  // namespace furl::test
