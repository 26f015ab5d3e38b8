// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Codebooks with a scale for each group: blobs and values as the reference has them.

#include "support/scaled.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>

#include "support/inputs.hpp"

namespace furl::test {
namespace {

constexpr i64 scaled_sizes[] = {1, 31, 33, 1023, 1024, 1025, 2500, 5001};

/// Runs of elements of one kind each: of all magnitudes, zeros, constants, with a NaN, with
/// infinities, subnormal ones, ones near the largest.
std::vector<u8> scaled_runs(i64 n, int run, dtype type, u32 seed) {
  std::vector<float> x = normal_floats(reference::at(n), seed);
  std::mt19937 random(seed);
  const float largest = type == dtype::f16 ? 65504.0f : 0x1.fep127f;
  for (std::size_t first = 0; first < x.size(); first += reference::at(run)) {
    const std::size_t last = std::min(first + reference::at(run), x.size());
    const u32 kind = u32(random() % 10);
    const int exponent = static_cast<int>(random() % 280) - 150;
    const std::size_t place = first + random() % (last - first);
    for (std::size_t i = first; i < last; ++i) {
      if (kind == 0) x[i] = random() % 2 == 0 ? 0.0f : -0.0f;
      if (kind == 1) x[i] = -0.37f;
      if (kind == 2) x[i] = std::fmin(std::fmax(x[i] * 0.4f, -1.0f), 1.0f) * largest;
      if (kind == 3 || kind == 4)
        x[i] = std::ldexp(x[i], type == dtype::f16 ? exponent / 9 : exponent);
      if (kind == 5) x[i] *= 0x1p-127f;
    }
    if (kind == 6) x[place] = nan;
    if (kind == 7) x[place] = random() % 2 == 0 ? infinity : -infinity;
    if (kind == 8) x[place] = 1e4f;
  }
  return reference::from_floats(x, type);
}

/// What unpack and unpack_multiply make of a blob.
void expect_scaled_values(backend& engine, const scaled_problem& p, const std::vector<u8>& blob,
                          const codebook& book, misalignment where) {
  const plan made = make_scaled_plan(p);
  const auto v = reference_scaled_values(p, blob, book);
  for (const dtype type : all_types) {
    SCOPED_TRACE(name(type));
    EXPECT_EQ(unpack(engine, made, blob, book, type, where), saturated(v, type));
    const auto g = awkward_elements(v.size(), type, 5);
    const auto product = map_elements(
        g, type, [&](float value, std::size_t i) { return v[i] == 0 ? 0.0f : value * v[i]; });
    EXPECT_EQ(unpack_multiply(engine, made, blob, book, g, type, where), product);
  }
}

void expect_scaled(const scaled_problem& p, const codebook& book, dtype type, random_key key,
                   const std::vector<float>& scales = {}) {
  const plan made = make_scaled_plan(p);
  const auto x = scaled_runs(p.num_elements, p.group, type, u32(p.num_elements + p.group));
  const auto blob = reference_scaled(p, reference::to_floats(x, type), book, key, scales);
  for (const auto& engine : backends()) {
    SCOPED_TRACE(std::string(engine->name()) + " " + name(type) + " n " +
                 std::to_string(p.num_elements) + " group " + std::to_string(p.group) + " meta " +
                 name(p.meta) + " levels " + std::to_string(book.num_levels));
    const misalignment where{p.num_elements % 2 == 0 ? 0 : std::size_t(size_bytes(type))};
    EXPECT_EQ(scales.empty() ? pack(*engine, made, x, type, book, key, where)
                             : pack_with_scales(*engine, made, x, type, book, scales, key, where),
              blob);
    if (key.offset % 3 == 0) expect_scaled_values(*engine, p, blob, book, {});
  }
}

/// Problems of all groups, metadata, types and sizes, in turn.
void expect_in_turn(const codebook& book, u64 turn, int bits,
                    const std::vector<float>& scale = {}) {
  for (const dtype type : all_types) {
    ++turn;
    const int group = 32 << turn % 6;
    const dtype meta = turn / 3 % 2 == 0 ? dtype::bf16 : dtype::f32;
    expect_scaled({bits, group, meta, scaled_sizes[turn % 8]}, book, type, {turn << 33, turn},
                  scale);
  }
}

TEST(Scaled, OwnLevelsAsReference) {
  u64 turn = 0;
  for (const int count : {2, 3, 4, 5, 8, 16, 17, 33, 64, 65, 129, 256})
    for (const rounding mode : {rounding::nearest, rounding::stochastic}) {
      codebook book = uneven_codebook(count, mode);
      book.of_magnitudes = turn % 3 == 2;
      expect_in_turn(book, 7 * turn++, book.bits());
    }
}

TEST(Scaled, FormatsAsReference) {
  u64 turn = 0;
  for (const codebook& book : {nf4_codebook(), e2m1_codebook(), e4m3_codebook(), e5m2_codebook(),
                               *logarithmic_codebook(3, 0.25f)}) {
    expect_in_turn(book, 5 * turn++, book.bits());
    expect_in_turn(stochastic_codebook(book.level, book.num_levels), 5 * turn++, book.bits());
  }
  expect_in_turn(nf4_codebook(), 3, 7);  // more bits than the levels need
}

TEST(Scaled, EveryGroupAndMetadata) {
  for (int group = 32; group <= 1024; group *= 2)
    for (const dtype meta : {dtype::bf16, dtype::f32})
      for (const dtype type : all_types)
        expect_scaled({4, group, meta, 3000}, nf4_codebook(), type, {1, 2});
}

// Levels so large or so small that scales leave what f32 can hold, and negative ones alone.
TEST(Scaled, UnusualLevels) {
  const float large[] = {-3e38f, -1.0f, 0.0f, 1.0f, 2.9e38f};
  const float small[] = {-1e-40f, 0.0f, 1e-45f};
  const float negative[] = {-3.0f, -2.0f, -1.5f, -0.25f};
  u64 turn = 0;
  for (const codebook& book : {nearest_codebook(large, 5), nearest_codebook(small, 3),
                               nearest_codebook(negative, 4), stochastic_codebook(negative, 4)})
    for (int k = 0; k < 4; ++k) expect_in_turn(book, 4 * turn++, book.bits());
  codebook endless = uneven_codebook(3, rounding::nearest);  // an interval that is empty
  endless.threshold[0] = -infinity;
  endless.threshold[1] = infinity;
  expect_in_turn(endless, turn, 2);
}

TEST(Scaled, GivenScalesAsReference) {
  u64 turn = 0;
  for (const codebook& book :
       {nf4_codebook(), e4m3_codebook(), uneven_codebook(8, rounding::stochastic)}) {
    for (const float scale : {0.0f, -0.0f, 1e-45f, 0x1.fffffcp-127f, 0x1p-126f, 1e-30f, 0.013f,
                              1.0f, 77.7f, 3e30f, 3.4e38f})
      expect_in_turn(book, turn++, 8, {scale});
    for (const int group : {32, 128, 1024})
      for (const dtype type : all_types) {
        const scaled_problem p{8, group, turn++ % 2 == 0 ? dtype::bf16 : dtype::f32, 4000};
        std::vector<float> scales;
        for (i64 g = 0; g * group < 4000; ++g)
          scales.push_back(std::ldexp(1.1f, int(g * 13 % 40) - 20));
        expect_scaled(p, book, type, {turn, 3}, scales);
      }
  }
}

// On the device nobody can look at scales beforehand. On the host they are refused.
TEST(Scaled, ScalesThatAreNonePoisonOnTheDevice) {
  const scaled_problem p{4, 64, dtype::bf16, 1500};
  const auto x = reference::from_floats(normal_floats(1500, 3), dtype::f32);
  std::vector<float> scales(24, 0.5f);
  scales[1] = nan;
  scales[3] = infinity;
  scales[5] = -infinity;
  scales[8] = -1e-45f;
  scales[22] = -2.0f;
  const auto expected = reference_scaled(p, floats_of(x), nf4_codebook(), {}, scales);
  for (const auto& engine : backends()) {
    if (std::string(engine->name()) != "device") continue;
    EXPECT_EQ(pack_with_scales(*engine, make_scaled_plan(p), x, dtype::f32, nf4_codebook(), scales),
              expected);
  }
}

// Any codes and any scales: NaN of all payloads, infinities, negative and subnormal ones.
TEST(Scaled, HostileBlobs) {
  const u16 special[] = {0x7f80, 0xff80, 0x7fc1, 0xffff, 0x8000, 0x0000, 0x7f7f, 0x0001, 0xbf80};
  for (u32 seed = 0; seed < 8; ++seed) {
    const scaled_problem p{int(seed % 4) + 4, 32 << seed % 6,
                           seed % 2 == 0 ? dtype::bf16 : dtype::f32, 2100};
    auto blob = random_bytes(std::size_t(make_scaled_plan(p).size_bytes()), seed);
    for (std::size_t i = blob.size() / 2 * 2 - 300; i + 1 < blob.size(); i += 2) {
      if (i < reference::at(3 * 128 * p.bits) || blob[i] % 2 == 0) continue;
      const u16 pattern = special[blob[i + 1] % 9];
      blob[i] = u8(pattern & 0xff);
      blob[i + 1] = u8(pattern >> 8);
    }
    for (const auto& engine : backends()) {
      SCOPED_TRACE(std::string(engine->name()) + " seed " + std::to_string(seed));
      expect_scaled_values(*engine, p, blob, e2m1_codebook(), {std::size_t(4 * (seed % 2))});
    }
  }
}

// Written out by hand.
TEST(Scaled, BlobByHand) {
  const float levels[] = {-1.0f, 0.0f, 1.0f, 2.0f};
  const codebook book = nearest_codebook(levels, 4);
  std::vector<float> x(64, 0.0f);
  x[0] = 3.0f;   // the scale is 1.5: code 3
  x[1] = 0.75f;  // half-way between 0 and 1.5: code 2
  x[2] = 0.74f;  // code 1
  x[3] = -2.5f;  // beyond the first level: code 0
  x[32] = nan;   // the second group is poisoned
  for (const dtype meta : {dtype::bf16, dtype::f32}) {
    const plan p = *plan::make_scaled(2, 32, meta, {64});
    std::vector<u8> expected(256 + 16);
    for (int i = 0; i < 32; ++i) expected[reference::at(i)] = 1;
    expected[0] = 3;
    expected[1] = 2;
    expected[3] = 0;
    const std::vector<u8> metadata =
        meta == dtype::bf16 ? std::vector<u8>{0xc0, 0x3f, 0xff, 0x7f}
                            : std::vector<u8>{0, 0, 0xc0, 0x3f, 0xff, 0xff, 0xff, 0x7f};
    std::copy(metadata.begin(), metadata.end(), expected.begin() + 256);
    for (const auto& engine : backends()) {
      EXPECT_EQ(pack(*engine, p, bytes_of(x), dtype::f32, book), expected);
      const auto y = floats_of(unpack(*engine, p, expected, book, dtype::f32));
      EXPECT_EQ(std::vector<float>(y.begin(), y.begin() + 5),
                (std::vector<float>{3.0f, 1.5f, 0.0f, -1.5f, 0.0f}));
      for (std::size_t i = 32; i < 64; ++i) EXPECT_TRUE(std::isnan(y[i]));
    }
  }
}

// Whatever the number of threads, a scale in bf16 is rounded up: nothing lies beyond the levels.
TEST(Scaled, LargestMagnitudeIsWithinTheLevels) {
  const scaled_problem p{4, 32, dtype::bf16, 3200};
  const auto x = normal_floats(3200, 8);
  for (const auto& engine : backends()) {
    const auto blob = pack(*engine, make_scaled_plan(p), bytes_of(x), dtype::f32, nf4_codebook());
    const auto scales = scales_of(p, blob);
    for (std::size_t g = 0; g < 100; ++g) {
      float largest = 0;
      for (std::size_t i = 32 * g; i < 32 * g + 32; ++i)
        largest = std::fmax(largest, std::fabs(x[i]));
      EXPECT_GE(scales[g], largest);
      EXPECT_LT(scales[g], largest * 1.008f);
    }
  }
}

}  // namespace
}  // namespace furl::test
