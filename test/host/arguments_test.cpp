// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// What only the host can refuse: pointers, their alignment, overlaps, and widths it can read.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "furl/detail/checks.hpp"
#include "support/inputs.hpp"
#include "support/run.hpp"

namespace furl::test {
namespace {

constexpr i64 tensor_elements = 2100;

class HostArguments : public testing::Test {
 protected:
  /// compress, decompress and decompress_add of these pointers are refused, and memory is as
  /// before.
  void expect_refused(const plan& p, void* array, void* bytes_at, const host::options& o,
                      error code, const char* argument_x, const char* argument_y, i64 value = 0) {
    const auto before = memory.bytes();
    const u64 size = p.size_bytes();
    expect_status(host::compress(p, {array, dtype::f32, tensor_elements}, {bytes_at, size}, {}, o),
                  code, argument_x, value);
    expect_status(host::decompress(p, {bytes_at, size}, {array, dtype::f32, tensor_elements}, o),
                  code, argument_y, value);
    expect_status(
        host::decompress_add(p, {bytes_at, size}, {array, dtype::f32, tensor_elements}, o), code,
        argument_y, value);
    EXPECT_TRUE(memory.intact());
    EXPECT_EQ(memory.bytes(), before);
  }
  static void expect_status(const status& s, error code, const char* argument, i64 value) {
    EXPECT_EQ(s.code, code) << to_string(s);
    EXPECT_STREQ(s.argument, argument);
    EXPECT_EQ(s.value, value);
    EXPECT_STRNE(s.limit, "");
  }

  const plan flat = make_plan({}, {tensor_elements});
  const plan mixed = *plan::make_mixed({}, {tensor_elements}, 9);
  guarded_buffer memory{random_bytes(32768, 3)};
  u8* const blob = memory.data();
  u8* const tensor = memory.data() + 16384;
};

TEST_F(HostArguments, NullPointers) {
  expect_refused(flat, nullptr, blob, {}, error::null_pointer, "x", "y");
  expect_refused(flat, tensor, nullptr, {}, error::null_pointer, "blob", "blob");
  const plan codes = *plan::make_codes(2, {tensor_elements});
  const u64 size = codes.size_bytes();
  expect_status(host::pack(codes, {nullptr, tensor_elements}, {blob, size}), error::null_pointer,
                "codes", 0);
  expect_status(host::pack(codes, {tensor, tensor_elements}, {nullptr, size}), error::null_pointer,
                "blob", 0);
  expect_status(host::unpack(codes, {blob, size}, {nullptr, tensor_elements}), error::null_pointer,
                "codes", 0);
  expect_status(host::unpack(codes, {nullptr, size}, {tensor, tensor_elements}),
                error::null_pointer, "blob", 0);
}

TEST_F(HostArguments, OverlapByOneByte) {
  const u64 size = flat.size_bytes();
  for (u8* const overlapping : {blob, blob + size - 1, blob + size / 2})
    expect_refused(flat, overlapping, blob, {}, error::overlap, "x", "y");
  u8* const later = blob + 16384;
  expect_refused(flat, later - 4 * tensor_elements + 1, later, {}, error::overlap, "x", "y");
  // Side by side is apart.
  EXPECT_TRUE(host::compress(flat, {blob + size, dtype::f32, tensor_elements}, {blob, size}, {}));
  EXPECT_TRUE(host::compress(flat, {later - 4 * tensor_elements, dtype::f32, tensor_elements},
                             {later, size}, {}));
}

TEST_F(HostArguments, OverlapOfCodes) {
  const plan codes = *plan::make_codes(2, {tensor_elements});
  const u64 size = codes.size_bytes();
  for (u8* const overlapping : {blob, blob + size - 1}) {
    expect_status(host::pack(codes, {overlapping, tensor_elements}, {blob, size}), error::overlap,
                  "codes", 0);
    expect_status(host::unpack(codes, {blob, size}, {overlapping, tensor_elements}), error::overlap,
                  "codes", 0);
  }
  EXPECT_EQ(memory.bytes(), random_bytes(32768, 3));
  EXPECT_TRUE(host::unpack(codes, {blob, size}, {blob + size, tensor_elements}));
}

TEST_F(HostArguments, WidthsAreReadBeforeAnythingIsWritten) {
  const auto refused = [&](const std::vector<u8>& widths, error code, i64 value) {
    expect_refused(mixed, tensor, blob, {nullptr, widths}, code, "options.tile_bits",
                   "options.tile_bits", value);
  };
  refused({3, 3, 0}, error::out_of_range, 0);
  refused({0, 1, 8}, error::out_of_range, 0);
  refused({9, 0, 0}, error::out_of_range, 9);
  refused({3, 3, 255}, error::out_of_range, 255);
  refused({3, 3, 2}, error::wrong_size, 8);
  refused({8, 8, 8}, error::wrong_size, 24);
  expect_refused(mixed, tensor, blob, {nullptr, {nullptr, 3}}, error::null_pointer,
                 "options.tile_bits", "options.tile_bits");
  const std::vector<u8> right{3, 5, 1};
  EXPECT_TRUE(host::compress(mixed, {tensor, dtype::f32, tensor_elements},
                             {blob, mixed.size_bytes()}, {}, {nullptr, right}));
}

// Case 137: what options point to must be apart from what the call writes.
TEST_F(HostArguments, OptionsOverlapTheOutput) {
  const u64 size = mixed.size_bytes();
  const u64 tensor_bytes = 4 * tensor_elements;
  const u8 right[] = {3, 5, 1};
  const const_bytes tile_bits(right, 3);
  for (const u64 at : {u64(0), size / 2, size - 3, size - 1}) {
    std::copy(right, right + 3, blob + at);
    const host::options o{nullptr, {blob + at, 3}};
    expect_status(host::compress(mixed, {tensor, dtype::f32, tensor_elements}, {blob, size}, {}, o),
                  error::overlap, "options.tile_bits", 0);
  }
  for (const u64 at : {u64(0), tensor_bytes - 3, tensor_bytes - 1}) {
    std::copy(right, right + 3, tensor + at);
    const host::options o{nullptr, {tensor + at, 3}};
    expect_status(host::decompress(mixed, {blob, size}, {tensor, dtype::f32, tensor_elements}, o),
                  error::overlap, "options.tile_bits", 0);
    expect_status(
        host::decompress_add(mixed, {blob, size}, {tensor, dtype::f32, tensor_elements}, o),
        error::overlap, "options.tile_bits", 0);
  }
  const float pair[] = {-1.0f, 1.0f};
  std::memcpy(blob + 16, pair, sizeof pair);
  const auto* const pairs = reinterpret_cast<const float*>(blob + 16);
  const host::options ranges{nullptr, tile_bits, given_ranges::of_tensor(pairs)};
  expect_status(
      host::compress(mixed, {tensor, dtype::f32, tensor_elements}, {blob, size}, {}, ranges),
      error::overlap, "options.ranges", 0);
  EXPECT_TRUE(memory.intact());
}

TEST_F(HostArguments, StatisticsThatOverlapOrAreMisaligned) {
  const float number[] = {1, 1, 1, 1};
  const auto before = memory.bytes();
  const u64 size = flat.size_bytes();
  const auto refused = [&](u8* written, u64 bytes_written, const auto& call) {
    for (u8* at : {written - 12, written, written + (bytes_written - 4) / 4 * 4}) {
      const auto* const numbers = reinterpret_cast<const float*>(at);
      host::options o;
      o.statistics = {numbers, number, 4, 100};
      expect_status(call(o), error::overlap, "options.statistics.mean", 0);
      o.statistics = {number, numbers, 4, 100};
      expect_status(call(o), error::overlap, "options.statistics.inverse_deviation", 0);
      o.statistics.mean = nullptr;
      expect_status(call(o), error::overlap, "options.statistics.inverse_deviation", 0);
    }
    host::options o;
    const auto* const odd = reinterpret_cast<const float*>(reinterpret_cast<const u8*>(number) + 2);
    o.statistics = {odd, number, 2, 100};
    expect_status(call(o), error::misaligned, "options.statistics.mean", 0);
    o.statistics = {number, odd, 2, 100};
    expect_status(call(o), error::misaligned, "options.statistics.inverse_deviation", 0);
  };
  const values array{tensor, dtype::f32, tensor_elements};
  refused(blob, size, [&](const host::options& o) {
    return host::compress(flat, array, {blob, size}, {}, o);
  });
  refused(tensor, array.size_bytes(), [&](const host::options& o) {
    return host::decompress(flat, {blob, size}, array, o);
  });
  refused(tensor, array.size_bytes(), [&](const host::options& o) {
    return host::decompress_add(flat, {blob, size}, array, o);
  });
  EXPECT_EQ(memory.bytes(), before);
}

TEST_F(HostArguments, RangesAreForCompressAlone) {
  const float pair[] = {-1.0f, 1.0f};
  const host::options o{nullptr, {}, given_ranges::of_tensor(pair)};
  const auto before = memory.bytes();
  const u64 size = flat.size_bytes();
  expect_status(host::decompress(flat, {blob, size}, {tensor, dtype::f32, tensor_elements}, o),
                error::out_of_range, "options.ranges", i64(range_scope::tensor));
  expect_status(host::decompress_add(flat, {blob, size}, {tensor, dtype::f32, tensor_elements}, o),
                error::out_of_range, "options.ranges", i64(range_scope::tensor));
  host::options forgotten;
  forgotten.ranges.pairs = pair;
  expect_status(
      host::decompress(flat, {blob, size}, {tensor, dtype::f32, tensor_elements}, forgotten),
      error::out_of_range, "options.ranges", i64(range_scope::measured));
  EXPECT_EQ(memory.bytes(), before);
}

TEST_F(HostArguments, ScopeOutsideItsEnumeration) {
  const float pair[] = {-1.0f, 1.0f};
  const auto before = memory.bytes();
  for (const int scope : {4, 5, 255}) {
    host::options o;
    o.ranges = {pair, 1, range_scope(scope), 0};
    expect_status(host::compress(flat, {tensor, dtype::f32, tensor_elements},
                                 {blob, flat.size_bytes()}, {}, o),
                  error::out_of_range, "options.ranges.scope", scope);
  }
  EXPECT_EQ(memory.bytes(), before);
}

}  // namespace
}  // namespace furl::test
