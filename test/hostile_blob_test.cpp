// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Blobs of any bytes: a decoder that trusts them must still stay inside its buffers, give what the
// format says of such numbers, and write no NaN but the one.

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "support/inputs.hpp"
#include "support/run.hpp"

namespace furl::test {
namespace {

/// Sets a 16-bit or 32-bit number of the blob's parts to special patterns here and there.
void plant_specials(const plan& p, std::vector<u8>& blob, u32 seed) {
  const std::vector<u16> specials{0x7f80, 0xff80, 0x7fc0, 0xffff, 0x7f81, 0x8000,
                                  0x0000, 0x7f7f, 0xff7f, 0x0001, 0x8001, 0x3f80};
  const auto picks = random_bytes(blob.size(), seed);
  for (std::size_t at = static_cast<std::size_t>(p.meta_offset()); at + 1 < blob.size(); at += 2) {
    if (picks[at] % 3 != 0) continue;
    const u16 special = specials[picks[at + 1] % specials.size()];
    blob[at] = static_cast<u8>(special);
    blob[at + 1] = static_cast<u8>(special >> 8);
  }
}

/// Every NaN in an array is canonical.
bool only_the_one_nan(const std::vector<u8>& y, dtype type) {
  const auto values = reference::to_floats(y, type);
  const std::size_t size = type == dtype::f32 ? 4 : 2;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isnan(values[i])) continue;
    for (std::size_t k = 0; k < size; ++k)
      if (y[i * size + k] != (k + 1 == size ? 0x7f : 0xff)) return false;
  }
  return true;
}

TEST(HostileBlob, DecodesAsTheReferenceSays) {
  int nans = 0;
  for (u32 seed = 0; seed < 48; ++seed) {
    codec c;
    c.bits = static_cast<int>(seed % 8) + 1;
    c.group = 32 << seed % 6;
    c.meta = seed % 2 == 0 ? dtype::f32 : dtype::bf16;
    extents shape{1500};
    if (seed % 3 != 0) {
      shape = {3, 20, 25};
      c.window = seed % 3 == 1 ? extents{1, 4, 4} : extents{2, 3, 1};
    }
    const reference::problem same{c, shape};
    const plan p = make_plan(c, shape);
    auto blob = random_bytes(static_cast<std::size_t>(p.size_bytes()), seed);
    plant_specials(p, blob, seed + 100);
    for (const dtype type : all_types) {
      const auto decoded = reference::decompress(same, blob, type);
      const auto before = random_bytes(decoded.size(), seed + 200);
      const auto added = reference::decompress_add(same, blob, type, before);
      ASSERT_TRUE(only_the_one_nan(decoded, type) && only_the_one_nan(added, type));
      for (const auto& engine : backends()) {
        SCOPED_TRACE(std::string(engine->name()) + " seed " + std::to_string(seed));
        ASSERT_EQ(decompress(*engine, p, blob, type), decoded);
        ASSERT_EQ(decompress_add(*engine, p, blob, type, before), added);
      }
      for (const float y : reference::to_floats(decoded, type)) nans += std::isnan(y) ? 1 : 0;
    }
  }
  EXPECT_GT(nans, 10000);  // else the blobs were not hostile
}

// Infinities in the metadata and the LFC, in every combination with their signs.
TEST(HostileBlob, InfinitiesMeet) {
  codec c;
  c.group = 32;
  c.meta = dtype::f32;
  c.window = {32};
  const plan p = make_plan(c, {32});
  const reference::problem same{c, {32}};
  const std::vector<u32> patterns{0,          0x3f800000, 0xbf800000, 0x7f800000, 0xff800000,
                                  0x7fc00001, 0xffc00000, 0x7f7fffff, 0xff7fffff, 0x80000000};
  for (const u32 lo : patterns)
    for (const u32 step : patterns)
      for (const u32 lfc : patterns) {
        auto blob = random_bytes(static_cast<std::size_t>(p.size_bytes()), 8);
        const auto put = [&](u64 at, u32 bits) {
          for (u64 k = 0; k < 4; ++k)
            blob[static_cast<std::size_t>(at + k)] = static_cast<u8>(bits >> (8 * k));
        };
        put(p.meta_offset(), lo);
        put(p.meta_offset() + 4, step);
        put(p.lfc_offset(), lfc);
        for (const auto& engine : backends())
          for (const dtype type : all_types)
            ASSERT_EQ(decompress(*engine, p, blob, type), reference::decompress(same, blob, type))
                << std::hex << lo << " " << step << " " << lfc;
      }
}

// Codes of absent elements and padding are read by nobody.
TEST(HostileBlob, PaddingDoesNotMatter) {
  codec c;
  c.bits = 3;
  c.window = {8};
  for (const i64 n : {1, 31, 700, 1025}) {
    const plan p = make_plan(c, {n});
    const auto x = normal_floats(static_cast<std::size_t>(n), 4);
    for (const auto& engine : backends()) {
      const auto blob = compress(*engine, p, x);
      auto dirty = blob;
      const auto dirty_from = [&](u64 begin, u64 end) {
        for (u64 i = begin; i < end; ++i) dirty[static_cast<std::size_t>(i)] = 0xff;
      };
      dirty_from(p.meta_offset() + u64(p.num_groups()) * 4, p.lfc_offset());
      dirty_from(p.lfc_offset() + u64(p.num_cells()) * 2, p.size_bytes());
      // In the last tile, columns without any element: all their bytes.
      for (i64 column = n % 1024; n % 1024 > 0 && column < 128; ++column)
        for (int k = 0; k < 3; ++k)
          dirty[static_cast<std::size_t>(n / 1024 * 384 + 128 * k + column)] = 0xff;
      EXPECT_EQ(decompress(*engine, p, dirty), decompress(*engine, p, blob)) << n;
    }
  }
}

}  // namespace
}  // namespace furl::test
