// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Public bug reports, kinds F, G, H and J: arguments, alignment, aliasing, randomness. Named after
// their numbers, as in values_test.cpp. Strided inputs (28) cannot be expressed: a view is a
// pointer and a count.

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

#include "bug_reports/codecs.hpp"
#include "furl/detail/quantize.hpp"
#include "support/inputs.hpp"
#include "support/run.hpp"

namespace furl::test {
namespace {

// TransformerEngine#2848: a tensor without elements.
TEST(BugReports, Case22_Empty) {
  for (const auto& engine : backends())
    for (const extents& shape : {extents{0}, extents{0, 8}, extents{8, 0}}) {
      const plan p = make_plan({}, shape);
      EXPECT_EQ(p.size_bytes(), 0u);
      EXPECT_EQ(p.shape(), shape);
      EXPECT_TRUE(engine->compress(p, {}, {}, {}));
      EXPECT_TRUE(engine->decompress(p, {}, {}));
      EXPECT_TRUE(engine->decompress_add(p, {}, {}));
    }
}

// bitsandbytes#1540: fp16 was read as fp32. Types without a conversion do not compile: View tests.
TEST(BugReports, Case23_TypesAreNotReinterpreted) {
  for (const auto& engine : backends())
    for (const dtype type : all_types) {
      const plan p = make_plan({}, {5, 10});
      const auto ones = reference::from_floats(std::vector<float>(50, 1.0f), type);
      EXPECT_EQ(decompress(*engine, p, compress(*engine, p, ones, type, {}), type), ones);
    }
}

// actnn#10: a hidden limit of the kernel. All limits are the plan's, and named.
TEST(BugReports, Case24_LimitsAreNamed) {
  for (const i64 window : {0, 1, 3, 16, 17, 64, 65, 1024, 101}) {
    codec c = with(2, 256);
    c.window = {window};
    const auto made = plan::make(c, {100});
    EXPECT_EQ(bool(made), window >= 1 && window <= 64) << window;
    if (!made) {
      EXPECT_EQ(to_string(made.status()),
                "codec.window is " + std::to_string(window) + ": widths must be 1..64");
    }
  }
  for (const int bits : {-1, 0, 9})
    EXPECT_EQ(to_string(plan::make(with(bits, 256), {100}).status()),
              "codec.bits is " + std::to_string(bits) + ": must be 1..8");
  for (const int group : {-1, 0, 48, 100000})
    EXPECT_EQ(
        to_string(plan::make(with(2, group), {100}).status()),
        "codec.group is " + std::to_string(group) + ": must be 32, 64, 128, 256, 512 or 1024");
}

// tvm#8540: a slice that begins at an odd element.
TEST(BugReports, Case25_SlicesFromAnyElement) {
  for (const auto& engine : backends())
    for (const dtype type : all_types)
      for (const i64 n : {1, 2, 3, 5, 8, 13, 16, 17, 255, 256, 257, 1023, 1024, 1025}) {
        const plan p = make_plan(with(3, 32), {n});
        const auto x = reference::from_floats(normal_floats(static_cast<std::size_t>(n), 1), type);
        const auto blob = compress(*engine, p, x, type, {1, 2});
        const auto y = decompress(*engine, p, blob, type);
        const auto sum = decompress_add(*engine, p, blob, type, x);
        for (const int elements : {1, 3, 7}) {
          const misalignment where{static_cast<std::size_t>(elements * size_bytes(type))};
          EXPECT_EQ(compress(*engine, p, x, type, {1, 2}, {}, where), blob);
          EXPECT_EQ(decompress(*engine, p, blob, type, {}, where), y);
          EXPECT_EQ(decompress_add(*engine, p, blob, type, x, {}, where), sum);
        }
      }
}

// pvfmm#22: parts of a blob at odd addresses.
TEST(BugReports, Case26_PartsAreAligned) {
  for (const auto& [n, bits, group] :
       {std::tuple{9, 3, 32}, {13, 5, 32}, {1, 1, 64}, {2305, 7, 256}})
    for (const dtype meta : {dtype::f32, dtype::bf16})
      for (const i64 window : {1, 3, 64}) {
        codec c = with(bits, group);
        c.meta = meta;
        c.window = {window};
        const plan p = make_plan(c, {n});
        EXPECT_EQ(p.meta_offset() % 16, 0u);
        EXPECT_EQ(p.lfc_offset() % 16, 0u);
        EXPECT_EQ(p.size_bytes() % 16, 0u);
        EXPECT_LE(p.lfc_offset() + u64(p.num_cells() * size_bytes(meta)), p.size_bytes());
        EXPECT_LT(p.size_bytes(), p.lfc_offset() + u64(p.num_cells() * size_bytes(meta)) + 16);
      }
}

// nvcomp#114: the reader needed more alignment than the writer gave.
TEST(BugReports, Case27_BlobsThatWereMoved) {
  const plan p = make_plan(with(3, 64), {1000});
  const auto x = normal_floats(1000, 1);
  for (const auto& engine : backends()) {
    const auto blob = compress(*engine, p, x);
    const auto expected = decompress(*engine, p, blob);
    for (const int shift : {1, 2, 4, 8, 16, 48}) {
      const guarded_buffer moved(blob, static_cast<std::size_t>(shift));
      std::vector<float> y(1000);
      const status s = engine->decompress(p, {moved.data(), moved.size()}, y);
      const bool is_device = std::string(engine->name()) == "device";
      EXPECT_EQ(s.code, is_device && shift % 16 != 0 ? error::misaligned : error::none);
      if (s) {
        EXPECT_EQ(y, expected);
      } else {
        EXPECT_EQ(to_string(s), "blob: must be aligned to 16 bytes");
      }
    }
  }
}

// vortex#6567: in place, the last vector was added twice.
TEST(BugReports, Case30_AddInPlace) {
  const plan p = make_plan({}, {1003});
  for (const auto& engine : backends()) {
    const auto blob = compress(*engine, p, std::vector<float>(1003, 2.0f));
    for (const dtype type : all_types)
      EXPECT_EQ(decompress_add(*engine, p, blob, type,
                               reference::from_floats(std::vector<float>(1003, 1.0f), type)),
                reference::from_floats(std::vector<float>(1003, 3.0f), type));
  }
}

// cupy#4894: a uniform number of exactly 1. Here u is 0..255 and the largest element stays put.
TEST(BugReports, Case37_LargestDraw) {
  for (int bits = 1; bits <= 8; ++bits)
    for (const float range : {1.0f, 0.069f, 0.017f, 3e-30f, 1e30f}) {
      const group_params g = make_group(0.0f, range, bits, dtype::f32);
      const u32 top = fixed_point(range, g.lo, g.inverse);
      for (u32 u = 0; u < 256; ++u) {
        ASSERT_EQ(round_code(top, u), low_bits(bits)) << range << " " << u;
        ASSERT_EQ(round_code(fixed_point(0.0f, g.lo, g.inverse), u), 0u);
      }
      EXPECT_LE(std::fabs(dequantize(low_bits(bits), g.step, g.lo) - range),
                std::nextafter(range, 2 * range) - range);
    }
}

/// Share of elements that were rounded up between the codes of 0 and 1, less often than not
/// decoded.
double mean_of(backend& engine, float m, i64 n, float sign) {
  const plan p = make_plan(with(2, 1024), {n});
  std::vector<float> x(static_cast<std::size_t>(n), sign * m);
  for (std::size_t g = 0; g < x.size(); g += 1024) {
    x[g] = 0;
    x[g + 1] = sign;
  }
  const auto y = round_trip(engine, p, x, {3, 4});
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += i % 1024 < 2 ? 0 : double(y[i]);
  return sign * sum / (static_cast<double>(n) * 1022 / 1024);
}

// gfloat#36: biased rounding. Five standard errors of n draws, steps of 1/3.
TEST(BugReports, Case38_NoBias) {
  const i64 n = 1 << 17;
  const double five_errors = 5 * (1.0 / 3) * 0.5 / std::sqrt(double(n));
  for (const auto& engine : backends())
    for (const float sign : {1.0f, -1.0f}) {
      EXPECT_NEAR(mean_of(*engine, 0.5f, n, sign), 0.5, five_errors);
      // One 256th of a step above the grid: up once in 256 draws. A 4096th is below the resolution.
      const double rare = (mean_of(*engine, (1 + 0x1p-8f) / 3, n, sign) - 1.0 / 3) * 3;
      EXPECT_NEAR(rare, 1.0 / 256, 5 * std::sqrt(1.0 / 256 / double(n)));
      EXPECT_NEAR(mean_of(*engine, (1 + 0x1p-12f) / 3, n, sign), 1.0 / 3, 1e-6);
    }
}

// composable_kernel#574: the same numbers for every call or element.
TEST(BugReports, Case39_DrawsDoNotRepeat) {
  const i64 n = 1 << 17;
  codec c = with(1, 1024);
  const plan p = make_plan(c, {n});
  std::vector<float> x(static_cast<std::size_t>(n), 0.5f);
  for (std::size_t g = 0; g < x.size(); g += 1024) {
    x[g] = 0;
    x[g + 1] = 1;
  }
  for (const auto& engine : backends()) {
    const auto first = round_trip(*engine, p, x, {1, 0});
    EXPECT_EQ(round_trip(*engine, p, x, {1, 0}), first);
    for (const random_key key : {random_key{1, 1}, random_key{2, 0}}) {
      const auto other = round_trip(*engine, p, x, key);
      double equal = 0;
      for (std::size_t i = 0; i < x.size(); ++i) equal += first[i] == other[i] ? 1 : 0;
      EXPECT_NEAR(equal / double(n), 0.5, 5 * 0.5 / std::sqrt(double(n)) + 1.0 / 1024);
    }
    std::set<u32> runs;
    std::size_t count = 0;
    for (std::size_t i = 0; i < x.size(); i += 32) {
      if (i % 1024 == 0) continue;  // holds the ends of the range
      u32 pattern = 0;
      for (std::size_t k = 0; k < 32; ++k) pattern |= (first[i + k] == 1.0f ? 1u : 0u) << k;
      runs.insert(pattern);
      ++count;
    }
    EXPECT_EQ(runs.size(), count);  // 0.002 equal pairs expected
  }
}

}  // namespace
}  // namespace furl::test
