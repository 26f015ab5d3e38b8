// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// What the extras refuse on a device: options that mean nothing to a call, arrays that overlap what
// it writes, and memory that the device cannot reach.

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "device/api.cuh"

namespace furl::test {
namespace {

constexpr i64 n = 2048;

class device_extras : public testing::Test {
 protected:
  using call = std::function<status(const options&)>;

  values at(i64 offset, i64 count = n) const { return {memory.data() + offset, dtype::f32, count}; }
  template <class T>
  furl::span<T> span_at(i64 offset, i64 count) const {
    return {reinterpret_cast<T*>(memory.data() + offset), count};
  }
  bytes bytes_at(i64 offset, u64 size) const { return {memory.data() + offset, size}; }

  void expect(const status& given, error code, const char* argument) const {
    EXPECT_EQ(given.code, code) << to_string(given);
    EXPECT_STREQ(given.argument, argument);
  }
  void expect_overlap(const status& given, const char* argument) const {
    expect(given, error::overlap, argument);
  }
  static codec of_positives() {
    codec c;
    c.coding = coding::positives;
    return c;
  }
  void TearDown() override {
    stream.wait();
    EXPECT_EQ(memory.bytes(), std::vector<u8>(memory.size(), 0x5a));
  }

  /// All calls of the extras but for those on a blob of a mixed plan.
  std::vector<call> calls(i64 blob_at = 40960) const {
    const bytes blob = bytes_at(blob_at, 4096);
    const values x = at(0);
    const values y = at(8192);
    const auto squared = span_at<double>(16384, 2);
    return {
        [=](const options& o) { return pack(codes, x, book, blob, {}, stream, o); },
        [=](const options& o) { return unpack(codes, const_bytes{blob}, book, y, stream, o); },
        [=](const options& o) { return unpack_multiply(codes, blob, book, x, y, stream, o); },
        [=](const options& o) { return relu(codes, x, y, blob, stream, o); },
        [=](const options& o) { return relu(positives, x, y, blob, {}, stream, o); },
        [=](const options& o) { return dropout(x, 0.5, y, {}, stream, o); },
        [=](const options& o) { return dropout(codes, x, 0.5, y, blob, {}, stream, o); },
        [=](const options& o) { return max_pool(pooling, x, at(8192, 512), blob, stream, o); },
        [=](const options& o) {
          return max_pool_backward(pooling, blob, at(8192, 512), x, stream, o);
        },
        [=](const options& o) {
          return measure(flat, x, blob, span_at<quality>(16384, 8), span_at<quality>(20480, 1).data,
                         {}, stream, o);
        },
        [=](const options& o) { return squared_ranges(flat, x, squared, stream, o); },
        [=](const options& o) {
          return squared_ranges(flat, const_bytes{blob}, squared, stream, o);
        },
        [=](const options& o) {
          return expand_sensitivity(flat, span_at<const float>(0, 1), span_at<float>(8, 2), stream,
                                    o);
        },
        [=](const options& o) {
          return allocate_bits(4, span_at<const float>(0, 2), span_at<const double>(8, 2),
                               bytes_at(24, 2), bytes_at(8192, allocation_workspace_bytes(2)),
                               stream, o);
        },
        [=](const options& o) {
          return index_tiles(mixed, bytes_at(0, 2), bytes_at(8, 8), stream, o);
        },
    };
  }

  const plan codes = *plan::make_codes(1, {n});
  const plan positives = *plan::make(of_positives(), {n});
  const plan flat = *plan::make({}, {n});
  const plan mixed = *plan::make_mixed({}, {n}, 5);
  const max_pool_plan pooling = *max_pool_plan::make({2, 32, 32}, {});
  const codebook book = positive_codebook();
  const scoped_stream stream;
  const device_buffer memory{std::vector<u8>(1 << 17, 0x5a)};
};

TEST_F(device_extras, OptionsThatMeanNothingAreRefused) {
  for (const call& run : calls()) {
    options o;
    o.tile_bits = bytes_at(32768, 2);
    expect(run(o), error::wrong_plan, "options.tile_bits");
    o = {};
    o.tile_index = bytes_at(32768, 8);
    expect(run(o), error::wrong_plan, "options.tile_index");
    o = {};
    o.ranges = given_ranges::of_tensor(span_at<const float>(32768, 2).data);
    expect(run(o), error::out_of_range, "options.ranges");
    o = {};
    o.statistics = {nullptr, span_at<const float>(32768, 2).data, 1, 1};
    expect(run(o), error::out_of_range, "options.statistics");
  }
}

TEST_F(device_extras, OptionsOfMixedPlans) {
  const bytes blob = bytes_at(40960, 4096);
  const auto groups = span_at<quality>(16384, 8);
  quality* const total = span_at<quality>(20480, 1).data;
  const auto run = [&](i64 bits, i64 index) {
    options o;
    o.tile_bits = bytes_at(bits, 2);
    o.tile_index = bytes_at(index, 8);
    return measure(mixed, at(0), blob, groups, total, {}, stream, o);
  };
  expect_overlap(run(16384, 32768), "options.tile_bits");
  expect_overlap(run(20480, 32768), "options.tile_bits");
  expect_overlap(run(32768, 16384 + 8), "options.tile_index");
  expect_overlap(run(32768, 20480), "options.tile_index");
  options o;
  expect(measure(mixed, at(0), blob, groups, total, {}, stream, o), error::wrong_size,
         "options.tile_bits");
  expect(squared_ranges(mixed, const_bytes{blob}, span_at<double>(16384, 2), stream, o),
         error::wrong_size, "options.tile_bits");
  o.tile_bits = bytes_at(32768, 2);
  expect(measure(mixed, at(0), blob, groups, total, {}, stream, o), error::wrong_size,
         "options.tile_index");
  expect_overlap(squared_ranges(mixed, const_bytes{blob}, span_at<double>(32768, 2), stream, o),
                 "options.tile_bits");
}

TEST_F(device_extras, OverlapsAreRefused) {
  const bytes blob = bytes_at(40960, 4096);
  const bytes inside = bytes_at(64, 4096);
  expect_overlap(pack(codes, at(0), book, inside, {}, stream), "x");
  expect_overlap(unpack(codes, const_bytes{inside}, book, at(0), stream), "y");
  expect_overlap(unpack_multiply(codes, inside, book, at(0), at(8192), stream), "g");
  expect_overlap(unpack_multiply(codes, inside, book, at(8192), at(0), stream), "out");
  expect_overlap(unpack_multiply(codes, blob, book, at(0), at(4), stream), "out");
  expect_overlap(relu(codes, at(0), at(8192), inside, stream), "x");
  expect_overlap(relu(codes, at(8192), at(0), inside, stream), "y");
  expect_overlap(relu(positives, at(0), at(8192), inside, {}, stream), "x");
  expect_overlap(relu(positives, at(8192), at(0), inside, {}, stream), "y");
  expect_overlap(dropout(at(4), 0.5, at(0), {}, stream), "y");
  expect_overlap(dropout(codes, at(0), 0.5, at(8192), inside, {}, stream), "x");
  expect_overlap(max_pool(pooling, at(0), at(8188, 512), blob, stream), "y");
  expect_overlap(max_pool(pooling, at(8192), at(0, 512), inside, stream), "y");
  expect_overlap(max_pool_backward(pooling, inside, at(8192, 512), at(0), stream), "out");
  options key_inside;
  for (const i64 where : {8192, 40960}) {
    key_inside.device_key = span_at<const random_key>(where, 1).data;
    expect_overlap(dropout(codes, at(0), 0.5, at(8192), blob, {}, stream, key_inside),
                   "options.device_key");
  }
  expect_overlap(pack(codes, at(0), book, blob, {}, stream, key_inside), "options.device_key");
  const auto sensitivity = span_at<const float>(0, 2);
  const auto squared = span_at<const double>(8, 2);
  const u64 size = allocation_workspace_bytes(2);
  const auto allocate = [&](i64 bits, i64 workspace) {
    return allocate_bits(4, sensitivity, squared, bytes_at(bits, 2), bytes_at(workspace, size),
                         stream);
  };
  expect_overlap(allocate(0, 8192), "sensitivity");
  expect_overlap(allocate(20, 8192), "squared_range");
  expect_overlap(allocate(24, 0), "sensitivity");
  expect_overlap(allocate(24, 8), "squared_range");
  expect_overlap(allocate(64, 32), "tile_bits");
  codec c;
  c.group = 32;
  const plan many = *plan::make(c, {40000});  // partial sums of 1250 groups
  const values x = at(65536, 40000 / 4);
  const auto groups = span_at<quality>(0, 1250);
  quality* const total = span_at<quality>(49152, 1).data;
  const auto run = [&](i64 workspace) {
    return measure(many, {x.data, dtype::bf16, 40000}, bytes_at(50176, many.size_bytes()), groups,
                   total, bytes_at(workspace, 64), stream);
  };
  ASSERT_LT(50176 + many.size_bytes(), 65536U);
  expect_overlap(run(65536 + 8), "x");
  expect_overlap(run(50176), "blob");
  expect_overlap(run(64), "groups");
  expect_overlap(run(49152), "total");
}

TEST_F(device_extras, AMisalignedKeyIsRefused) {
  options o;
  o.device_key = reinterpret_cast<const random_key*>(memory.data() + 4);
  for (const call& run : calls()) expect(run(o), error::misaligned, "options.device_key");
}

TEST_F(device_extras, AMisalignedBlobIsRefused) {
  int num_refused = 0;
  for (const call& run : calls(40960 + 8)) {
    options without_a_key;
    without_a_key.device_key = reinterpret_cast<const random_key*>(memory.data() + 4);
    const status s = run(without_a_key);  // which calls without a blob refuse
    if (s.argument == std::string("blob")) {
      expect(s, error::misaligned, "blob");
      ++num_refused;
    }
  }
  EXPECT_EQ(num_refused, 10);
}

TEST_F(device_extras, HostMemoryIsRefused) {
  std::vector<float> memory_of_host(n, 1.0f);
  const host::values x(memory_of_host);
  const bytes blob = bytes_at(40960, 4096);
  expect(pack(codes, x, book, blob, {}, stream), error::wrong_memory, "x");
  expect(unpack(codes, const_bytes{blob}, book, x, stream), error::wrong_memory, "y");
  expect(unpack_multiply(codes, blob, book, x, at(0), stream), error::wrong_memory, "g");
  expect(relu(codes, x, at(0), blob, stream), error::wrong_memory, "x");
  expect(relu(positives, x, at(0), blob, {}, stream), error::wrong_memory, "x");
  expect(dropout(at(0), 0.5, x, {}, stream), error::wrong_memory, "y");
  expect(max_pool(pooling, x, at(0, 512), blob, stream), error::wrong_memory, "x");
  expect(max_pool_backward(pooling, blob, at(0, 512), x, stream), error::wrong_memory, "out");
}

}  // namespace
}  // namespace furl::test
