// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// The caller's floating-point mode changes no byte, and is as it was afterwards.

#include <gtest/gtest.h>

#include <cfenv>
#include <cmath>
#include <cstring>
#include <string>

#include "furl/detail/host/work.hpp"
#include "host/in_mode.hpp"
#include "support/coded.hpp"
#include "support/inputs.hpp"
#include "support/run.hpp"

namespace furl::test {
namespace {

struct outputs {
  std::vector<u8> blob;
  std::vector<u8> decoded;
  std::vector<u8> added;
  std::vector<double> squared;
  std::vector<double> squared_in_blob;
  std::vector<u8> widths = std::vector<u8>(3);
  quality total;
};

bool operator==(const outputs& a, const outputs& b) {
  return a.blob == b.blob && a.decoded == b.decoded && a.added == b.added &&
         a.squared == b.squared && a.squared_in_blob == b.squared_in_blob && a.widths == b.widths &&
         std::memcmp(&a.total, &b.total, sizeof a.total) == 0;  // they may be NaN
}

/// Everything that rounds: means, metadata, codes, values, sums; with subnormals at each.
outputs run_all(backend& engine, dtype type, const extents& window) {
  codec c;
  c.bits = 8;
  c.group = 32;
  c.meta = dtype::f32;
  c.window = window;
  const plan p = make_plan(c, {3000});
  auto x = normal_floats(3000, 6);
  for (std::size_t i = 0; i < 400; ++i) x[i] *= 0x1p-130f;    // subnormal elements and means
  for (std::size_t i = 400; i < 800; ++i) x[i] *= 0x1p-122f;  // steps and products around 2^-126
  for (std::size_t i = 800; i < 1000; ++i) x[i] *= 0x1p125f;  // subnormal inverses
  const auto bytes = reference::from_floats(x, type);
  const auto before = reference::from_floats(normal_floats(3000, 7), type);
  outputs out;
  out.blob = compress(engine, p, bytes, type, {1, 2});
  out.decoded = decompress(engine, p, out.blob, type);
  out.added = decompress_add(engine, p, out.blob, type, before);
  out.squared.resize(3);
  out.squared_in_blob.resize(3);
  c.window = {};
  EXPECT_TRUE(engine.squared_ranges(make_plan(c, {3000}), {bytes.data(), type, 3000}, out.squared));
  const guarded_buffer blob(out.blob);
  EXPECT_TRUE(engine.squared_ranges(p, const_bytes{blob.data(), blob.size()}, out.squared_in_blob));
  std::vector<quality> groups(static_cast<std::size_t>(p.num_groups()));
  EXPECT_TRUE(engine.measure(p, {bytes.data(), type, 3000}, {blob.data(), blob.size()}, groups,
                             &out.total));
  const std::vector<float> sensitivity = {1e-40f, 0.3f, 1e-20f};
  EXPECT_TRUE(engine.allocate_bits(9, sensitivity, out.squared, out.widths));
  return out;
}

/// With subnormal squares, blocks of zeros and subnormal elements.
std::vector<u8> small_elements(dtype type) {
  auto x = normal_floats(3000, 6);
  for (std::size_t i = 0; i < 1024; ++i) x[i] *= 0x1p-58f;
  for (std::size_t i = 1024; i < 2048; ++i) x[i] *= i % 2 == 0 ? 0x1p-130f : 0x1p-122f;
  return reference::from_floats(x, type);
}

/// The blob of a batch of one tensor, and its values behind it.
std::vector<u8> run_batch(backend& engine, dtype type, const codec& c) {
  const plan p = make_plan(c, {3000});
  auto elements = small_elements(type);
  guarded_buffer blob(p.size_bytes());
  const compress_entry in{&p, {elements.data(), type, 3000}, {blob.data(), blob.size()}};
  const decompress_entry out{&p, {blob.data(), blob.size()}, {elements.data(), type, 3000}};
  EXPECT_TRUE(engine.compress_batch({&in, 1}, {1, 2}));
  EXPECT_TRUE(engine.decompress_batch({&out, 1}, {1, 2}));
  const auto bytes = blob.bytes();
  elements.insert(elements.begin(), bytes.begin(), bytes.end());
  return elements;
}

/// What calls make of codes that are decoded with their key, of elements as they are or normalised:
/// blob, values and sums one behind the other.
std::vector<u8> run_with_key(backend& engine, dtype type, const codec& c,
                             const statistics& given = {}) {
  const plan p = make_plan(c, {3000});
  const auto elements = small_elements(type);
  const auto before = reference::from_floats(normal_floats(3000, 7), type);
  const random_key key{1, 2};
  auto out = compress(engine, p, elements, type, key, {}, {}, {}, given);
  const auto blob = out;
  const auto decoded = decompress(engine, p, blob, type, {}, {}, key, given);
  const auto added = decompress_add(engine, p, blob, type, before, {}, {}, key, given);
  out.insert(out.end(), decoded.begin(), decoded.end());
  out.insert(out.end(), added.begin(), added.end());
  return out;
}

struct coded_outputs {
  std::vector<u8> blob;
  std::vector<u8> levels;
  std::vector<u8> products;
  std::vector<u8> scaled;
  std::vector<u8> scaled_products;
  std::vector<u8> rectified;
  std::vector<u8> mask;
  std::vector<u8> dropped;
  std::vector<u8> pooled;
  std::vector<u8> gathered;
};

/// The same for codebooks: thresholds, levels, distances and products, some of them subnormal.
coded_outputs run_coded(backend& engine, dtype type, rounding mode) {
  std::vector<float> levels;
  for (int i = 0; i < 50; ++i) levels.push_back(float(i) * 0x1.2p-126f);
  for (int i = 0; i < 50; ++i) levels.push_back(levels.back() * 5.7f);
  const codebook book = mode == rounding::nearest ? nearest_codebook(levels.data(), 100)
                                                  : stochastic_codebook(levels.data(), 100);
  constexpr i64 n = 3000;
  const plan p = *plan::make_codes(7, {n});
  const plan one = *plan::make_codes(1, {n});
  auto x = normal_floats(n, 6);
  for (std::size_t i = 0; i < 2000; ++i) x[i] *= i < 1000 ? 0x1p-130f : 0x1p-122f;
  const auto elements = reference::from_floats(x, type);
  coded_outputs out;
  out.blob = pack(engine, p, elements, type, book, {1, 2});
  out.levels = unpack(engine, p, out.blob, book, type);
  out.products = unpack_multiply(engine, p, out.blob, book, elements, type);
  const plan scaled = *plan::make_scaled(7, 128, dtype::f32, {n});
  out.scaled = pack(engine, scaled, elements, type, book, {1, 2});
  out.scaled_products = unpack_multiply(engine, scaled, out.scaled, book, elements, type);
  guarded_buffer y(elements);
  guarded_buffer mask(one.size_bytes());
  EXPECT_TRUE(
      engine.relu(one, {y.data(), type, n}, {y.data(), type, n}, {mask.data(), mask.size()}));
  out.rectified = y.bytes();
  out.mask = mask.bytes();
  EXPECT_TRUE(engine.dropout({elements.data(), type, n}, 0.31, {y.data(), type, n}, {3, 4}));
  out.dropped = y.bytes();
  const auto pool = *max_pool_plan::make({50, 60}, {{3, 3}, {1, 1}, {1, 1}});
  guarded_buffer indices(pool.codes().size_bytes());
  EXPECT_TRUE(engine.max_pool(pool, {elements.data(), type, n}, {y.data(), type, n},
                              {indices.data(), indices.size()}));
  out.pooled = indices.bytes();
  EXPECT_TRUE(engine.max_pool_backward(pool, {indices.data(), indices.size()},
                                       {elements.data(), type, n}, {y.data(), type, n}));
  out.gathered = y.bytes();
  return out;
}

class FloatEnvironment : public testing::TestWithParam<bool> {
 protected:
  static void expect_same_as_default(int rounding_direction, bool flush) {
    const extents window = GetParam() ? extents{8} : extents{};
    for (const auto& engine : backends()) {
      in_mode changed(*engine, rounding_direction, flush);
      for (const dtype type : all_types) {
        SCOPED_TRACE(std::string(engine->name()) + " " + name(type));
        EXPECT_TRUE(run_all(changed, type, window) == run_all(*engine, type, window));
        codec dithered;
        dithered.rounding = rounding::dithered;
        dithered.meta = dtype::f32;
        dithered.window = window;
        for (const codec& c : {rotated_codec(1, window), rotated_codec(2, window),
                               rotated_codec(3, window), rotated_codec(4, window), dithered})
          EXPECT_EQ(run_with_key(changed, type, c), run_with_key(*engine, type, c));
        dithered.window = {};
        for (const codec& c : {rotated_codec(2), dithered})
          EXPECT_EQ(run_batch(changed, type, c), run_batch(*engine, type, c));
        const float mean[] = {0x1p-130f, 0.3f, -0x1p-124f};
        const float inverse[] = {0x1p127f, 3.0f, 0x1p-128f};  // of one the deviation is subnormal
        for (const i64 extent : {1, 100})
          for (const codec& c : {rotated_codec(2), dithered})
            EXPECT_EQ(run_with_key(changed, type, c, {mean, inverse, 3, extent}),
                      run_with_key(*engine, type, c, {mean, inverse, 3, extent}));
        const codec positives = positives_codec(2);
        EXPECT_EQ(run_with_key(changed, type, positives), run_with_key(*engine, type, positives));
        const auto mode = GetParam() ? rounding::stochastic : rounding::nearest;
        const coded_outputs coded = run_coded(*engine, type, mode);
        const coded_outputs changed_coded = run_coded(changed, type, mode);
        EXPECT_EQ(changed_coded.blob, coded.blob);
        EXPECT_EQ(changed_coded.levels, coded.levels);
        EXPECT_EQ(changed_coded.products, coded.products);
        EXPECT_EQ(changed_coded.scaled, coded.scaled);
        EXPECT_EQ(changed_coded.scaled_products, coded.scaled_products);
        EXPECT_EQ(changed_coded.rectified, coded.rectified);
        EXPECT_EQ(changed_coded.mask, coded.mask);
        EXPECT_EQ(changed_coded.dropped, coded.dropped);
        EXPECT_EQ(changed_coded.pooled, coded.pooled);
        EXPECT_EQ(changed_coded.gathered, coded.gathered);
      }
    }
  }
};

// A host that computed in the caller's mode would have to differ: else the tests below say nothing.
TEST(FloatEnvironmentMode, IsNoticedByPlainArithmetic) {
  volatile float one = 1.0f, tiny = 0x1p-30f, subnormal = 0x1p-140f;
  float sum = 0, flushed = 1;
  {
    const mode up(FE_UPWARD, true);
    sum = one + tiny;
    flushed = subnormal * one;
  }
  EXPECT_GT(sum, 1.0f);
#if defined(__SSE__)
  EXPECT_EQ(flushed, 0.0f);
#endif
  EXPECT_EQ(std::fegetround(), FE_TONEAREST);
}

TEST_P(FloatEnvironment, RoundingModeOfTheCaller) {
  for (const int direction : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO})
    expect_same_as_default(direction, false);
}

TEST_P(FloatEnvironment, FlushToZeroOfTheCaller) {
  expect_same_as_default(FE_TONEAREST, true);
  expect_same_as_default(FE_UPWARD, true);
}
INSTANTIATE_TEST_SUITE_P(Window, FloatEnvironment, testing::Bool());

#if defined(__SSE__)

// The whole control word comes back, sticky flags included, and calls leave none behind.
TEST(FloatEnvironmentWord, IsRestored) {
  const plan p = make_plan({}, {2000});
  auto x = normal_floats(2000, 1);
  x[5] = 0x1p-149f;
  x[700] = std::nanf("");
  guarded_buffer blob(p.size_bytes());
  std::vector<float> y(2000);
  const unsigned saved = _mm_getcsr();
  for (const unsigned word : {default_mode, default_mode | flush_bits, default_mode | 0x6000u,
                              default_mode | 0x3fu, default_mode | 0x2001u}) {
    _mm_setcsr(word);
    const status compressed = host::compress(p, x, {blob.data(), blob.size()}, {});
    const unsigned after_compress = _mm_getcsr();
    const status decompressed = host::decompress(p, {blob.data(), blob.size()}, y);
    const unsigned after_decompress = _mm_getcsr();
    const status added = host::decompress_add(p, {blob.data(), blob.size()}, y);
    const unsigned after_add = _mm_getcsr();
    _mm_setcsr(saved);
    EXPECT_TRUE(compressed && decompressed && added);
    EXPECT_EQ(after_compress, word);
    EXPECT_EQ(after_decompress, word);
    EXPECT_EQ(after_add, word);
  }
}

// Threads inherit the mode of the one that starts them: a pool made under flush-to-zero.
TEST(FloatEnvironmentWord, WorkersIgnoreTheModeTheyWereStartedIn) {
  const extents window{8};
  const outputs expected = run_all(*backends()[0], dtype::f32, window);
  const unsigned saved = _mm_getcsr();
  _mm_setcsr(default_mode | flush_bits | 0x4000u);
  const auto made_in_flush_mode = make_host_backend(4);
  _mm_setcsr(saved);
  const outputs got = run_all(*made_in_flush_mode, dtype::f32, window);
  EXPECT_TRUE(got == expected);
}

// Traps that the caller has unmasked must not fire inside, on NaN, overflow and inexact results.
TEST(FloatEnvironmentWord, UnmaskedTrapsDoNotFire) {
  const plan p = make_plan({}, {300});
  std::vector<float> x(300, 1e38f);
  x[7] = std::nanf("");
  x[299] = -3e38f;
  guarded_buffer blob(p.size_bytes());
  std::vector<f16> y(300);
  const unsigned saved = _mm_getcsr();
  _mm_setcsr(0);  // all six unmasked
  const status compressed = host::compress(p, x, {blob.data(), blob.size()}, {});
  const status decompressed = host::decompress(p, {blob.data(), blob.size()}, y);
  const unsigned after = _mm_getcsr();
  _mm_setcsr(saved);
  EXPECT_TRUE(compressed && decompressed);
  EXPECT_EQ(after, 0u);
}

#endif

}  // namespace
}  // namespace furl::test
