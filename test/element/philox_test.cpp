// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <set>

#include "furl/detail/quantize.hpp"

namespace furl::test {
namespace {

struct known_answer {
  philox_block counter;
  u32 key[2];
  philox_block output;
};

void expect_words(const philox_block& got, const philox_block& expected) {
  for (int i = 0; i < 4; ++i) EXPECT_EQ(got.word[i], expected.word[i]) << "word " << i;
}

// From Random123's kat_vectors.
TEST(Philox, TenRoundsKnownAnswers) {
  const known_answer cases[] = {
      {{{0, 0, 0, 0}}, {0, 0}, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}}},
      {{{~0u, ~0u, ~0u, ~0u}}, {~0u, ~0u}, {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}}},
      {{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
       {0xa4093822, 0x299f31d0},
       {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}}};
  for (const auto& c : cases) expect_words(philox4x32<10>(c.counter, c.key[0], c.key[1]), c.output);
}

TEST(Philox, SevenRoundsKnownAnswers) {
  const known_answer cases[] = {
      {{{0, 0, 0, 0}}, {0, 0}, {{0x5f6fb709, 0x0d893f64, 0x4f121f81, 0x4f730a48}}},
      {{{~0u, ~0u, ~0u, ~0u}}, {~0u, ~0u}, {{0x5207ddc2, 0x45165e59, 0x4d8ee751, 0x8c52f662}}},
      {{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
       {0xa4093822, 0x299f31d0},
       {{0x4dfccaba, 0x190a87f0, 0xc47362ba, 0xb6b5242a}}}};
  for (const auto& c : cases) expect_words(philox4x32(c.counter, c.key[0], c.key[1]), c.output);
}

TEST(Philox, SeedIsTheKeyAndOffsetTheUpperCounter) {
  const random_key key{0x1122334455667788u, 0x99aabbccddeeff00u};
  // Tile 2^33 + 5: 64 times that needs the counter's second word.
  const u64 tile = (1ull << 33) + 5;
  expect_words(random_words(tile, 1, 31, key),
               philox4x32<7>({{5 * 64 + 32 + 31, 1u << 7, 0xddeeff00u, 0x99aabbccu}}, 0x55667788u,
                             0x11223344u));
}

TEST(Philox, ColumnsTakeBytesZeroTwoOneThree) {
  const random_key key{12, 34};
  for (u32 row = 0; row < 8; ++row) {
    for (u32 quad = 0; quad < 32; ++quad) {
      const u32 word = random_words(7, row / 4, quad, key).word[row % 4];
      const u64 first = 7 * 1024 + row * 128 + quad * 4;
      EXPECT_EQ(random_bits(first, key), word & 0xffu);
      EXPECT_EQ(random_bits(first + 1, key), word >> 16 & 0xffu);
      EXPECT_EQ(random_bits(first + 2, key), word >> 8 & 0xffu);
      EXPECT_EQ(random_bits(first + 3, key), word >> 24);
    }
  }
}

// Positions beyond 2^32 and 2^42 must not come back to the first ones.
TEST(Philox, IndicesUseAllBits) {
  const random_key key{1, 2};
  for (const u64 base : {u64(0), u64(1) << 32, u64(1) << 42, u64(1) << 62}) {
    for (const u64 far : {u64(1) << 31, u64(1) << 33, u64(1) << 41, u64(1) << 61}) {
      int equal = 0;
      for (u64 i = 0; i < 256; ++i)
        equal += random_bits(base + i, key) == random_bits(base + far + i, key) ? 1 : 0;
      EXPECT_LT(equal, 12) << base << " and " << base + far;  // 1 expected of 256
    }
  }
}

TEST(Philox, NoTwoQuadsShareAWord) {
  std::set<u64> seen;
  for (u64 tile = 0; tile < 8; ++tile)
    for (u32 half = 0; half < 2; ++half)
      for (u32 quad = 0; quad < 32; ++quad) {
        const philox_block block = random_words(tile, half, quad, {3, 4});
        seen.insert(u64(block.word[0]) << 32 | block.word[1]);
        seen.insert(u64(block.word[2]) << 32 | block.word[3]);
      }
  EXPECT_EQ(seen.size(), 8u * 2 * 32 * 2);
}

}  // namespace
}  // namespace furl::test
