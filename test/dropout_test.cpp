// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Dropout with a mask and without.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "support/coded.hpp"
#include "support/inputs.hpp"

namespace furl::test {
namespace {

/// FORMAT.md, A10, by Philox itself.
u32 random_16(u64 index, random_key key) {
  const u64 m = index / 1024 * 64 + index % 1024 / 512 * 32 + index % 128 / 4;
  const auto byte_of = [&](u64 counter) {
    const philox_block block =
        philox4x32({{u32(counter), u32(counter >> 32), u32(key.offset), u32(key.offset >> 32)}},
                   u32(key.seed), u32(key.seed >> 32));
    const int bytes[] = {0, 2, 1, 3};
    return block.word[index % 1024 / 128 % 4] >> (8 * bytes[index % 4]) & 0xffu;
  };
  return byte_of(m) * 256 + byte_of(m + (u64(1) << 63));
}

std::vector<u8> kept_elements(i64 n, double p, random_key key) {
  std::vector<u8> kept;
  for (i64 i = 0; i < n; ++i)
    kept.push_back(random_16(u64(i), key) >= std::floor(p * 65536 + 0.5) ? 1 : 0);
  return kept;
}

TEST(Dropout, AsReferenceWithAndWithoutMask) {
  const random_key key{u64(77) << 40, (u64(3) << 33) + 5};
  for (const double p : {0.0, 0.1, 0.5, 1.0 / 65536, 0.9999}) {
    const float scale = 65536.0f / static_cast<float>(65536 - std::floor(p * 65536 + 0.5));
    for (const dtype type : all_types) {
      for (const i64 n : {0, 1, 130, 1024, 3333, 5 * 1024}) {
        const plan codes = *plan::make_codes(1, {n});
        const auto x = awkward_elements(static_cast<std::size_t>(n), type, u32(n) + 3);
        const auto kept = kept_elements(n, p, key);
        const auto expected = map_elements(
            x, type, [&](float value, std::size_t i) { return kept[i] ? value * scale : 0.0f; });
        const std::size_t where = n == 3333 ? std::size_t(size_bytes(type)) : 0;
        for (const auto& engine : backends()) {
          SCOPED_TRACE(std::string(engine->name()) + " " + name(type) + " n " + std::to_string(n) +
                       " p " + std::to_string(p));
          const guarded_buffer input(x, where);
          guarded_buffer y(x.size(), where);
          guarded_buffer both(x, where);
          guarded_buffer mask(codes.size_bytes());
          EXPECT_TRUE(engine->dropout({input.data(), type, n}, p, {y.data(), type, n}, key));
          EXPECT_EQ(y.bytes(), expected);
          EXPECT_TRUE(engine->dropout(codes, {both.data(), type, n}, p, {both.data(), type, n},
                                      {mask.data(), mask.size()}, key));
          EXPECT_EQ(both.bytes(), expected);
          EXPECT_EQ(mask.bytes(), reference::pack(1, kept));
          EXPECT_TRUE(y.intact() && both.intact() && mask.intact());
          // Backward from the mask is backward from the key.
          EXPECT_EQ(unpack_multiply(*engine, codes, mask.bytes(), dropout_codebook(p), x, type),
                    expected);
        }
      }
    }
  }
}

// The part that is dropped, and the sum that dropout keeps on average.
TEST(Dropout, RateIsRight) {
  constexpr i64 n = 1 << 20;
  const std::vector<float> ones(n, 1.0f);
  std::vector<float> y(n);
  for (const double p : {0.02, 0.3, 0.75}) {
    double sum = 0;
    double dropped = 0;
    for (const auto& engine : backends()) {
      ASSERT_TRUE(engine->dropout(ones, p, y, {u64(p * 1000), 1}));
      sum = dropped = 0;
      for (const float value : y) {
        sum += double(value);
        dropped += value == 0.0f ? 1 : 0;
      }
      const double deviation = std::sqrt(p * (1 - p) / double(n));
      EXPECT_NEAR(dropped / double(n), p, 5 * deviation + 0x1p-17);
      EXPECT_NEAR(sum / double(n), 1.0, 5 * deviation / (1 - p));
    }
  }
}

TEST(Dropout, OtherKeysDropOthers) {
  constexpr i64 n = 4096;
  const auto first = kept_elements(n, 0.5, {1, 1});
  for (const random_key key : {random_key{1, 2}, random_key{2, 1}, random_key{1, u64(1) << 32}}) {
    int same = 0;
    const auto other = kept_elements(n, 0.5, key);
    for (std::size_t i = 0; i < n; ++i) same += first[i] == other[i] ? 1 : 0;
    EXPECT_NEAR(same, n / 2, 5 * 32);
  }
}

TEST(Dropout, Refused) {
  constexpr i64 n = 1100;
  const plan p = *plan::make_codes(1, {n});
  const auto content = random_bytes(16384, 4);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const auto& engine : backends()) {
    guarded_buffer memory(content);
    const values y{memory.data(), dtype::f32, n};
    const const_values x{y.data, y.type, n};
    const bytes mask{memory.data() + 9600, p.size_bytes()};
    const auto expect = [&](const status& s, error code, const char* argument) {
      EXPECT_EQ(s.code, code) << to_string(s);
      EXPECT_STREQ(s.argument, argument);
    };
    for (const double wrong : {-1e-9, 1.0, 1.0 - 0x1p-17, 2.0, nan}) {
      expect(engine->dropout(x, wrong, y, {}), error::out_of_range, "p");
      expect(engine->dropout(p, x, wrong, y, mask, {}), error::out_of_range, "p");
      EXPECT_EQ(dropout_codebook(wrong).num_levels, 0);
    }
    expect(engine->dropout({nullptr, dtype::f32, n}, 0.5, y, {}), error::null_pointer, "x");
    expect(engine->dropout({y.data, dtype::f32, -1}, 0.5, y, {}), error::wrong_size, "x");
    expect(engine->dropout({y.data, dtype(7), n}, 0.5, y, {}), error::out_of_range, "x");
    expect(engine->dropout(x, 0.5, {y.data, dtype::f16, n}, {}), error::out_of_range, "y");
    expect(engine->dropout(x, 0.5, {y.data, dtype::f32, n - 1}, {}), error::wrong_size, "y");
    expect(engine->dropout(x, 0.5, {nullptr, dtype::f32, n}, {}), error::null_pointer, "y");
    expect(engine->dropout(*plan::make_codes(2, {n}), x, 0.5, y, {mask.data, 4096}, {}),
           error::wrong_plan, "plan");
    expect(engine->dropout(p, x, 0.5, y, {mask.data, 128}, {}), error::wrong_size, "blob");
    EXPECT_EQ(memory.bytes(), content);
  }
}

}  // namespace
}  // namespace furl::test
