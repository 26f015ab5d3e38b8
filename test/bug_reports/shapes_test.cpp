// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Public bug reports, kinds C and D: tails and windows, packing. Named after their numbers, as in
// values_test.cpp. Those of kind E, large counts, are in host/bug_reports_test.cpp.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "bug_reports/codecs.hpp"
#include "support/inputs.hpp"
#include "support/run.hpp"

namespace furl::test {
namespace {

std::vector<float> lfc_of(const plan& p, const std::vector<u8>& blob) {
  const auto begin = blob.begin() + static_cast<std::ptrdiff_t>(p.lfc_offset());
  return floats_of({begin, begin + 4 * p.num_cells()});
}

void expect_within_one_step(const plan& p, const std::vector<u8>& blob, const std::vector<float>& x,
                            const std::vector<float>& y) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float step = group_of(p, blob, i64(i) / p.codec().group).step;
    ASSERT_LE(std::fabs(y[i] - x[i]), step + std::fabs(y[i]) * 0x1p-23f) << i;
  }
}

// bitsandbytes#1884: the last block read what lay behind the tensor.
TEST(BugReports, Case10_WhatFollowsTheTensor) {
  const auto x = normal_floats(785, 1234);
  const plan p = make_plan(with(2, 256), {785});
  for (const auto& engine : backends()) {
    const auto expected = compress(*engine, p, x, {1, 2});
    const auto [lo, hi] = std::minmax_element(x.begin() + 768, x.end());
    EXPECT_EQ(group_of(p, expected, 3).lo, *lo);
    EXPECT_EQ(group_of(p, expected, 3).step, (*hi - *lo) / 3);
    for (const float behind : {1e30f, std::nanf(""), -1e30f}) {
      auto longer = x;
      longer.resize(1024, behind);
      guarded_buffer blob(p.size_bytes());
      ASSERT_TRUE(
          engine->compress(p, {longer.data(), i64(785)}, {blob.data(), blob.size()}, {1, 2}));
      EXPECT_EQ(blob.bytes(), expected);
    }
  }
}

// DeepSpeed#3864: 2305 is no multiple of the vector width.
TEST(BugReports, Case11_OddCount) {
  for (int bits = 1; bits <= 8; ++bits) {
    const plan p = make_plan(with(bits, 256), {2305});
    EXPECT_EQ(p.meta_offset(), u64(3 * 128 * bits));
    const auto half = reference::from_floats(normal_floats(2305, 3), dtype::f16);
    const auto x = reference::to_floats(half, dtype::f16);
    for (const auto& engine : backends()) {
      const auto blob = compress(*engine, p, half, dtype::f16, {3, 0});
      expect_within_one_step(p, blob, x, decompress(*engine, p, blob));
    }
  }
}

// coremltools#2844: means of cells at the edge were divided by the full window.
TEST(BugReports, Case12_MeansAtTheEdge) {
  codec line = with(2, 32);
  line.window = {8};
  codec plane = with(2, 32);
  plane.window = {2, 2};
  std::vector<float> x(49);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  for (const auto& engine : backends()) {
    const plan p = make_plan(line, {17});
    EXPECT_EQ(lfc_of(p, compress(*engine, p, {x.begin(), x.begin() + 17})),
              (std::vector<float>{3.5f, 11.5f, 16.0f}));
    const plan q = make_plan(plane, {7, 7});
    const auto means = lfc_of(q, compress(*engine, q, x));
    ASSERT_EQ(means.size(), 16u);
    const std::vector<float> first{4, 6, 8, 9.5f};
    const std::vector<float> last{42.5f, 44.5f, 46.5f, 48};
    EXPECT_EQ(std::vector<float>(means.begin(), means.begin() + 4), first);
    EXPECT_EQ(std::vector<float>(means.begin() + 12, means.end()), last);
  }
}

// nvcomp#100: inputs smaller than one chunk were read out of bounds.
TEST(BugReports, Case13_SmallerThanOneChunk) {
  for (const i64 n : {1, 2, 7, 31, 33, 255}) {
    codec c = with(3, 256);
    c.window = {8};
    const auto x = normal_floats(static_cast<std::size_t>(n), 5);
    const plan p = make_plan(c, {n});
    for (const auto& engine : backends()) {
      const auto blob = compress(*engine, p, x, {1, 2});
      const auto y = decompress(*engine, p, blob);
      const float step = group_of(p, blob, 0).step;
      for (std::size_t i = 0; i < x.size(); ++i)
        EXPECT_LE(std::fabs(y[i] - x[i]), step + 1e-6f) << n << " " << i;
    }
  }
}

// FBGEMM#5673: the small last batch was not divisible.
TEST(BugReports, Case14_ShapesOneAfterTheOther) {
  const codec c = with(4, 256);
  for (const auto& engine : backends()) {
    std::vector<std::vector<u8>> blobs;
    for (const extents& shape :
         {extents{32, 1024}, extents{3, 250}, extents{1, 1}, extents{32, 1024}}) {
      const plan p = make_plan(c, shape);
      const auto x = normal_floats(static_cast<std::size_t>(p.num_elements()), 7);
      blobs.push_back(compress(*engine, p, x, {1, 2}));
      expect_within_one_step(p, blobs.back(), x, decompress(*engine, p, blobs.back()));
    }
    EXPECT_EQ(blobs[3], blobs[0]);
  }
}

// bitsandbytes#565: errors jumped when the group grew. A larger group has a wider range, no more.
TEST(BugReports, Case15_ErrorGrowsSmoothlyWithTheGroup) {
  const auto x = normal_floats(64 * 1024, 0);
  for (const auto& engine : backends()) {
    double previous = 0;
    for (const int group : {64, 128, 256, 512, 1024}) {
      const plan p = make_plan(with(4, group), {64, 1024});
      const auto blob = compress(*engine, p, x, {1, 2});
      const auto y = decompress(*engine, p, blob);
      expect_within_one_step(p, blob, x, y);
      double sum = 0;
      for (std::size_t i = 0; i < x.size(); ++i) sum += std::fabs(y[i] - x[i]);
      if (previous > 0) {
        EXPECT_LT(sum / previous, 1.2) << group;
      }
      EXPECT_GT(sum, previous);
      previous = sum;
    }
  }
}

// DirectXTex#67: a 3-bit field was one bit off. Here a column is the bit string, row 0 lowest.
TEST(BugReports, Case16_ThreeBitFields) {
  std::vector<float> up(1024), alternating(1024);
  for (std::size_t i = 0; i < 1024; ++i) {
    up[i] = static_cast<float>(i / 128);
    alternating[i] = i / 128 % 2 == 0 ? 7.0f : 0.0f;
  }
  const plan p = make_plan(with(3, 1024), {1024});
  for (const auto& engine : backends()) {
    const auto first = compress(*engine, p, up, {5, 6});
    const auto second = compress(*engine, p, alternating, {5, 6});
    for (std::size_t column = 0; column < 128; ++column) {
      EXPECT_EQ(first[column], 0x88);
      EXPECT_EQ(first[128 + column], 0xC6);
      EXPECT_EQ(first[256 + column], 0xFA);
      EXPECT_EQ(second[column], 0xC7);
      EXPECT_EQ(second[128 + column], 0x71);
      EXPECT_EQ(second[256 + column], 0x1C);
    }
    EXPECT_EQ(decompress(*engine, p, first), up);
    EXPECT_EQ(decompress(*engine, p, second), alternating);
  }
}

// pytorch/ao#4816: unpack of pack had another shape.
TEST(BugReports, Case17_PackThenUnpack) {
  for (const auto& engine : backends())
    for (int bits = 1; bits <= 7; ++bits)
      for (const extents& shape : {extents{8, 16}, extents{2, 3, 5}}) {
        const plan p = *plan::make_codes(bits, shape);
        std::vector<u8> codes(static_cast<std::size_t>(p.num_elements()));
        for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<u8>(i % (1u << bits));
        EXPECT_EQ(p.shape(), shape);
        EXPECT_EQ(unpack(*engine, p, pack(*engine, p, codes)), codes);
      }
}

}  // namespace
}  // namespace furl::test
