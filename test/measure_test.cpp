// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// What a blob has kept of a tensor: sums over groups and over all.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "support/inputs.hpp"
#include "support/run.hpp"

namespace furl::test {
namespace {

struct measured {
  std::vector<quality> groups;
  quality total;
};

measured measure(backend& engine, const plan& p, const std::vector<u8>& x, dtype type,
                 const std::vector<u8>& blob, const std::vector<u8>& tile_bits = {},
                 misalignment where = {}) {
  const guarded_buffer elements(x, where.bytes);
  const guarded_buffer content(blob);
  const quality unset{-7, -7, -7};
  measured out{std::vector<quality>(static_cast<std::size_t>(p.num_groups()), unset), unset};
  const status s =
      engine.measure(p, {elements.data(), type, p.num_elements()}, {content.data(), content.size()},
                     out.groups, &out.total, tile_bits);
  EXPECT_TRUE(s) << to_string(s);
  return out;
}

// ---- The sums once more, by recursion ----------------------------------------------------------

using terms = std::vector<double>;

double sum_neighbours(const terms& t) {
  if (t.size() == 1) return t[0];
  terms sums;
  for (std::size_t i = 0; i < t.size(); i += 2)
    sums.push_back(t[i] + (i + 1 < t.size() ? t[i + 1] : 0.0));
  return sum_neighbours(sums);
}

double sum_halves(const terms& t) {
  if (t.size() == 1) return t[0];
  terms sums;
  for (std::size_t i = 0; i < t.size() / 2; ++i) sums.push_back(t[i] + t[i + t.size() / 2]);
  return sum_halves(sums);
}

double sum_group(terms t, std::size_t group) {
  t.resize(group, 0.0);
  terms of_32;
  for (std::size_t begin = 0; begin < group; begin += 32) {
    terms of_4;
    for (std::size_t i = begin; i < begin + 32; i += 4)
      of_4.push_back((t[i] + t[i + 1]) + (t[i + 2] + t[i + 3]));
    of_32.push_back(sum_halves(of_4));
  }
  return sum_neighbours(of_32);
}

measured as_reference(const reference::problem& p, const std::vector<u8>& x, dtype type,
                      const std::vector<u8>& blob) {
  const auto elements = reference::to_floats(x, type);
  const auto values = reference::values_of(p, blob);
  const auto group = static_cast<std::size_t>(p.codec.group);
  measured out{{}, {}};
  terms all[3];
  for (std::size_t begin = 0; begin < elements.size(); begin += group) {
    terms of_group[3];
    for (std::size_t i = begin; i < std::min(elements.size(), begin + group); ++i) {
      const volatile float difference = values[i] - elements[i];
      const double error = difference;
      of_group[0].push_back(error);
      of_group[1].push_back(error * error);
      of_group[2].push_back(static_cast<double>(elements[i]) * elements[i]);
    }
    for (int k = 0; k < 3; ++k) all[k].push_back(sum_group(of_group[k], group));
    out.groups.push_back({all[0].back(), all[1].back(), all[2].back()});
    EXPECT_EQ(out.groups.back().is_poisoned(), std::isnan(values[begin]));
  }
  if (!out.groups.empty())
    out.total = {sum_neighbours(all[0]), sum_neighbours(all[1]), sum_neighbours(all[2])};
  return out;
}

u64 pattern(double x) {
  u64 bits = 0;
  std::memcpy(&bits, &x, sizeof bits);
  return std::isnan(x) && bits == 0x7fffffffffffffff ? 1 : bits;
}

/// Bit for bit; a NaN of the library must be 7fffffffffffffff.
void expect_same(const quality& found, const quality& expected) {
  const double f[] = {found.sum_error, found.sum_squared_error, found.sum_squares};
  const double e[] = {expected.sum_error, expected.sum_squared_error, expected.sum_squares};
  for (int k = 0; k < 3; ++k)
    EXPECT_EQ(pattern(f[k]), std::isnan(e[k]) ? 1 : pattern(e[k])) << k << ": " << e[k];
}

void expect_same_quality(const reference::problem& p, const std::vector<u8>& x, dtype type,
                         misalignment where = {}) {
  const auto blob = reference::compress(p, x, type, {3, 4});
  const auto expected = as_reference(p, x, type, blob);
  for (const auto& engine : backends()) {
    SCOPED_TRACE(engine->name());
    const auto found = measure(*engine, make_plan(p), x, type, blob, p.widths, where);
    ASSERT_EQ(found.groups.size(), expected.groups.size());
    for (std::size_t g = 0; g < expected.groups.size(); ++g)
      expect_same(found.groups[g], expected.groups[g]);
    expect_same(found.total, expected.total);
  }
}

TEST(Measure, AsReference) {
  u32 seed = 0;
  for (const i64 n : {1, 31, 33, 1000, 1024, 1025, 5000})
    for (const int group : {32, 64, 128, 256, 512, 1024})
      for (const dtype type : all_types) {
        reference::problem p{{}, {n}, {}};
        p.codec.group = group;
        p.codec.bits = static_cast<int>(1 + ++seed % 8);
        if (seed % 3 == 0) p.codec.window = {1 + seed % 7};
        if (seed % 4 == 0)
          for (i64 t = 0; t < (n + 1023) / 1024; ++t)
            p.widths.push_back(static_cast<u8>(1 + (seed + t) % 8));
        SCOPED_TRACE(std::to_string(n) + " of " + name(type) + ", groups of " +
                     std::to_string(group));
        const auto x = normal_floats(static_cast<std::size_t>(n), seed);
        expect_same_quality(p, reference::from_floats(x, type), type, {seed % 2 * 4});
      }
}

TEST(Measure, ImagesWithMeans) {
  for (const extents& window : {extents{1, 1, 8, 8}, extents{1, 1, 5, 3}, extents{1, 2, 3, 1}}) {
    reference::problem p{{}, {2, 3, 20, 24}, {}};
    p.codec.window = window;
    expect_same_quality(p, bytes_of(normal_floats(2880, 3)), dtype::f32);
  }
}

TEST(Measure, MoreGroupsThanOneBlockAddsUp) {
  for (const i64 n : {32 * 1024, 32 * 1024 + 1, 32 * 3000 + 17}) {
    reference::problem p{{}, {n}, {}};
    p.codec.group = 32;
    expect_same_quality(p, bytes_of(normal_floats(static_cast<std::size_t>(n), 8)), dtype::f32);
  }
}

TEST(Measure, SpecialValues) {
  auto x = normal_floats(3000, 4);
  x[40] = std::numeric_limits<float>::quiet_NaN();
  x[1100] = std::numeric_limits<float>::infinity();
  x[1400] = 3e38f;  // squares beyond f32
  x[1401] = -3e38f;
  for (std::size_t i = 2048; i < 2304; ++i) x[i] *= 1e-42f;  // squares below it
  for (std::size_t i = 2304; i < 2560; ++i) x[i] = -0.0f;
  expect_same_quality({{}, {3000}, {}}, bytes_of(x), dtype::f32);
  x[1401] = 0;
  codec c;
  c.meta = dtype::f32;
  expect_same_quality({c, {3000}, {}}, bytes_of(x), dtype::f32);
}

TEST(BugReports, Case142_PoisonedGroupsAreKnown) {
  auto x = normal_floats(5000, 9);
  x[300] = -3e38f;  // finite, and a range that is not
  x[301] = 3e38f;
  x[2000] = std::numeric_limits<float>::quiet_NaN();
  x[4999] = std::numeric_limits<float>::infinity();
  for (const extents& window : {extents{}, extents{8}}) {
    codec c;
    c.window = window;
    const plan p = make_plan(c, {5000});
    for (const auto& engine : backends()) {
      const auto blob = compress(*engine, p, x, {5, 6});
      const measured found = measure(*engine, p, bytes_of(x), dtype::f32, blob);
      EXPECT_TRUE(found.total.is_poisoned());
      for (std::size_t group = 0; group < 20; ++group)
        EXPECT_EQ(found.groups[group].is_poisoned(), group == 1 || group == 7 || group == 19);
    }
  }
}

TEST(Measure, SaysWhatTheNamesSay) {
  const i64 n = 20000;
  auto x = normal_floats(n, 5);
  for (float& v : x) v += 3.0f;
  codec c;
  c.bits = 4;
  const plan p = make_plan(c, {n});
  for (const auto& engine : backends()) {
    const auto blob = compress(*engine, p, x, {5, 6});
    const auto a = decompress(*engine, p, blob);
    double error = 0;
    double squared_error = 0;
    double squares = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double e = static_cast<double>(a[i]) - x[i];
      error += e;
      squared_error += e * e;
      squares += static_cast<double>(x[i]) * x[i];
    }
    const quality q = measure(*engine, p, bytes_of(x), dtype::f32, blob).total;
    EXPECT_NEAR(q.bias(n), error / n, 1e-7);
    EXPECT_NEAR(q.mean_squared_error(n), squared_error / n, 1e-7);
    EXPECT_NEAR(q.learning_indicator(), 1 - squared_error / squares, 1e-7);
    EXPECT_LT(std::abs(q.bias(n)), 0.01);  // stochastic rounding has none
    EXPECT_GT(q.learning_indicator(), 0.99);
  }
}

TEST(Measure, LearningIndicatorOfStandIns) {
  EXPECT_EQ((quality{0, 0, 5}).learning_indicator(), 1);
  EXPECT_EQ((quality{0, 0, 0}).learning_indicator(), 1);
  EXPECT_EQ((quality{0, 5, 5}).learning_indicator(), 0);
  EXPECT_LT((quality{0, 6, 5}).learning_indicator(), 0);
  EXPECT_LT((quality{0, 6, 0}).learning_indicator(), -1e300);
  const std::vector<float> x(700, 2.5f);
  for (const auto& engine : backends()) {
    const plan p = make_plan({}, {700});
    const auto blob = compress(*engine, p, x);
    const quality q = measure(*engine, p, bytes_of(x), dtype::f32, blob).total;
    EXPECT_EQ(q.sum_squares, 700 * 6.25);
    EXPECT_EQ(q.sum_squared_error, 0);
    EXPECT_EQ(q.learning_indicator(), 1);
  }
}

TEST(Measure, OfNothing) {
  for (const auto& engine : backends()) {
    const auto found = measure(*engine, make_plan({}, {0, 5}), {}, dtype::f32, {});
    EXPECT_EQ(found.total, quality{});
  }
}

TEST(Measure, BadArgumentsAreNamedAndNothingIsWritten) {
  const plan p = make_plan({}, {700});
  const auto x = bytes_of(normal_floats(700, 1));
  const guarded_buffer blob(reference::compress({{}, {700}, {}}, x, dtype::f32, {}));
  const const_bytes in{blob.data(), blob.size()};
  const const_values elements{x.data(), dtype::f32, 700};
  const quality unset{-7, -7, -7};
  std::vector<quality> groups(3, unset);
  quality total = unset;
  const auto expect = [&](const status& given, error code, const char* argument) {
    EXPECT_EQ(given.code, code) << to_string(given);
    EXPECT_STREQ(given.argument, argument);
    EXPECT_EQ(groups, std::vector<quality>(3, unset));
    EXPECT_EQ(total, unset);
  };
  for (const auto& engine : backends()) {
    const auto run = [&](const plan& q, const_values v, const_bytes b, host::span<quality> g,
                         quality* t) { return engine->measure(q, v, b, g, t); };
    expect(run(*plan::make_codes(1, {700}), elements, in, groups, &total), error::wrong_plan,
           "plan");
    codec dithered;
    dithered.rounding = rounding::dithered;
    for (const plan& keyed : {make_plan(rotated_codec(4), {700}), make_plan(dithered, {700})}) {
      const guarded_buffer other(keyed.size_bytes());
      const status s = run(keyed, elements, {other.data(), other.size()}, groups, &total);
      expect(s, error::wrong_plan, "plan");
      EXPECT_NE(std::string(s.limit).find("rotated or dithered"), std::string::npos) << s.limit;
    }
    expect(run(p, {x.data(), dtype::f32, 699}, in, groups, &total), error::wrong_size, "x");
    expect(run(p, {nullptr, dtype::f32, 700}, in, groups, &total), error::null_pointer, "x");
    expect(run(p, elements, {blob.data(), blob.size() - 1}, groups, &total), error::wrong_size,
           "blob");
    expect(run(p, elements, {nullptr, blob.size()}, groups, &total), error::null_pointer, "blob");
    expect(run(p, elements, in, {groups.data(), 2}, &total), error::wrong_size, "groups");
    expect(run(p, elements, in, {nullptr, 3}, &total), error::null_pointer, "groups");
    expect(run(p, elements, in, groups, nullptr), error::null_pointer, "total");
  }
}

}  // namespace
}  // namespace furl::test
