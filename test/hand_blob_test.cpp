// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Two blobs written out by hand from FORMAT.md and Arithmetic, with every byte explained.

#include <gtest/gtest.h>

#include "support/inputs.hpp"
#include "support/run.hpp"

namespace furl::test {
namespace {

void put(std::vector<u8>& blob, std::size_t at, std::initializer_list<int> content) {
  for (const int b : content) blob[at++] = static_cast<u8>(b);
}

// 2 bits, nearest, f32 metadata, one group.
//   x     0    0.4   1     1.6    3      lo = 0, hi = 3, L = 3, step = 1
//   T     0    102   256   410    768    floor or round of 256 x: 0.4 is 102.4, 1.6 is 409.6
//   code  0    0     1     2      3      (T + 128) >> 8
TEST(HandBlob, TinyNearest) {
  codec c;
  c.bits = 2;
  c.group = 32;
  c.meta = dtype::f32;
  c.rounding = rounding::nearest;
  const plan p = make_plan(c, {5});
  std::vector<u8> blob(272, 0);              // 128 * 2 codes, 8 metadata, 8 padding
  put(blob, 0, {0, 0, 1, 2, 3});             // row 0 of columns 0..4: the lowest bits of byte 0
  put(blob, 256, {0, 0, 0, 0});              // lo = 0
  put(blob, 260, {0x00, 0x00, 0x80, 0x3f});  // step = 1
  for (const auto& engine : backends()) {
    SCOPED_TRACE(engine->name());
    EXPECT_EQ(compress(*engine, p, std::vector<float>{0.0f, 0.4f, 1.0f, 1.6f, 3.0f}), blob);
    EXPECT_EQ(decompress(*engine, p, blob), (std::vector<float>{0, 0, 1, 2, 3}));
  }
}

// 3 bits, bf16 metadata, nearest, one row of cells of 4.
//   x        10 11 12 13 | 12 14        means 46 / 4 = 11.5 and 26 / 2 = 13: both exact in bf16
//   r      -1.5 -.5 .5 1.5 | -1 1       lo = -1.5, hi = 1.5, step' = 3 / 7 rounded up to bf16
//   3 / 7 = 0.428571.. = 1.714285.. / 4; in 1/128: 219.43, up to 220: 1.71875 / 4 = 0.4296875
//   (r - lo) / step'   0   2.3272  4.6545  6.9818 | 1.1636  5.8181
//   nearest codes      0   2       5       7      | 1       6
TEST(HandBlob, TinyWithLfc) {
  codec c;
  c.bits = 3;
  c.group = 256;
  c.rounding = rounding::nearest;
  c.window = {4};
  const plan p = make_plan(c, {6});
  std::vector<u8> blob(416, 0);  // 128 * 3 codes; 4 metadata and 12 padding; 4 LFC and 12 padding
  put(blob, 0, {0, 2, 5, 7, 1, 6});
  put(blob, 384, {0xc0, 0xbf});  // -1.5
  put(blob, 386, {0xdc, 0x3e});  // 0.4296875: exponent -2 is 125, fraction 0x5c
  put(blob, 400, {0x38, 0x41});  // 11.5
  put(blob, 402, {0x50, 0x41});  // 13
  const auto value = [](int code, float mean) {
    return static_cast<float>(code) * 0.4296875f - 1.5f + mean;
  };  // exact
  const std::vector<float> decoded{value(0, 11.5f), value(2, 11.5f), value(5, 11.5f),
                                   value(7, 11.5f), value(1, 13.0f), value(6, 13.0f)};
  for (const auto& engine : backends()) {
    SCOPED_TRACE(engine->name());
    EXPECT_EQ(compress(*engine, p, std::vector<float>{10, 11, 12, 13, 12, 14}), blob);
    EXPECT_EQ(decompress(*engine, p, blob), decoded);
  }
}

}  // namespace
}  // namespace furl::test
