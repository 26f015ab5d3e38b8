// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Blobs in host memory at every alignment: frameworks hand out memory that is aligned to a byte.

#include <gtest/gtest.h>

#include <vector>

#include "support/inputs.hpp"
#include "support/run.hpp"

namespace furl::test {
namespace {

class BlobAlignment : public testing::TestWithParam<std::size_t> {
 protected:
  static constexpr i64 count = 2500;
  static constexpr random_key stream{5, 6};
  const std::vector<u8> bits{3, 8, 1};  // of the tiles of a mixed plan

  /// One plan for each way to lay out a blob.
  static std::vector<plan> plans() {
    codec window;
    window.window = {8};
    window.meta = dtype::f32;
    codec lines;
    lines.by_lines = true;
    lines.rounding = rounding::dithered;
    return {make_plan({}, {count}),
            make_plan(window, {count}),
            make_plan(lines, {25, 100}),
            make_plan(rotated_codec(3, {8}), {count}),
            make_plan(positives_codec(2), {count}),
            *plan::make_mixed({}, {count}, 12),
            *plan::make_codes(5, {count}),
            *plan::make_scaled(4, 64, dtype::f32, {count})};
  }

  status write(const plan& p, const std::vector<float>& x, bytes blob) const {
    if (p.kind() == plan_kind::codes)
      return host::pack(p, host::const_bytes{x.data(), count}, blob);
    if (p.kind() == plan_kind::scaled)
      return host::pack(p, host::const_values(x), nf4_codebook(), blob, stream);
    return host::compress(p, x, blob, stream, options_for(p));
  }

  status read(const plan& p, const_bytes blob, std::vector<float>& y) const {
    if (p.kind() == plan_kind::codes) return host::unpack(p, blob, host::bytes{y.data(), count});
    if (p.kind() == plan_kind::scaled)
      return host::unpack(p, blob, nf4_codebook(), host::values(y));
    return host::decompress(p, blob, y, stream, options_for(p));
  }

 private:
  host::options options_for(const plan& p) const {
    host::options o;
    if (p.kind() == plan_kind::mixed) o.tile_bits = host::const_bytes(bits);
    return o;
  }
};

TEST_P(BlobAlignment, ChangesNeitherBytesNorValues) {
  const auto x = normal_floats(count, 7);
  for (const plan& p : plans()) {
    guarded_buffer aligned(p.size_bytes());
    ASSERT_TRUE(write(p, x, {aligned.data(), aligned.size()}));
    guarded_buffer shifted(p.size_bytes(), GetParam());
    const status s = write(p, x, {shifted.data(), shifted.size()});
    ASSERT_TRUE(s) << to_string(s);
    EXPECT_TRUE(shifted.intact());
    EXPECT_EQ(shifted.bytes(), aligned.bytes());
    std::vector<float> expected(count);
    ASSERT_TRUE(read(p, {aligned.data(), aligned.size()}, expected));
    std::vector<float> y(count);
    ASSERT_TRUE(read(p, {shifted.data(), shifted.size()}, y));
    EXPECT_EQ(bytes_of(y), bytes_of(expected));
  }
}
INSTANTIATE_TEST_SUITE_P(ByBytes, BlobAlignment, testing::Range(std::size_t(1), std::size_t(17)));

}  // namespace
}  // namespace furl::test
