// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// What codebooks with scales promise on average, and what their calls refuse.

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>

#include "support/inputs.hpp"
#include "support/scaled.hpp"

namespace furl::test {
namespace {

TEST(ScaledValues, StochasticIsRightOnAverage) {
  constexpr i64 n = 1 << 16;
  const codebook nf4 = nf4_codebook();
  const codebook book = stochastic_codebook(nf4.level, nf4.num_levels);
  const plan p = *plan::make_scaled(4, 64, dtype::bf16, {n});
  for (const float value : {-3.9f, -1.0f, 0.01f, 0.3f, 2.5f}) {
    std::vector<float> x(n, value);
    for (std::size_t i = 0; i < n; i += 64) x[i] = 4.0f;  // which makes all scales 4
    for (const auto& engine : backends()) {
      const auto blob = pack(*engine, p, bytes_of(x), dtype::f32, book, {3, 9});
      const auto y = floats_of(unpack(*engine, p, blob, book, dtype::f32));
      double sum = 0;
      for (std::size_t i = 0; i < n; ++i) sum += i % 64 == 0 ? 0.0 : double(y[i]);
      // The widest gap is 4 * 0.304: half of it is the most that one deviates. Of 64512 the mean
      // deviates by 5 / 254 of that, and by 1 / 512 of the gap for the 8 bits.
      EXPECT_NEAR(sum / double(n / 64 * 63), double(value), 1.216 * (2.5 / 254 + 1.0 / 512));
    }
  }
}

double normal_density(double x) {
  return std::exp(-0.5 * x * x) / std::sqrt(2 * std::acos(-1.0));
}

/// The mean squared error of levels in groups of `group` normal numbers, each over the largest
/// magnitude: over the density of that, of what lies within and is not the largest.
double expected_error(const codebook& book, int group) {
  constexpr double step = 0.004;
  double error = 0;
  for (double m = step / 2; m < 6.5; m += step) {
    double within = 0;
    for (double x = -m + step / 2; x < m; x += step) {
      double least = 1e9;
      for (int i = 0; i < book.num_levels; ++i)
        least = std::fmin(least, std::fabs(x - m * double(book.level[i])));
      within += normal_density(x) * least * least * step;
    }
    // The others are within m, each with the probability erf(m / sqrt(2)).
    const double below = std::erf(m / std::sqrt(2.0));
    const double density = group * 2 * normal_density(m) * std::pow(below, group - 1);
    error += density * step * (group - 1) / group * within / below;
  }
  return error;
}

TEST(ScaledValues, ErrorOfNormalNumbers) {
  constexpr i64 n = 1 << 18;
  std::mt19937 random(5);
  std::vector<float> x;
  while (i64(x.size()) < n) {  // Box and Muller
    const double radius = std::sqrt(-2 * std::log((double(random()) + 0.5) * 0x1p-32));
    const double angle = (double(random()) + 0.5) * 0x1p-31 * std::acos(-1.0);
    x.push_back(float(radius * std::cos(angle)));
    x.push_back(float(radius * std::sin(angle)));
  }
  for (const codebook& book : {nf4_codebook(), e2m1_codebook()}) {
    codebook unit = book;  // levels in units of the largest
    for (int i = 0; i < unit.num_levels; ++i) unit.level[i] /= book.level[book.num_levels - 1];
    const double expected = expected_error(unit, 64);
    const plan p = *plan::make_scaled(4, 64, dtype::f32, {n});
    for (const auto& engine : backends()) {
      const auto blob = pack(*engine, p, bytes_of(x), dtype::f32, book);
      const auto y = floats_of(unpack(*engine, p, blob, book, dtype::f32));
      double sum = 0;
      for (std::size_t i = 0; i < n; ++i) sum += std::pow(double(y[i]) - double(x[i]), 2);
      // The squares deviate by less than twice their mean: 5 such over 512 are 2 %.
      EXPECT_NEAR(sum / double(n) / expected, 1.0, 0.02) << engine->name() << " " << expected;
    }
  }
}

// Scales spare large groups nothing: 4 bits and a bf16 scale for 64 are 4.25 bits.
TEST(ScaledPlan, Sizes) {
  const plan p = *plan::make_scaled(4, 64, dtype::bf16, {64, 1024});
  EXPECT_EQ(p.kind(), plan_kind::scaled);
  EXPECT_EQ(p.bits_per_value(), 4.25);
  EXPECT_EQ(p.num_groups(), 1024);
  EXPECT_EQ(p.meta_offset(), 64u * 512);
  EXPECT_EQ(p.size_bytes(), 64u * 512 + 2048);
  const plan small = *plan::make_scaled(3, 256, dtype::f32, {1025});
  EXPECT_EQ(small.num_groups(), 5);
  EXPECT_EQ(small.meta_end(), small.meta_offset() + 20);
  EXPECT_EQ(small.size_bytes(), 2u * 384 + 32);
  EXPECT_EQ(small.lfc_offset(), small.size_bytes());
  EXPECT_FALSE(small.needs_key());
  EXPECT_EQ(plan::make_scaled(8, 32, dtype::f32, {0})->size_bytes(), 0u);
  EXPECT_NE(small, *plan::make_codes(3, {1025}));
}

TEST(ScaledPlan, Refused) {
  const auto expect = [](const result<plan>& made, const char* argument) {
    ASSERT_FALSE(made);
    EXPECT_EQ(made.status().code, error::out_of_range);
    EXPECT_STREQ(made.status().argument, argument);
  };
  for (const int bits : {-1, 0, 9}) expect(plan::make_scaled(bits, 64, dtype::bf16, {8}), "bits");
  for (const int group : {-64, 0, 16, 48, 2048})
    expect(plan::make_scaled(4, group, dtype::bf16, {8}), "group");
  for (const dtype meta : {dtype::f16, dtype(7)})
    expect(plan::make_scaled(4, 64, meta, {8}), "meta");
  expect(plan::make_scaled(4, 64, dtype::bf16, {-1}), "shape");
}

class ScaledArguments : public testing::Test {
 protected:
  static constexpr i64 n = 1100;
  const plan p = *plan::make_scaled(4, 256, dtype::bf16, {n});
  const codebook book = nf4_codebook();
  const std::vector<u8> content = random_bytes(16384, 4);

  /// Calls function(engine, y, blob), which must change nothing.
  template <class Function>
  void for_each_engine(const Function& function) {
    for (const auto& engine : backends()) {
      guarded_buffer memory(content);
      function(*engine, host::values{memory.data(), dtype::f32, n},
               host::bytes{memory.data() + 9600, 4096});
      EXPECT_EQ(memory.bytes(), content);
    }
  }
};

void expect_scaled_refused(const status& s, error code, const char* argument) {
  EXPECT_EQ(s.code, code) << to_string(s);
  EXPECT_STREQ(s.argument, argument) << to_string(s);
}

TEST_F(ScaledArguments, CodebookOfZeros) {
  codebook zeros;
  zeros.num_levels = 2;
  for_each_engine([&](backend& engine, const host::values& y, const host::bytes& blob) {
    const host::const_values x{y.data, y.type, n};
    const host::const_bytes packed{blob.data, blob.size_bytes};
    expect_scaled_refused(engine.pack(p, x, zeros, blob, {}), error::out_of_range, "book.level");
    expect_scaled_refused(engine.pack(p, x, zeros, std::vector<float>{1.0f}, blob, {}),
                          error::out_of_range, "book.level");
    expect_scaled_refused(engine.unpack(p, packed, zeros, y), error::out_of_range, "book.level");
    expect_scaled_refused(engine.unpack_multiply(p, packed, zeros, x, y), error::out_of_range,
                          "book.level");
  });
}

TEST_F(ScaledArguments, Scales) {
  for_each_engine([&](backend& engine, const host::values& y, const host::bytes& blob) {
    const host::const_values x{y.data, y.type, n};
    const plan codes = *plan::make_codes(4, {n});
    const std::vector<float> ones(6, 1.0f);
    const auto pack = [&](const plan& made, const float* scales, int count) {
      return engine.pack(made, x, book, host::span<const float>{scales, count}, blob, {});
    };
    expect_scaled_refused(pack(codes, ones.data(), 1), error::wrong_plan, "plan");
    for (const int count : {0, 2, 4, 6})
      expect_scaled_refused(pack(p, ones.data(), count), error::wrong_size, "scales");
    const float* const none = blob.size_bytes > 0 ? nullptr : ones.data();  // unknown to g++
    expect_scaled_refused(pack(p, none, 5), error::null_pointer, "scales");
    if (std::string(engine.name()) == "device") return;
    const auto* const misaligned = static_cast<const u8*>(y.data) + 4402;
    expect_scaled_refused(pack(p, reinterpret_cast<const float*>(misaligned), 5), error::misaligned,
                          "scales");
    expect_scaled_refused(pack(p, static_cast<const float*>(blob.data) + 10, 5), error::overlap,
                          "scales");
    for (const float wrong : {nan, infinity, -infinity, -1.0f, -1e-45f}) {
      std::vector<float> scales(5, 1.0f);
      scales[3] = wrong;
      const status s = pack(p, scales.data(), 5);
      expect_scaled_refused(s, error::out_of_range, "scales");
      EXPECT_EQ(s.value, 3);
    }
  });
}

// Calls that take other plans refuse these, and calls by a codebook those that have none.
TEST_F(ScaledArguments, PlansOfOtherKinds) {
  const plan one = *plan::make_scaled(1, 256, dtype::bf16, {n});
  const plan other = make_plan({}, {n});
  for_each_engine([&](backend& engine, const host::values& y, const host::bytes& blob) {
    const host::const_values x{y.data, y.type, n};
    const host::const_bytes packed{blob.data, blob.size_bytes};
    const host::bytes few{y.data, u64(n)};
    std::vector<double> squared(2);
    std::vector<quality> groups(5);
    quality total;
    for (const status& s :
         {engine.compress(p, x, blob, {}), engine.decompress(p, packed, y),
          engine.decompress_add(p, packed, y, {}, random_key{}), engine.pack(p, few, blob),
          engine.unpack(p, packed, few), engine.relu(one, x, y, blob),
          engine.dropout(one, x, 0.5, y, blob, {}), engine.squared_ranges(p, x, squared),
          engine.squared_ranges(p, packed, squared), engine.measure(p, x, packed, groups, &total),
          engine.pack(other, x, book, blob, {}), engine.unpack(other, packed, book, y),
          engine.unpack_multiply(other, packed, book, x, y)})
      expect_scaled_refused(s, error::wrong_plan, "plan");
  });
}

TEST_F(ScaledArguments, ArraysAndEmptyTensors) {
  for_each_engine([&](backend& engine, const host::values& y, const host::bytes& blob) {
    const host::const_values x{y.data, y.type, n};
    const std::vector<float> scale{1.0f};
    expect_scaled_refused(engine.pack(p, {y.data, y.type, n - 1}, book, scale, blob, {}),
                          error::wrong_size, "x");
    expect_scaled_refused(engine.pack(p, {nullptr, y.type, n}, book, scale, blob, {}),
                          error::null_pointer, "x");
    expect_scaled_refused(engine.pack(p, x, book, scale, {blob.data, p.size_bytes() - 1}, {}),
                          error::wrong_size, "blob");
    expect_scaled_refused(engine.pack(p, x, e4m3_codebook(), scale, blob, {}), error::out_of_range,
                          "book.num_levels");
    const plan empty = *plan::make_scaled(4, 256, dtype::bf16, {0, 5});
    EXPECT_TRUE(engine.pack(empty, host::const_values{nullptr, dtype::f32, 0}, book, {}, {}));
    EXPECT_TRUE(engine.pack(empty, {nullptr, dtype::f32, 0}, book, scale, {}, {}));
    EXPECT_TRUE(
        engine.pack(empty, {nullptr, dtype::f32, 0}, book, host::span<const float>{}, {}, {}));
    EXPECT_TRUE(engine.unpack(empty, host::const_bytes{}, book, {nullptr, dtype::f32, 0}));
  });
}

}  // namespace
}  // namespace furl::test
