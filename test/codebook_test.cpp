// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Codebooks: values to codes, codes to levels, levels times gradients.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "support/coded.hpp"
#include "support/inputs.hpp"

namespace furl::test {
namespace {

constexpr int level_counts[] = {2, 3, 4, 5, 8, 9, 16, 17, 33, 64, 100, 128, 129, 255, 256};

/// Values that decide between two codes.
std::vector<float> boundaries(const codebook& book) {
  std::vector<float> out(book.level, book.level + book.num_levels);
  out.insert(out.end(), book.threshold, book.threshold + (book.num_levels - 1));
  return out;
}

void expect_codes(const codebook& book, i64 n, dtype type, int bits, random_key key) {
  const plan p = *plan::make_codes(bits, {n});
  const auto x = awkward_elements(static_cast<std::size_t>(n), type, u32(n + book.num_levels),
                                  boundaries(book));
  const auto codes = reference_codes(reference::to_floats(x, type), book, key);
  const auto blob = reference::pack(bits, codes);
  std::vector<float> levels;
  for (const u8 code : codes) levels.push_back(book.level[code]);
  for (const auto& engine : backends()) {
    SCOPED_TRACE(std::string(engine->name()) + " " + name(type) + " n " + std::to_string(n) +
                 " levels " + std::to_string(book.num_levels) + " bits " + std::to_string(bits));
    const misalignment where{n % 2 == 0 ? 0 : std::size_t(size_bytes(type))};
    EXPECT_EQ(pack(*engine, p, x, type, book, key, where), blob);
    EXPECT_EQ(unpack(*engine, p, blob, book, type, where), reference::from_floats(levels, type));
  }
}

TEST(Codebook, NearestAsReference) {
  int turn = 0;
  for (const int count : level_counts) {
    const codebook book = uneven_codebook(count, rounding::nearest);
    for (const dtype type : all_types) {
      const i64 sizes[] = {1, 31, 1023, 1024, 1025, 5001};
      expect_codes(book, sizes[turn++ % 6], type, book.bits(), {});
    }
    expect_codes(book, 2100, dtype::f32, 8, {});
  }
}

TEST(Codebook, StochasticAsReference) {
  int turn = 0;
  for (const int count : level_counts) {
    const codebook book = uneven_codebook(count, rounding::stochastic);
    for (const dtype type : all_types) {
      const i64 sizes[] = {1, 31, 1023, 1024, 1025, 5001};
      ++turn;
      expect_codes(book, sizes[turn % 6], type, book.bits(), {u64(count) << 33, u64(turn)});
    }
    expect_codes(book, 2100, dtype::f32, 8, {7, u64(1) << 40});
  }
}

TEST(Codebook, LevelsFarApartAndCloseTogether) {
  const float levels[] = {-3e38f, -1.0f, -1e-20f, 0.0f, 0x1p-126f, 0x1p-125f, 1.0f, 2e38f};
  expect_codes(stochastic_codebook(levels, 8), 4000, dtype::f32, 3, {5, 6});
  expect_codes(nearest_codebook(levels, 8), 4000, dtype::f32, 3, {});
}

TEST(Codebook, OfMagnitudesAsReference) {
  u64 turn = 0;
  for (const rounding mode : {rounding::nearest, rounding::stochastic})
    for (const int count : level_counts) {
      codebook book = uneven_codebook(count, mode);
      book.of_magnitudes = true;
      const i64 n = i64{1} + i64(turn % 3) * 1023;
      for (const dtype type : all_types) expect_codes(book, n, type, book.bits(), {7, turn});
      ++turn;
    }
}

// Thresholds that f16 or bf16 cannot hold, beyond their ends and below their smallest too.
TEST(Codebook, ThresholdsBetweenElements) {
  const float between[] = {0x1p-149f, 0x1p-134f,         0x1.8p-25f,       0x1p-24f,
                           1.0f,      1.0f + 0x1.8p-10f, 1.0f + 0x1.8p-8f, 2.0f,
                           65504.0f,  65519.0f,          65520.0f,         1e6f,
                           0x1p127f,  0x1.ffp127f,       0x1.fffffep127f};
  codebook book;
  for (const int num_levels : {4, 8, 16}) {
    book.num_levels = num_levels;
    for (int i = 0; i < num_levels; ++i) book.level[i] = float(i);
    for (const float sign : {-1.0f, 1.0f})
      for (const int first : {0, 15 - (num_levels - 1)}) {
        for (int i = 0; i < num_levels - 1; ++i)
          book.threshold[i] = sign * between[first + (sign > 0 ? i : num_levels - 2 - i)];
        for (const dtype type : all_types) expect_codes(book, 1500, type, book.bits(), {});
      }
  }
}

// Two thresholds that are equal leave the interval between them empty; infinities are allowed.
TEST(Codebook, EqualAndInfiniteThresholds) {
  codebook book = uneven_codebook(5, rounding::nearest);
  book.threshold[0] = -std::numeric_limits<float>::infinity();
  book.threshold[1] = book.threshold[2] = 0.0f;
  book.threshold[3] = std::numeric_limits<float>::infinity();
  for (const dtype type : all_types) expect_codes(book, 3000, type, 3, {});
}

// In one bit the elements themselves are compared, in their own type.
TEST(Codebook, OneBitAtAnyThreshold) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float magnitude :
       {0.0f, smallest_positive, 0x1p-134f, 0x1p-133f, 0x1p-25f, 0x1.8p-25f, 0x1p-24f, 0x1.8p-24f,
        1.0f, 1.0f + 0x1p-12f, 1.0f + 0x1p-9f, 1.0f + 0x1.8p-8f, 65504.0f, 65519.0f, 65520.0f, 1e6f,
        0x1.ffp127f, std::numeric_limits<float>::max(), infinity}) {
    for (const float threshold : {magnitude, -magnitude}) {
      codebook book = positive_codebook(-1.0f, 2.0f);
      book.threshold[0] = threshold;
      for (const dtype type : all_types) expect_codes(book, 1500, type, 1, {});
      book.of_magnitudes = true;
      for (const dtype type : all_types) expect_codes(book, 300, type, 1, {});
    }
  }
}

// NaN has no place between levels: it gets code 0, and no neighbour changes.
TEST(Codebook, NanIsCodeZero) {
  for (const rounding mode : {rounding::nearest, rounding::stochastic}) {
    const codebook book = uneven_codebook(16, mode);
    const plan p = *plan::make_codes(4, {3});
    const std::vector<float> x = {2.9f, std::nanf(""), 2.9f};
    for (const auto& engine : backends()) {
      const auto codes = reference::unpack(4, pack(*engine, p, bytes_of(x), dtype::f32, book), 3);
      EXPECT_EQ(codes[1], 0);
      EXPECT_GE(codes[0], 14);
      EXPECT_GE(codes[2], 14);
    }
  }
}

TEST(Codebook, StochasticIsRightOnAverage) {
  const float levels[] = {-1.0f, -0.1f, 0.4f, 2.0f};
  const codebook book = stochastic_codebook(levels, 4);
  constexpr i64 n = 1 << 16;
  const plan p = *plan::make_codes(2, {n});
  for (const float x : {-2.0f, -0.75f, 0.0f, 0.15f, 1.2f, 5.0f}) {
    const std::vector<float> all(n, x);
    for (const auto& engine : backends()) {
      const auto blob = pack(*engine, p, bytes_of(all), dtype::f32, book, {3, 9});
      double sum = 0;
      for (const float v : floats_of(unpack(*engine, p, blob, book, dtype::f32))) sum += double(v);
      // The gap is at most 1.6: the mean deviates by 0.8 / 256 at most 5 times in a million, and
      // the fraction of 8 bits by 1.6 / 512.
      const double inside = std::fmin(std::fmax(double(x), -1.0), 2.0);
      EXPECT_NEAR(sum / double(n), inside, 5 * 0.8 / 256 + 1.6 / 512);
    }
  }
}

// Auxiliary activation learning keeps the sign alone: -a for zeros of either sign and for NaN.
TEST(Codebook, SignStandIn) {
  const std::vector<float> x = {-2.0f, -0.0f, 0.0f, 1e-45f, -1e-45f, 3.0f, std::nanf("")};
  const std::vector<float> sign = {-0.5f, -0.5f, -0.5f, 0.5f, -0.5f, 0.5f, -0.5f};
  const std::vector<float> step = {0, 0, 0, 1, 0, 1, 0};
  const plan p = *plan::make_codes(1, {7});
  for (const auto& engine : backends()) {
    const auto blob = pack(*engine, p, bytes_of(x), dtype::f32, positive_codebook());
    EXPECT_EQ(floats_of(unpack(*engine, p, blob, positive_codebook(-0.5f, 0.5f), dtype::f32)),
              sign);
    EXPECT_EQ(floats_of(unpack(*engine, p, blob, positive_codebook(), dtype::f32)), step);
  }
}

TEST(Codebook, CodesThatNameNoLevelAreZero) {
  codebook book = uneven_codebook(3, rounding::nearest);
  book.level[3] = 77.0f;  // not used
  for (const int bits : {2, 8}) {
    const plan p = *plan::make_codes(bits, {2500});
    const auto blob = random_bytes(static_cast<std::size_t>(p.size_bytes()), 8);
    std::vector<float> expected;
    for (const u8 code : reference::unpack(bits, blob, 2500))
      expected.push_back(code < 3 ? book.level[code] : 0.0f);
    for (const auto& engine : backends())
      EXPECT_EQ(floats_of(unpack(*engine, p, blob, book, dtype::f32)), expected);
  }
}

TEST(Codebook, OutputsSaturateAndProductsOverflow) {
  const float levels[] = {-3e38f, 1e5f};
  const codebook book = nearest_codebook(levels, 2);
  const plan p = *plan::make_codes(1, {2});
  const float infinity = std::numeric_limits<float>::infinity();
  const auto g = reference::from_floats({2.0f, 1000.0f}, dtype::f16);
  for (const auto& engine : backends()) {
    const auto blob = pack(*engine, p, bytes_of({-2e38f, 1e5f}), dtype::f32, book);
    const auto y = reference::to_floats(unpack(*engine, p, blob, book, dtype::f16), dtype::f16);
    EXPECT_EQ(y, (std::vector<float>{-65504.0f, 65504.0f}));
    const auto product = unpack_multiply(*engine, p, blob, book, g, dtype::f16);
    EXPECT_EQ(reference::to_floats(product, dtype::f16), (std::vector<float>{-infinity, infinity}));
  }
}

// A level of 0 drops the gradient whatever it is; the others multiply, rounded once.
TEST(Codebook, ProductsAsReference) {
  for (const int count : {2, 3, 7, 16, 256}) {
    codebook book = uneven_codebook(count, rounding::nearest);
    for (const int zero : {0, 1, -1, 2}) {  // the last: an exact mask
      if (zero == 2) book.level[0] = 0.0f, book.level[1] = 1.0f;
      if (zero == 0 || zero == 1) book.level[zero] = zero == 0 ? 0.0f : -0.0f;
      for (const dtype type : all_types) {
        for (const i64 n : {1, 1024, 2600}) {
          const plan p = *plan::make_codes(book.bits(), {n});
          const auto g = awkward_elements(static_cast<std::size_t>(n), type, u32(count));
          auto codes = random_bytes(static_cast<std::size_t>(n), 3);
          for (u8& code : codes) code = static_cast<u8>(code % count);
          const auto expected = map_elements(g, type, [&](float value, std::size_t i) {
            const float level = book.level[codes[i]];
            return level == 0.0f ? 0.0f : value * level;
          });
          const auto blob = reference::pack(book.bits(), codes);
          for (const auto& engine : backends()) {
            SCOPED_TRACE(std::string(engine->name()) + " " + name(type) + " levels " +
                         std::to_string(count) + " n " + std::to_string(n));
            const misalignment where{n == 1024 ? 0 : std::size_t(size_bytes(type))};
            EXPECT_EQ(unpack_multiply(*engine, p, blob, book, g, type, where), expected);
          }
        }
      }
    }
  }
}

// Every 16-bit pattern of a gradient, dropped and kept: what is dropped is +0 whatever the signs
// are.
TEST(BugReports, Case136_OneBitDropsToPositiveZero) {
  constexpr i64 n = 1 << 17;
  const plan p = *plan::make_codes(1, {n});
  std::vector<u8> kept(n);
  for (std::size_t i = 0; i < n; ++i) kept[i] = i < n / 2 ? 1 : 0;
  const auto blob = reference::pack(1, kept);
  const float levels[][2] = {{0, 1}, {0, -1}, {-0.0f, 0.7f}, {0, -0.7f}, {-0.0f, -3}, {-2, 0}};
  for (const dtype type : all_types) {
    std::vector<u8> g;
    for (i64 i = 0; i < n; ++i) {  // f32: as its upper half
      if (type == dtype::f32) g.insert(g.end(), {u8(i * 7), u8(i * 3)});
      g.insert(g.end(), {u8(i), u8(i >> 8)});
    }
    for (const auto& pair : levels) {
      codebook book = positive_codebook(pair[0], pair[1]);
      const auto expected = map_elements(g, type, [&](float value, std::size_t i) {
        const float level = pair[kept[i]];
        return level == 0.0f ? 0.0f : value * level;
      });
      for (const auto& engine : backends())
        EXPECT_TRUE(unpack_multiply(*engine, p, blob, book, g, type) == expected)
            << engine->name() << " " << name(type) << " " << pair[0] << ", " << pair[1];
    }
  }
}

}  // namespace
}  // namespace furl::test
