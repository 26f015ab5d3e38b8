// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Rotated codes (FORMAT.md, R0 to R8): blobs and outputs against the slow reference, byte for byte.

#include <gtest/gtest.h>

#include <string>

#include "support/inputs.hpp"
#include "support/run.hpp"

namespace furl::test {
namespace {

class RotatedSizes : public testing::TestWithParam<std::tuple<int, i64>> {};

TEST_P(RotatedSizes, AsReference) {
  const auto [bits, n] = GetParam();
  for (const dtype type : all_types) {
    SCOPED_TRACE(name(type));
    const u32 seed = static_cast<u32>(n) + 1;
    const random_key key{seed * u64(0x123456789), ~u64(seed)};
    expect_as_reference({rotated_codec(bits), {n}}, normal_input(n, type, seed), type, key);
    expect_as_reference({rotated_codec(bits, {5}), {n}}, normal_input(n, type, seed), type, key);
  }
}
INSTANTIATE_TEST_SUITE_P(BitsAndSizes, RotatedSizes,
                         testing::Combine(testing::ValuesIn(rotated_bits),
                                          testing::Values(0, 1, 2, 31, 32, 33, 127, 128, 129, 256,
                                                          900, 1023, 1024, 1025, 2048, 4097,
                                                          9999)));

TEST(Rotated, WindowsOfEveryKind) {
  for (const int bits : rotated_bits)
    for (const auto& [shape, window] : {std::pair<extents, extents>{{2, 3, 17, 20}, {1, 1, 8, 8}},
                                        {{3, 40, 50}, {1, 8, 1}},
                                        {{2, 9, 11, 13}, {1, 4, 4, 4}},
                                        {{70, 33}, {64, 32}},
                                        {{30, 64}, {1, 8}}}) {
      i64 n = 1;
      for (int d = 0; d < shape.rank; ++d) n *= shape[d];
      for (const dtype type : all_types)
        expect_as_reference({rotated_codec(bits, window), shape}, normal_input(n, type, 6), type,
                            {3, u64(n)});
    }
}

class RotatedMisaligned : public testing::TestWithParam<std::size_t> {};

TEST_P(RotatedMisaligned, BytesAreThoseOfTheAlignedRun) {
  for (const dtype type : all_types)
    for (const i64 n : {5, 1024, 2500})
      for (const int bits : rotated_bits)
        for (const bool pooled : {false, true})
          expect_as_reference({rotated_codec(bits, pooled ? extents{8} : extents{}), {n}},
                              normal_input(n, type, 8), type, {9, 10}, {GetParam()});
}
INSTANTIATE_TEST_SUITE_P(ByBytes, RotatedMisaligned,
                         testing::Values(1, 2, 3, 4, 6, 7, 8, 12, 13, 16, 17, 20, 28, 31, 32, 48));

}  // namespace
}  // namespace furl::test
