// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// What the extras refuse and only the host can show: arrays that overlap what a call writes, and
// options that mean nothing to it.

#include <gtest/gtest.h>

#include "furl/furl.hpp"
#include "support/inputs.hpp"
#include "support/run.hpp"

namespace furl::test {
namespace {

constexpr i64 input_elements = 2048;

class ExtraArguments : public testing::Test {
 protected:
  void expect(const status& given, error code, const char* argument) {
    EXPECT_EQ(given.code, code) << to_string(given);
    EXPECT_STREQ(given.argument, argument);
    EXPECT_EQ(memory.bytes(), before);
  }
  void expect_overlap(const status& given, const char* argument) {
    expect(given, error::overlap, argument);
  }
  /// An array of f32 that begins so many bytes into the memory.
  values at(i64 offset, i64 count = input_elements) {
    return {memory.data() + offset, dtype::f32, count};
  }
  template <class T>
  furl::span<T> span_at(i64 offset, i64 count) {
    return {reinterpret_cast<T*>(memory.data() + offset), count};
  }
  bytes bytes_at(i64 offset, u64 size) { return {memory.data() + offset, size}; }

  const plan codes = *plan::make_codes(1, {input_elements});
  const plan flat = make_plan({}, {input_elements});
  const plan positives = make_plan(positives_codec(2), {input_elements});
  const plan mixed = *plan::make_mixed({}, {input_elements}, 5);
  const codebook book = positive_codebook();
  guarded_buffer memory{random_bytes(65536, 3)};
  const std::vector<u8> before = memory.bytes();
  const bytes blob = bytes_at(40960, 4096);  // apart from what follows
};

TEST_F(ExtraArguments, OverlapOfCodesAndMasks) {
  const bytes inside = bytes_at(64, 4096);
  expect_overlap(host::pack(codes, at(0), book, inside, {}), "x");
  expect_overlap(host::unpack(codes, inside, book, at(0)), "y");
  expect_overlap(host::unpack_multiply(codes, inside, book, at(0), at(8192)), "g");
  expect_overlap(host::unpack_multiply(codes, inside, book, at(8192), at(0)), "out");
  expect_overlap(host::unpack_multiply(codes, blob, book, at(0), at(4)), "out");
  expect_overlap(host::relu(codes, at(0), at(8192), inside), "x");
  expect_overlap(host::relu(codes, at(8192), at(0), inside), "y");
  expect_overlap(host::relu(codes, at(0), at(4), blob), "y");
  expect_overlap(host::relu(positives, at(0), at(8192), inside, {1, 2}), "x");
  expect_overlap(host::relu(positives, at(8192), at(0), inside, {1, 2}), "y");
  expect_overlap(host::relu(positives, at(0), at(4), blob, {1, 2}), "y");
  expect_overlap(host::dropout(at(4), 0.5, at(0), {}), "y");
  expect_overlap(host::dropout(codes, at(0), 0.5, at(8192), inside, {}), "x");
  expect_overlap(host::dropout(codes, at(8192), 0.5, at(0), inside, {}), "y");
}

TEST_F(ExtraArguments, OverlapOfMaxPooling) {
  const max_pool_plan p = *max_pool_plan::make({2, 32, 32}, {});
  const bytes inside = bytes_at(64, 4096);
  expect_overlap(host::max_pool(p, at(0), at(8192, 512), inside), "x");
  expect_overlap(host::max_pool(p, at(8192), at(0, 512), inside), "y");
  expect_overlap(host::max_pool(p, at(0), at(8188, 512), blob), "y");
  expect_overlap(host::max_pool_backward(p, inside, at(8192, 512), at(0)), "out");
  expect_overlap(host::max_pool_backward(p, inside, at(0, 512), at(8192)), "g");
  expect_overlap(host::max_pool_backward(p, blob, at(8188, 512), at(0)), "g");
}

TEST_F(ExtraArguments, OverlapOfMeasurements) {
  const auto groups = span_at<quality>(16384, 8);
  quality* const total = span_at<quality>(20480, 1).data;
  const auto run = [&](i64 x, i64 of_blob, furl::span<quality> g, quality* t) {
    return host::measure(flat, at(x), bytes_at(of_blob, 4096), g, t);
  };
  expect_overlap(run(16384 - 4, 40960, groups, total), "groups");
  expect_overlap(run(0, 16384, groups, total), "groups");
  expect_overlap(run(20480, 40960, groups, total), "total");
  expect_overlap(run(0, 20480, groups, total), "total");
  expect_overlap(run(0, 40960, groups, groups.data + 7), "total");
  host::options o;
  for (const i64 where : {16384, 20480}) {
    memory.data()[where] = 2;
    memory.data()[where + 1] = 3;
    o.tile_bits = bytes_at(where, 2);
    const status s = host::measure(mixed, at(0), blob, groups, total, o);
    EXPECT_EQ(s.code, error::overlap);
    EXPECT_STREQ(s.argument, "options.tile_bits");
  }
}

TEST_F(ExtraArguments, OverlapOfAllocations) {
  expect_overlap(host::squared_ranges(flat, at(0), span_at<double>(0, 2)), "squared");
  expect_overlap(host::squared_ranges(flat, const_bytes{blob}, span_at<double>(40960, 2)),
                 "squared");
  expect_overlap(host::expand_sensitivity(flat, span_at<const float>(0, 2), span_at<float>(4, 2)),
                 "of_tiles");
  const auto sensitivity = span_at<const float>(0, 100);
  const auto squared = span_at<const double>(1024, 100);
  expect_overlap(host::allocate_bits(200, sensitivity, squared, bytes_at(399, 100)), "sensitivity");
  expect_overlap(host::allocate_bits(200, sensitivity, squared, bytes_at(1000, 100)),
                 "squared_range");
}

TEST_F(ExtraArguments, OptionsThatMeanNothing) {
  const auto groups = span_at<quality>(16384, 8);
  quality* const total = span_at<quality>(20480, 1).data;
  const auto squared = span_at<double>(16384, 2);
  host::options o;
  o.tile_bits = bytes_at(32768, 2);
  expect(host::measure(flat, at(0), blob, groups, total, o), error::wrong_plan,
         "options.tile_bits");
  expect(host::squared_ranges(flat, const_bytes{blob}, squared, o), error::wrong_plan,
         "options.tile_bits");
  const float pair[] = {-1, 1};
  o = {};
  o.ranges = given_ranges::of_tensor(pair);
  expect(host::measure(flat, at(0), blob, groups, total, o), error::out_of_range, "options.ranges");
  expect(host::squared_ranges(flat, const_bytes{blob}, squared, o), error::out_of_range,
         "options.ranges");
  o = {};
  o.statistics = {nullptr, pair, 1, 1};
  expect(host::measure(flat, at(0), blob, groups, total, o), error::out_of_range,
         "options.statistics");
  expect(host::squared_ranges(flat, const_bytes{blob}, squared, o), error::out_of_range,
         "options.statistics");
}

}  // namespace
}  // namespace furl::test
