// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "furl/detail/quantize.hpp"

namespace furl::test {
namespace {

template <class Width>
class Pack : public testing::Test {};
using widths = testing::Types<std::integral_constant<int, 1>, std::integral_constant<int, 2>,
                              std::integral_constant<int, 3>, std::integral_constant<int, 4>,
                              std::integral_constant<int, 5>, std::integral_constant<int, 6>,
                              std::integral_constant<int, 7>, std::integral_constant<int, 8>>;
struct width_name {
  template <class Width>
  static std::string GetName(int) {
    return "bits" + std::to_string(Width::value);
  }
};
TYPED_TEST_SUITE(Pack, widths, width_name);

/// Bit `bit` of row `row`'s code in column `column` of the packed words.
bool packed_bit(const u32* packed, int bits, int row, int column, int bit) {
  const int in_string = row * bits + bit;
  const u32 byte = packed[in_string / 8] >> (8 * column) & 0xffu;
  return (byte >> (in_string % 8) & 1u) != 0;
}

TYPED_TEST(Pack, EveryBitHasItsPlaceAndComesBack) {
  constexpr int bits = TypeParam::value;
  std::mt19937 random(bits);
  for (int trial = 0; trial < 2000; ++trial) {
    u32 codes[8];
    // All zero, all one, a single row of ones, then random ones.
    for (u32& word : codes) word = static_cast<u32>(random()) & in_each_byte(low_bits(bits));
    if (trial < 10)
      for (int row = 0; row < 8; ++row)
        codes[row] = trial == 9 || trial == row ? in_each_byte(low_bits(bits)) : 0;
    u32 packed[bits];
    for (u32& word : packed) word = 0xA5A5A5A5u;
    pack_columns<bits>(codes, packed);
    for (int row = 0; row < 8; ++row)
      for (int column = 0; column < 4; ++column)
        for (int bit = 0; bit < bits; ++bit)
          ASSERT_EQ(packed_bit(packed, bits, row, column, bit),
                    (codes[row] >> (8 * column + bit) & 1u) != 0)
              << "row " << row << " column " << column << " bit " << bit;
    u32 back[8];
    unpack_columns<bits>(packed, back);
    for (int row = 0; row < 8; ++row) ASSERT_EQ(back[row], codes[row]);
  }
}

// A blob may hold any bytes: what unpacks must be in range, and pack again to the same.
TYPED_TEST(Pack, EveryPackedWordUnpacks) {
  constexpr int bits = TypeParam::value;
  std::mt19937 random(100 + bits);
  for (int trial = 0; trial < 500; ++trial) {
    u32 packed[bits];
    for (u32& word : packed) word = static_cast<u32>(random());
    u32 codes[8];
    unpack_columns<bits>(packed, codes);
    u32 again[bits];
    pack_columns<bits>(codes, again);
    for (const u32 word : codes) ASSERT_EQ(word & ~in_each_byte(low_bits(bits)), 0u);
    for (int k = 0; k < bits; ++k) ASSERT_EQ(again[k], packed[k]);
  }
}

// By hand: codes 0..7 in 3 bits, row 0 lowest, are the bytes 88 C6 FA.
TEST(PackByHand, ThreeBits) {
  const u32 codes[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  u32 packed[3];
  pack_columns<3>(codes, packed);
  EXPECT_EQ(packed[0], 0x88u);
  EXPECT_EQ(packed[1], 0xC6u);
  EXPECT_EQ(packed[2], 0xFAu);
}

}  // namespace
}  // namespace furl::test
