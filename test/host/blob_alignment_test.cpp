// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Blobs in host memory at every alignment: frameworks hand out memory that is aligned to a byte.

#include <gtest/gtest.h>

#include <vector>

#include "support/inputs.hpp"
#include "support/run.hpp"

namespace furl::test {
namespace {

constexpr i64 n = 2500;
constexpr random_key key{5, 6};
const std::vector<u8> tile_bits{3, 8, 1};

/// One plan for each way to lay out a blob.
std::vector<plan> plans() {
  codec window;
  window.window = {8};
  window.meta = dtype::f32;
  codec lines;
  lines.by_lines = true;
  lines.rounding = rounding::dithered;
  return {make_plan({}, {n}),
          make_plan(window, {n}),
          make_plan(lines, {25, 100}),
          make_plan(rotated_codec(3, {8}), {n}),
          make_plan(positives_codec(2), {n}),
          *plan::make_mixed({}, {n}, 12),
          *plan::make_codes(5, {n}),
          *plan::make_scaled(4, 64, dtype::f32, {n})};
}

status write(const plan& p, const std::vector<float>& x, bytes blob) {
  if (p.kind() == plan_kind::codes) return host::pack(p, host::const_bytes{x.data(), n}, blob);
  if (p.kind() == plan_kind::scaled)
    return host::pack(p, host::const_values(x), nf4_codebook(), blob, key);
  host::options o;
  if (p.kind() == plan_kind::mixed) o.tile_bits = host::const_bytes(tile_bits);
  return host::compress(p, x, blob, key, o);
}

status read(const plan& p, const_bytes blob, std::vector<float>& y) {
  if (p.kind() == plan_kind::codes) return host::unpack(p, blob, host::bytes{y.data(), n});
  if (p.kind() == plan_kind::scaled) return host::unpack(p, blob, nf4_codebook(), host::values(y));
  host::options o;
  if (p.kind() == plan_kind::mixed) o.tile_bits = host::const_bytes(tile_bits);
  return host::decompress(p, blob, y, key, o);
}

class EveryAlignment : public testing::TestWithParam<std::size_t> {};

TEST_P(EveryAlignment, OfABlobGivesTheSameBytesAndValues) {
  const auto x = normal_floats(n, 7);
  for (const plan& p : plans()) {
    guarded_buffer aligned(p.size_bytes());
    ASSERT_TRUE(write(p, x, {aligned.data(), aligned.size()}));
    guarded_buffer shifted(p.size_bytes(), GetParam());
    const status s = write(p, x, {shifted.data(), shifted.size()});
    ASSERT_TRUE(s) << to_string(s);
    EXPECT_TRUE(shifted.intact());
    EXPECT_EQ(shifted.bytes(), aligned.bytes());
    std::vector<float> expected(n);
    ASSERT_TRUE(read(p, {aligned.data(), aligned.size()}, expected));
    std::vector<float> y(n);
    ASSERT_TRUE(read(p, {shifted.data(), shifted.size()}, y));
    EXPECT_EQ(bytes_of(y), bytes_of(expected));
  }
}
INSTANTIATE_TEST_SUITE_P(ByBytes, EveryAlignment, testing::Range(std::size_t(1), std::size_t(17)));

}  // namespace
}  // namespace furl::test
