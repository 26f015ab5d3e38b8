// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Public bug reports of libraries like this one, kinds A and B: degenerate ranges, NaN and
// infinity. Each test is named after its number in the list of them; the report is cited above it.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "bug_reports/codecs.hpp"
#include "support/inputs.hpp"
#include "support/run.hpp"

namespace furl::test {
namespace {

bool all_nan(const std::vector<float>& y, std::size_t first, std::size_t last) {
  return std::all_of(y.begin() + static_cast<std::ptrdiff_t>(first),
                     y.begin() + static_cast<std::ptrdiff_t>(last),
                     [](float v) { return std::isnan(v); });
}

// microsoft/BitNet#123: all zeros came out as NaN.
TEST(BugReports, Case01_AllZero) {
  for (const auto& engine : backends())
    for (int bits = 1; bits <= 8; ++bits)
      for (const dtype type : all_types)
        for (const float zero : {0.0f, -0.0f})
          for (const u64 seed : {0u, 1u}) {
            const plan p = make_plan(with(bits, 256, dtype::bf16), {512});
            const auto x = reference::from_floats(std::vector<float>(512, zero), type);
            const auto blob = compress(*engine, p, x, type, {seed, 0});
            EXPECT_EQ(blob, std::vector<u8>(blob.size(), 0));
            EXPECT_EQ(decompress(*engine, p, blob, type), std::vector<u8>(x.size(), 0));
            const auto base = reference::from_floats(normal_floats(512, 1), type);
            EXPECT_EQ(decompress_add(*engine, p, blob, type, base), base);
          }
}

// THUDM/slime#2256: zero tiles became NaN, and nearly zero ones saturated.
TEST(BugReports, Case02_ZeroGroupsAmongOthers) {
  std::vector<float> x(512, 0.0f);
  for (std::size_t i = 0; i < 128; ++i) {
    x[128 + i] = static_cast<float>(i) * 1e-30f;
    x[256 + i] = static_cast<float>(i);
  }
  auto alone = x;
  std::fill(alone.begin(), alone.begin() + 256, 5.0f);
  std::fill(alone.begin() + 384, alone.end(), -5.0f);
  const plan p = make_plan(with(4, 128), {512});
  for (const auto& engine : backends()) {
    const auto y = round_trip(*engine, p, x, {7, 0});
    const auto y_alone = round_trip(*engine, p, alone, {7, 0});
    for (std::size_t i = 0; i < 128; ++i) {
      EXPECT_EQ(y[i], 0.0f);
      EXPECT_LE(std::fabs(y[128 + i] - x[128 + i]), 127e-30f / 15);
      EXPECT_LE(std::fabs(y[256 + i] - x[256 + i]), 127.0f / 15);
      EXPECT_EQ(y[256 + i], y_alone[256 + i]) << "a neighbour changed the group";
      EXPECT_EQ(y[384 + i], 0.0f);
    }
  }
}

// NVIDIA/TransformerEngine#786: the reciprocal of a tiny range is infinite.
TEST(BugReports, Case03_TinyRanges) {
  for (const auto& engine : backends()) {
    const auto check = [&](int bits, float unit, std::size_t count) {
      std::vector<float> x(count);
      for (std::size_t i = 0; i < count; ++i) x[i] = static_cast<float>(i) * unit;
      const plan p = make_plan(with(bits, 256), {i64(count)});
      const auto blob = compress(*engine, p, x, {1, 2});
      const auto y = decompress(*engine, p, blob);
      const float step = group_of(p, blob, 0).step;
      const auto levels = static_cast<float>((1 << bits) - 1);
      for (std::size_t i = 0; i < count; ++i) {
        EXPECT_GE(y[i], 0.0f);
        EXPECT_LE(y[i], std::nextafter(x.back(), infinity));
        EXPECT_LE(std::fabs(y[i] - x[i]), step == 0 ? levels * 0x1p-126f : step);
      }
    };
    check(8, 0x1p-149f, 256);     // the step is the smallest subnormal: flat
    check(4, 0x1p-149f, 2);       // the step underflows
    check(8, 7e-37f / 255, 256);  // 255 / range is infinite, the range is normal
    check(8, 0x1p-126f, 256);     // the smallest step that is coded
  }
}

// pytorch/pytorch#23838: ranges on one side of zero.
TEST(BugReports, Case04_OneSidedRanges) {
  for (const auto& engine : backends())
    for (int bits = 1; bits <= 8; ++bits) {
      const plan p = make_plan(with(bits, 64), {64});
      for (const auto& [lo, hi] : {std::pair{1.0f, 3.0f}, std::pair{-9.0f, -5.0f}}) {
        std::vector<float> x(64);
        for (std::size_t i = 0; i < 64; ++i) x[i] = lo + (hi - lo) * static_cast<float>(i) / 63.0f;
        const auto y = round_trip(*engine, p, x);
        const float place = std::nextafter(std::fabs(hi), 99.0f) - std::fabs(hi);
        EXPECT_EQ(y.front(), lo);
        EXPECT_LE(std::fabs(y.back() - x.back()), place);
      }
      for (const float constant : {-7.3f, 0.1f}) {
        const std::vector<float> x(64, constant);
        EXPECT_EQ(round_trip(*engine, p, x), x);
      }
    }
}

// NVIDIA/cccl#1388: the minimum of infinities was FLT_MAX. Here: poisoned, as documented.
TEST(BugReports, Case05_AllInfinite) {
  for (const auto& engine : backends())
    for (const dtype type : all_types)
      for (const float bad : {infinity, -infinity})
        for (const i64 n : {10, 33}) {
          const plan p = make_plan(with(2, 32), {n});
          const auto count = static_cast<std::size_t>(n);
          const auto x = reference::from_floats(std::vector<float>(count, bad), type);
          const auto blob = compress(*engine, p, x, type, {});
          EXPECT_TRUE(all_nan(decompress(*engine, p, blob), 0, count));
        }
}

// NVIDIA/raft#2226: a maximum of negative numbers began at the smallest positive one.
TEST(BugReports, Case06_AllNegative) {
  std::vector<float> x(17);
  for (std::size_t i = 0; i < 17; ++i) x[i] = -3.0f - 0.5f * static_cast<float>(i);
  const plan p = make_plan(with(1, 32), {17});
  for (const auto& engine : backends())
    for (const dtype type : all_types) {
      const auto blob = compress(*engine, p, reference::from_floats(x, type), type, {});
      EXPECT_EQ(group_of(p, blob, 0).lo, -11.0f);
      EXPECT_EQ(group_of(p, blob, 0).step, 8.0f);  // hi is -3
    }
}

// pytorch/pytorch#153340: codes of NaN differed between CPU and GPU.
TEST(BugReports, Case07_NanNextToAGrid) {
  for (const u32 pattern : {0x7fc00000u, 0x7fc01234u, 0xffc00000u, 0x7f800001u}) {
    std::vector<float> x(64);
    std::vector<u8> codes(64, 0);
    for (std::size_t i = 0; i < 64; ++i) x[i] = static_cast<float>(i % 4);
    for (std::size_t i = 32; i < 64; ++i) codes[i] = static_cast<u8>(i % 4);
    x[0] = float_of(pattern);
    const plan p = make_plan(with(2, 32), {64});
    for (const auto& engine : backends()) {
      auto blob = compress(*engine, p, x);
      const auto y = decompress(*engine, p, blob);
      EXPECT_TRUE(all_nan(y, 0, 32));
      for (std::size_t i = 32; i < 64; ++i) EXPECT_EQ(y[i], x[i]);
      blob.resize(256);
      EXPECT_EQ(blob, reference::pack(2, codes));
    }
  }
}

// NVIDIA/cudf#19375: with NaNs about, the second lowest value was found.
TEST(BugReports, Case08_MinimumAmongNans) {
  std::vector<float> x(10000, 0.0f);
  x[100] = x[200] = x[300] = std::nanf("");
  x[44] = -1.0f;
  x[705] = -0.5f;
  for (const auto& engine : backends()) {
    for (const int group : {32, 64, 128, 256, 512, 1024}) {
      const plan p = make_plan(with(2, group), {10000});
      const auto blob = compress(*engine, p, x);
      for (i64 g = 0; g < p.num_groups(); ++g) {
        const auto has = [&, size = group](i64 i) { return i / size == g; };
        const float lo = group_of(p, blob, g).lo;
        if (has(100) || has(200) || has(300)) {
          EXPECT_TRUE(std::isnan(lo)) << group << " " << g;
        } else {
          EXPECT_EQ(lo, has(44) ? -1.0f : has(705) ? -0.5f : 0.0f) << group << " " << g;
        }
      }
    }
  }
}

// pytorch/pytorch#106780: +infinity got the lowest code.
TEST(BugReports, Case09_InfinitiesOfBothSigns) {
  const std::vector<float> x{1.0f, infinity, 26.0f, -infinity, 0, 0, 0, 0};
  const plan p = make_plan(with(8, 32), {8});
  for (const auto& engine : backends()) EXPECT_TRUE(all_nan(round_trip(*engine, p, x), 0, 8));
}

}  // namespace
}  // namespace furl::test
