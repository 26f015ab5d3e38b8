// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// The device writes what the host writes, byte for byte, over everything a plan can ask for.

#include <gtest/gtest.h>

#include <initializer_list>
#include <random>
#include <string>
#include <vector>

#include "device/backend.hpp"
#include "device/device.hpp"
#include "support/buffer.hpp"

namespace furl::test {
namespace {

constexpr dtype all_types[] = {dtype::f32, dtype::f16, dtype::bf16};

/// Numbers of all kinds: `special` mixes in NaN, infinities, huge, subnormal and constant runs.
std::vector<u8> make_elements(i64 count, dtype type, bool special, u32 seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.5f, 2.0f);
  std::vector<u8> out;
  float run = 0.0f;
  for (i64 i = 0; i < count; ++i) {
    float x = normal(random);
    if (special) {
      const u32 kind = random() % 4096;
      if (kind == 0) x = float_of(0xffc01234u);
      if (kind == 1) x = float_of(0x7f800000u);
      if (kind == 2) x = float_of(0xff800000u);
      if (kind == 3) x = 3e38f;
      const u32 region = u32(i / 700) % 6;  // longer than small groups, shorter than large ones
      if (region == 1) x = -0.0f;
      if (region == 2) x = run;
      if (region == 3) x *= 1e-40f;
      if (region == 4) x *= 1e-37f;
      if (i % 700 == 0) run = x;
    }
    const u32 bits = type == dtype::f32   ? bits_of(x)
                     : type == dtype::f16 ? f16_nearest(x)
                                          : bf16_nearest(x);
    for (int b = 0; b < size_bytes(type); ++b) out.push_back(u8(bits >> (8 * b)));
  }
  return out;
}

class comparison {
 public:
  /// One plan, one input: compress, and decompress and decompress_add to every type.
  void run(const plan& p, dtype type, u64 misalignment, bool special,
           const std::vector<u8>& widths = {}) {
    ++count;
    const i64 n = p.num_elements();
    const random_key key{0x123456789abcdef0u + u64(count), 77};
    const std::size_t shift = std::size_t(misalignment) * std::size_t(size_bytes(type));
    const guarded_buffer x(make_elements(n, type, special, u32(count)), shift);
    guarded_buffer expected(p.size_bytes());
    guarded_buffer blob(p.size_bytes());
    const const_values in{x.data(), type, n};
    ASSERT_TRUE(host_->compress(p, in, {expected.data(), expected.size()}, key, widths, {}));
    const status s = device_->compress(p, in, {blob.data(), blob.size()}, key, widths);
    ASSERT_TRUE(s) << to_string(s);
    ASSERT_EQ(blob.bytes(), expected.bytes());
    for (const dtype out : all_types) {
      compare_output(p, expected, out, misalignment, widths, key, false);
      compare_output(p, expected, out, misalignment, widths, key, true);
    }
  }

  int count = 0;

 private:
  void compare_output(const plan& p, const guarded_buffer& blob, dtype type, u64 misalignment,
                      const std::vector<u8>& widths, random_key key, bool accumulate) {
    const i64 n = p.num_elements();
    const auto before = make_elements(n, type, false, 5);
    const std::size_t shift = std::size_t(misalignment) * std::size_t(size_bytes(type));
    guarded_buffer y(before, shift);
    guarded_buffer expected(before, shift);
    const const_bytes given{blob.data(), blob.size()};
    for (backend* engine : {host_.get(), device_.get()}) {
      guarded_buffer& target = engine == host_.get() ? expected : y;
      const values out{target.data(), type, n};
      const status s = accumulate ? engine->decompress_add(p, given, out, widths, key)
                                  : engine->decompress(p, given, out, widths, key);
      ASSERT_TRUE(s) << to_string(s);
    }
    ASSERT_EQ(y.bytes(), expected.bytes()) << name(type) << (accumulate ? " added" : "");
  }

  std::unique_ptr<backend> device_ = make_device_backend();
  std::unique_ptr<backend> host_ = make_host_backend(1);
};

std::string describe(const codec& c, const extents& shape, dtype type, u64 misalignment) {
  std::string text = std::string(name(type)) + " bits " + std::to_string(c.bits) + " group " +
                     std::to_string(c.group) + " meta " + name(c.meta) + " misaligned by " +
                     std::to_string(misalignment) +
                     (c.coding == coding::rotated ? " rotated" : "") +
                     (c.rounding == rounding::dithered ? " dithered" : "") + " shape";
  for (int d = 0; d < shape.rank; ++d) text += " " + std::to_string(shape[d]);
  text += " window";
  for (int d = 0; d < c.window.rank; ++d) text += " " + std::to_string(c.window[d]);
  return text;
}

TEST(matrix, Flat) {
  comparison all;
  const i64 sizes[] = {1, 3, 31, 130, 1023, 1024, 1025, 2305, 5000};
  int turn = 0;
  for (int bits = 1; bits <= 8; ++bits) {
    for (int group = 32; group <= 1024; group *= 2) {
      for (const dtype type : all_types) {
        for (const dtype meta : {dtype::bf16, dtype::f32}) {
          for (const auto mode : {rounding::stochastic, rounding::nearest, rounding::dithered}) {
            codec c;
            c.bits = bits;
            c.group = group;
            c.meta = meta;
            c.rounding = mode;
            const extents shape{sizes[turn % 9]};
            const u64 misalignment = u64(turn % 5);
            SCOPED_TRACE(describe(c, shape, type, misalignment));
            all.run(*plan::make(c, shape), type, misalignment, turn % 2 != 0);
            if (HasFatalFailure()) return;
            ++turn;
          }
        }
      }
    }
  }
  RecordProperty("plans", all.count);
}

codec rotated_codec(int bits) {
  codec c;
  c.bits = bits;
  c.coding = coding::rotated;
  return c;
}

codec positives_codec(int bits) {
  codec c = rotated_codec(bits);
  c.coding = coding::positives;
  return c;
}

/// Lines of any width.
TEST(matrix, ByLines) {
  comparison all;
  int turn = 0;
  for (const i64 width : {1, 5, 33, 64, 197, 384, 1000, 3001}) {
    for (const int group : {32, 128, 256, 1024}) {
      for (const dtype type : all_types) {
        codec c;
        c.by_lines = true;
        c.bits = 1 + turn % 8;
        c.group = group;
        c.meta = turn % 2 == 0 ? dtype::bf16 : dtype::f32;
        if (turn % 3 == 0) c.rounding = rounding::dithered;
        const u64 misalignment = u64(turn++ % 5);
        const extents shape{7, width};
        SCOPED_TRACE(describe(c, shape, type, misalignment));
        all.run(*plan::make(c, shape), type, misalignment, turn % 4 == 1);
        if (HasFatalFailure()) return;
      }
    }
  }
  RecordProperty("plans", all.count);
}

/// Runs of one tile, and of four.
TEST(matrix, Rotated) {
  comparison all;
  int turn = 0;
  for (const i64 n : {1, 3, 31, 33, 130, 900, 1023, 1024, 1025, 2305, 5000, 40000}) {
    for (int bits = 1; bits <= max_rotated_bits; ++bits) {
      for (const dtype type : all_types) {
        for (const bool special : {false, true}) {
          const u64 misalignment = u64(turn++ % 5);
          SCOPED_TRACE(describe(rotated_codec(bits), {n}, type, misalignment));
          all.run(*plan::make(rotated_codec(bits), {n}), type, misalignment, special);
          all.run(*plan::make(positives_codec(bits), {n}), type, misalignment, special);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
  const i64 many = 4 * 1024 * tile_elements + 5000;
  for (const int bits : {1, 3})
    all.run(*plan::make(rotated_codec(bits), {many}), dtype::bf16, 0, false);
  all.run(*plan::make(positives_codec(2), {many}), dtype::bf16, 0, false);
  RecordProperty("plans", all.count);
}

struct pooled {
  extents shape;
  extents window;
};

TEST(matrix, LowFrequencyComponent) {
  const pooled cases[] = {{{2, 3, 16, 16}, {1, 1, 8, 8}},
                          {{2, 3, 28, 28}, {1, 1, 8, 8}},
                          {{3, 2, 14, 14}, {1, 1, 8, 8}},
                          {{5, 3, 7, 7}, {1, 1, 8, 8}},
                          {{1, 3, 33, 40}, {1, 1, 8, 8}},
                          {{2, 9, 10, 6}, {1, 4, 4, 1}},
                          {{2, 9, 10, 8}, {1, 8, 8, 1}},
                          {{2, 9, 10, 5}, {1, 8, 8, 1}},
                          {{40, 77}, {1, 8}},
                          {{40, 64}, {1, 8}},
                          {{3, 50, 12}, {1, 8, 1}},
                          {{3000}, {64}},
                          {{3000}, {5}},
                          {{200, 17}, {64, 64}},
                          {{2, 9, 9, 10}, {1, 3, 4, 5}},
                          {{20, 20, 12}, {16, 16, 16}},
                          {{4, 1, 1, 1}, {1, 1, 8, 8}},
                          {{1030, 1, 2}, {1, 1, 2}},
                          {{2, 40, 64}, {1, 12, 12}},
                          {{2, 40, 66}, {1, 3, 63}},
                          // Runs of whole bands, of ragged ones, long ones, and one row a plane.
                          {{3, 2, 56, 56}, {1, 1, 8, 8}},
                          {{1, 1, 112, 112}, {1, 1, 8, 8}},
                          {{9, 32, 32}, {1, 8, 8}},
                          {{2, 75, 75}, {1, 8, 8}},
                          {{70, 13, 6}, {1, 8, 8}},
                          {{1, 17, 1000}, {1, 8, 8}},
                          {{1, 104, 104}, {1, 8, 8}},
                          {{5, 21, 28}, {1, 7, 7}},
                          {{5, 20, 24}, {1, 4, 2}},
                          {{3, 5003}, {1, 8}},
                          {{4000, 1}, {1, 8}},
                          // Lanes, columns, and pooling in turns.
                          {{7, 768}, {1, 16}},
                          {{2, 197, 64}, {1, 8, 1}},
                          {{1, 40, 768}, {1, 8, 1}},
                          {{9, 3, 20}, {1, 2, 1}},
                          {{3, 14, 14, 64}, {1, 8, 8, 1}}};
  comparison all;
  int turn = 0;
  for (const pooled& each : cases) {
    for (const dtype type : all_types) {
      for (const dtype meta : {dtype::bf16, dtype::f32}) {
        codec c;
        c.bits = 1 + turn % 8;
        c.group = 32 << turn % 6;
        c.meta = meta;
        c.window = each.window;
        if (turn % 2 == 0) c.rounding = rounding::dithered;
        codec rotated = rotated_codec(1 + turn % max_rotated_bits);
        rotated.window = each.window;
        const u64 misalignment = turn % 3 == 0 ? 1 : 0;
        for (const codec& each_codec : {c, rotated}) {
          SCOPED_TRACE(describe(each_codec, each.shape, type, misalignment));
          all.run(*plan::make(each_codec, each.shape), type, misalignment, turn % 4 == 1);
          if (HasFatalFailure()) return;
        }
        ++turn;
      }
    }
  }
  RecordProperty("plans", all.count);
}

/// Shapes with dimensions of one element, windows wider than a dimension, and all in between.
TEST(matrix, AnyShapeAndWindow) {
  comparison all;
  std::mt19937 random(11);
  const auto one_of = [&](std::initializer_list<i64> sizes) {
    return sizes.begin()[random() % sizes.size()];
  };
  for (int turn = 0; turn < 240; ++turn) {
    const int rank = 1 + int(random() % 6);
    extents shape;
    codec c;
    shape.rank = c.window.rank = rank;
    const int first_pooled = int(random() % u32(rank));
    i64 product = 1;
    i64 of_cell = 1;
    for (int d = 0; d < rank; ++d) {
      const i64 size = one_of({1, 1, 2, 3, 4, 7, 8, 16, 33, 64, 197});
      shape.size[d] = product * size <= 30000 ? size : 1;
      product *= shape[d];
      const i64 width = one_of({2, 3, 4, 7, 8, 8, 8, 16, 64});
      const bool is_pooled = d >= first_pooled && d < first_pooled + 3;
      c.window.size[d] = is_pooled && of_cell * width <= max_cell_elements ? width : 1;
      // Once a width is 1, those that follow must be, too: pooled dimensions are consecutive.
      if (is_pooled && c.window[d] == 1) of_cell = max_cell_elements;
      of_cell *= c.window[d];
    }
    c.bits = 1 + turn % 8;
    c.group = 32 << turn % 6;
    c.meta = turn % 2 == 0 ? dtype::bf16 : dtype::f32;
    if (turn % 3 == 0) c.rounding = rounding::dithered;
    if (turn % 8 == 4) {
      const extents window = c.window;
      c = rotated_codec(1 + turn % 32 / 8);
      c.window = window;
    }
    const dtype type = all_types[turn % 3];
    const u64 misalignment = turn % 5 == 0 ? 1 : 0;
    SCOPED_TRACE(describe(c, shape, type, misalignment));
    all.run(*plan::make(c, shape), type, misalignment, turn % 4 == 1);
    if (HasFatalFailure()) return;
  }
  RecordProperty("plans", all.count);
}

TEST(matrix, WidthPerTile) {
  comparison all;
  std::mt19937 random(3);
  for (const i64 tiles : {1, 31, 32, 33, 100}) {
    for (const dtype type : all_types) {
      const i64 n = tiles * tile_elements - 100;
      std::vector<u8> widths;
      u64 sum = 0;
      for (i64 t = 0; t < tiles; ++t) sum += widths.emplace_back(u8(1 + random() % 8));
      codec c;
      c.group = 128;
      if (type == dtype::bf16) c.window = {8};
      if (tiles % 2 == 0) c.rounding = rounding::dithered;
      SCOPED_TRACE(describe(c, {n}, type, 0));
      all.run(*plan::make_mixed(c, {n}, sum), type, 0, true, widths);
      if (HasFatalFailure()) return;
    }
  }
  RecordProperty("plans", all.count);
}

TEST(matrix, Codes) {
  const auto device = make_device_backend();
  const auto host = make_host_backend(1);
  for (int bits = 1; bits <= 8; ++bits) {
    for (const i64 n : {1, 127, 1024, 3000}) {
      for (const std::size_t misalignment : {0, 1}) {
        const plan p = *plan::make_codes(bits, {n});
        std::vector<u8> content;
        for (i64 i = 0; i < n; ++i) content.push_back(u8(i * 37 + bits));
        const guarded_buffer codes(content, misalignment);
        guarded_buffer expected(p.size_bytes());
        guarded_buffer blob(p.size_bytes());
        const const_bytes in{codes.data(), codes.size()};
        ASSERT_TRUE(host->pack(p, in, {expected.data(), expected.size()}));
        ASSERT_TRUE(device->pack(p, in, {blob.data(), blob.size()}));
        ASSERT_EQ(blob.bytes(), expected.bytes());
        guarded_buffer back(u64(n), misalignment);
        ASSERT_TRUE(device->unpack(p, {blob.data(), blob.size()}, {back.data(), back.size()}));
        for (u8& code : content) code = u8(code & ((1u << bits) - 1u));
        ASSERT_EQ(back.bytes(), content);
      }
    }
  }
}

}  // namespace
}  // namespace furl::test
