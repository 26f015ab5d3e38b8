// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Codes of positives (FORMAT.md, R9): the output of a ReLU as its mask, means and rotated codes,
// against the slow reference, and the ReLU that writes them.

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "support/coded.hpp"
#include "support/inputs.hpp"

namespace furl::test {
namespace {

constexpr random_key positives_key{0x0123456789abcdef, 0xfedcba9876543210};

class PositivesSizes : public testing::TestWithParam<std::tuple<int, i64>> {};

TEST_P(PositivesSizes, AsReference) {
  const auto [bits, n] = GetParam();
  for (const dtype type : all_types) {
    SCOPED_TRACE(name(type));
    const u32 seed = static_cast<u32>(n) + 1;
    const random_key key{seed * u64(0x123456789), ~u64(seed)};
    const reference::problem p{positives_codec(bits), {n}};
    expect_as_reference(p, normal_input(n, type, seed), type, key);
    expect_as_reference(p, awkward_elements(static_cast<std::size_t>(n), type, seed), type, key);
  }
}
INSTANTIATE_TEST_SUITE_P(BitsAndSizes, PositivesSizes,
                         testing::Combine(testing::Values(1, 2, 3, 4),
                                          testing::Values(0, 1, 2, 31, 32, 33, 127, 128, 129, 256,
                                                          900, 1023, 1024, 1025, 2048, 4097,
                                                          9999)));

TEST(Positives, EveryAlignment) {
  for (const std::size_t bytes : {1u, 2u, 4u, 6u, 8u, 12u, 16u, 20u})
    for (const dtype type : all_types)
      for (const i64 n : {5, 2500})
        expect_as_reference({positives_codec(2), {n}}, normal_input(n, type, 8), type, {9, 10},
                            {bytes});
}

TEST(Positives, SpecialBlocks) {
  for (const i64 n : {1, 40, 300, 1500}) {
    SCOPED_TRACE(n);
    for (const int bits : {1, 2, 3, 4})
      for (const float constant : {0.0f, -0.0f, 1.0f, 1.003f, -3.3f, 1e-20f, 1e15f, 1e-45f, 2e37f,
                                   3e38f, infinity, -infinity, nan}) {
        std::vector<float> x(static_cast<std::size_t>(n), constant);
        expect_as_reference({positives_codec(bits), {n}}, bytes_of(x), dtype::f32, positives_key);
        x.back() = 5.0f;
        expect_as_reference({positives_codec(bits), {n}}, bytes_of(x), dtype::f32, positives_key);
      }
  }
}

TEST(Positives, MagnitudesOfEveryBlock) {
  const auto x = normal_floats(1024, 9);
  for (int exponent = -149; exponent < 128; exponent += 3) {
    SCOPED_TRACE(exponent);
    auto scaled = x;
    for (float& v : scaled) v = std::ldexp(v, exponent);
    expect_as_reference({positives_codec(2), {1024}}, bytes_of(scaled), dtype::f32, positives_key);
  }
}

TEST(Positives, HostileBlobs) {
  for (u32 seed = 0; seed < 12; ++seed) {
    const reference::problem problem{positives_codec(1 + int(seed % 4)), {2500}};
    const plan p = make_plan(problem);
    auto blob = random_bytes(static_cast<std::size_t>(p.size_bytes()), seed);
    const u16 specials[] = {0x0000, 0x8000, 0x0001, 0x7180, 0x717f, 0x7f80,
                            0xff80, 0x7fff, 0xffff, 0x3f80, 0x0080, 0xbf80};
    for (std::size_t i = 0; i < 12; ++i) {
      const std::size_t place = static_cast<std::size_t>(p.meta_offset()) + 2 * i;
      if (i % 4 == seed % 4) continue;
      blob[place] = static_cast<u8>(specials[(i + seed) % 12]);
      blob[place + 1] = static_cast<u8>(specials[(i + seed) % 12] >> 8);
    }
    for (const dtype type : all_types) {
      const auto expected = reference::decompress(problem, blob, type, positives_key);
      const auto before = random_bytes(expected.size(), seed + 200);
      const auto added = reference::decompress_add(problem, blob, type, before, positives_key);
      for (const auto& engine : backends()) {
        ASSERT_EQ(decompress(*engine, p, blob, type, {}, {}, positives_key), expected) << seed;
        ASSERT_EQ(decompress_add(*engine, p, blob, type, before, {}, {}, positives_key), added)
            << seed;
      }
    }
  }
}

// One pass writes the output and what compression of the input, or of the output, writes.
TEST(Positives, ReluWritesOutputAndBlob) {
  for (const dtype type : all_types)
    for (const i64 n : {0, 1, 1023, 1024, 4100, 9 * 1024}) {
      const plan p = make_plan(positives_codec(2), {n});
      const auto x = awkward_elements(static_cast<std::size_t>(n), type, u32(n) + 1);
      const auto y = map_elements(x, type, [](float value, std::size_t) {
        return std::isnan(value) || value > 0 ? value : 0.0f;
      });
      const auto blob = reference::compress({positives_codec(2), {n}}, x, type, positives_key);
      for (const auto& engine : backends())
        for (const std::size_t where : {std::size_t(0), std::size_t(size_bytes(type))}) {
          SCOPED_TRACE(std::string(engine->name()) + " " + name(type) + " " + std::to_string(n));
          const guarded_buffer input(x, where);
          guarded_buffer output(x.size(), where);
          guarded_buffer both(x, where);
          guarded_buffer written(p.size_bytes());
          guarded_buffer in_place(p.size_bytes());
          EXPECT_TRUE(engine->relu(p, {input.data(), type, n}, {output.data(), type, n},
                                   {written.data(), written.size()}, positives_key));
          EXPECT_TRUE(engine->relu(p, {both.data(), type, n}, {both.data(), type, n},
                                   {in_place.data(), in_place.size()}, positives_key));
          EXPECT_EQ(output.bytes(), y);
          EXPECT_EQ(both.bytes(), y);
          EXPECT_EQ(written.bytes(), blob);
          EXPECT_EQ(in_place.bytes(), blob);
          EXPECT_EQ(compress(*engine, p, y, type, positives_key), blob);
          EXPECT_TRUE(output.intact() && both.intact() && written.intact() && in_place.intact());
        }
    }
}

TEST(Positives, TheMaskIsABlobOfItsOwn) {
  constexpr i64 n = 3000;
  const plan p = make_plan(positives_codec(1), {3, 1000});
  const plan mask_plan = p.mask_plan();
  EXPECT_EQ(mask_plan, *plan::make_codes(1, {3, 1000}));
  EXPECT_EQ(p.mask_offset() + mask_plan.size_bytes(), p.size_bytes());
  EXPECT_EQ(p.mask_offset() % blob_alignment, 0u);
  const auto x = normal_input(n, dtype::f32, 1);
  const auto g = normal_input(n, dtype::f32, 2);
  const auto input = floats_of(x);
  const auto expected = map_elements(
      g, dtype::f32, [&](float value, std::size_t i) { return input[i] > 0 ? value : 0.0f; });
  for (const auto& engine : backends()) {
    const auto blob = compress(*engine, p, x, dtype::f32, positives_key);
    const std::vector<u8> mask(blob.begin() + std::ptrdiff_t(p.mask_offset()), blob.end());
    EXPECT_EQ(unpack_multiply(*engine, mask_plan, mask, positive_codebook(), g, dtype::f32),
              expected);
  }
  EXPECT_EQ(make_plan(rotated_codec(1), {n}).mask_plan(), plan());
}

/// What is left of a block's positives when their mean is taken away: its energy, and how many they
/// are.
struct residual {
  double energy = 0;
  int count = 0;
};

residual residual_of_block(const std::vector<float>& x, std::size_t tile, std::size_t block) {
  double sum = 0;
  double squares = 0;
  residual out;
  for (std::size_t i = 0; i < 256; ++i) {
    const double v = x[1024 * tile + i / 32 * 128 + 32 * block + i % 32];
    if (v <= 0) continue;
    sum += v;
    squares += v * v;
    ++out.count;
  }
  out.energy = squares - sum * sum / out.count;
  return out;
}

// The error of a block is that of its residual, spread over all but one dimension of 256, of which
// those of the positives count.
TEST(Positives, ErrorIsThatOfTheResidualWherePositive) {
  constexpr std::size_t n = 64 * 1024;
  const auto x = normal_floats(n, 5);
  const double distortion_of[] = {0, 0.571, 0.135, 0.0389, 0.0117};
  for (const int bits : {1, 2, 3, 4}) {
    const plan p = make_plan(positives_codec(bits), {i64(n)});
    double error = 0;
    for (u64 offset = 0; offset < 8; ++offset) {
      const auto y = round_trip(*backends()[0], p, x, {1, offset});
      for (std::size_t i = 0; i < n; ++i) {
        const double z = x[i] > 0 ? double(x[i]) : 0.0;
        ASSERT_TRUE(z > 0 || bits_of(y[i]) == 0) << i;
        error += (double(y[i]) - z) * (double(y[i]) - z) / 8;
      }
    }
    double expected = 0;
    for (std::size_t tile = 0; tile < n / 1024; ++tile)
      for (std::size_t block = 0; block < 4; ++block) {
        const residual r = residual_of_block(x, tile, block);
        expected += distortion_of[bits] * r.energy * (r.count - 1) / 255;
      }
    // Found: .977 to .985, since rows are rotated together only once.
    EXPECT_NEAR(error / expected, 1, 0.03);
  }
}

TEST(PositivesArguments, PlansAreRefused) {
  codec c = positives_codec(2);
  EXPECT_TRUE(plan::make(c, {4, 8}));
  EXPECT_EQ(plan::make(c, {1 << 20})->bits_per_value(), 2 + 0.125 + 1);
  const auto refused = [](const codec& of, const char* argument) {
    const auto made = plan::make(of, {4, 8});
    EXPECT_EQ(made.status().code, error::out_of_range);
    EXPECT_STREQ(made.status().argument, argument);
  };
  c.window = {1, 8};
  refused(c, "codec.window");
  c.window = {1, 1};
  EXPECT_TRUE(plan::make(c, {4, 8}));
  c = positives_codec(5);
  refused(c, "codec.bits");
  c = positives_codec(2);
  c.group = 128;
  refused(c, "codec.group");
  c = positives_codec(2);
  c.meta = dtype::f32;
  refused(c, "codec.meta");
  c = positives_codec(2);
  c.coding = static_cast<coding>(3);
  refused(c, "codec.coding");
  EXPECT_STREQ(plan::make_mixed(positives_codec(2), {4, 8}, 2).status().argument, "codec.coding");
}

TEST(PositivesArguments, ReluIsRefused) {
  constexpr i64 n = 1100;
  const plan p = make_plan(positives_codec(1), {n});
  const auto content = random_bytes(16384, 4);
  for (const auto& engine : backends()) {
    guarded_buffer memory(content);
    const values x{memory.data(), dtype::f32, n};
    const values y{memory.data() + 4480, dtype::f32, n};
    const bytes blob{memory.data() + 9600, p.size_bytes()};
    const auto refused = [&](const plan& q, const_values from, values to, bytes out, error code,
                             const char* argument) {
      const status s = engine->relu(q, from, to, out, positives_key);
      EXPECT_EQ(s.code, code) << to_string(s);
      EXPECT_STREQ(s.argument, argument);
    };
    refused(*plan::make_codes(1, {n}), x, y, blob, error::wrong_plan, "plan");
    refused(make_plan(rotated_codec(1), {n}), x, y, blob, error::wrong_plan, "plan");
    refused(p, {x.data, x.type, n - 1}, y, blob, error::wrong_size, "x");
    refused(p, x, {y.data, y.type, n + 1}, blob, error::wrong_size, "y");
    refused(p, {nullptr, x.type, n}, y, blob, error::null_pointer, "x");
    refused(p, x, {nullptr, y.type, n}, blob, error::null_pointer, "y");
    refused(p, x, {y.data, dtype::f16, n}, blob, error::out_of_range, "y");
    refused(p, x, y, {blob.data, p.size_bytes() - 1}, error::wrong_size, "blob");
    refused(p, x, y, {nullptr, p.size_bytes()}, error::null_pointer, "blob");
    EXPECT_EQ(engine->relu(p, x, y, blob).code, error::wrong_plan);
    EXPECT_EQ(memory.bytes(), content);
    EXPECT_TRUE(engine->relu(make_plan(positives_codec(1), {0}), {nullptr, dtype::f32, 0},
                             {nullptr, dtype::f32, 0}, {}, positives_key));
  }
}

}  // namespace
}  // namespace furl::test
