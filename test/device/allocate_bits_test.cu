// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Bits of tiles allocated on the device: in a graph, from measuring to compressing; the index of
// tiles; what only a device refuses; and more tiles than a grid has threads.

#include <gtest/gtest.h>

#include <vector>

#include "device/api.cuh"

namespace furl::test {
namespace {

TEST(device_allocation, AGraphAllocatesAndUsesBits) {
  const scoped_stream stream;
  const plan uniform = *plan::make({}, {num_elements});
  const plan mixed = *plan::make_mixed({}, {num_elements}, 17);
  const floats x(make_input());
  const floats y(make_input());
  const std::vector<float> of_parts = {1, 2, 3, 5};
  const device_array<float> parts(of_parts);
  const device_array<double> squared(5);
  const device_array<float> sensitivity(5);
  const device_buffer tile_bits(5);
  const device_buffer allocation(allocation_workspace_bytes(5));
  const device_buffer index(tile_index_bytes(mixed));
  const device_buffer blob(mixed.size_bytes());
  options o;
  o.tile_bits = const_view(tile_bits);
  o.tile_index = const_view(index);
  const captured graph(stream, [&] {
    EXPECT_TRUE(squared_ranges(uniform, x.const_view(), squared.view(), stream));
    EXPECT_TRUE(expand_sensitivity(uniform, parts.const_view(), sensitivity.view(), stream));
    EXPECT_TRUE(allocate_bits(17, sensitivity.const_view(), squared.const_view(), view(tile_bits),
                              view(allocation), stream));
    EXPECT_TRUE(index_tiles(mixed, const_view(tile_bits), view(index), stream));
    EXPECT_TRUE(compress(mixed, x.const_view(), view(blob), {1, 2}, stream, o));
    EXPECT_TRUE(squared_ranges(mixed, const_view(blob), squared.view(), stream, o));
    EXPECT_TRUE(decompress(mixed, const_view(blob), y.view(), stream, o));
  });
  const auto on_host = make_host_backend(1);
  for (int seed = 1; seed < 4; ++seed) {
    auto input = make_input(seed);
    for (std::size_t i = 0; i < 1500; ++i) input[i * 3] *= float(seed);
    x.write(input.data());
    graph.replay(stream);
    std::vector<double> host_squared(5);
    std::vector<float> host_sensitivity(5);
    std::vector<u8> host_bits(5);
    ASSERT_TRUE(on_host->squared_ranges(uniform, host::const_values(input), host_squared));
    ASSERT_TRUE(on_host->expand_sensitivity(uniform, of_parts, host_sensitivity));
    ASSERT_TRUE(on_host->allocate_bits(17, host_sensitivity, host_squared, host_bits));
    EXPECT_EQ(tile_bits.bytes(), host_bits);
    EXPECT_EQ(blob.bytes(), host_blob(mixed, input, {1, 2}, host_bits));
  }
}

TEST(device_allocation, MoreTilesThanThreads) {
  const scoped_stream stream;
  const std::size_t tiles = 1024 * 512 + 700;  // one more round for some
  std::vector<float> sensitivity(tiles);
  std::vector<double> squared(tiles);
  for (std::size_t t = 0; t < tiles; ++t) {
    sensitivity[t] = float(t * 7919 % 1013);
    squared[t] = double(t * 104729 % 4001);
  }
  const u64 sum = 2 * tiles + 12345;
  std::vector<u8> expected(tiles);
  ASSERT_TRUE(make_host_backend(1)->allocate_bits(sum, sensitivity, squared, expected));
  const device_array<float> s(sensitivity);
  const device_array<double> r(squared);
  const device_buffer tile_bits(tiles);
  const device_buffer workspace(allocation_workspace_bytes(i64(tiles)));
  ASSERT_TRUE(
      allocate_bits(sum, s.const_view(), r.const_view(), view(tile_bits), view(workspace), stream));
  stream.wait();
  EXPECT_TRUE(tile_bits.bytes() == expected);
}

TEST(device_allocation, IndexHasTheBitsBeforeEachChunk) {
  const scoped_stream stream;
  for (const std::size_t tiles : {1u, 31u, 32u, 33u, 1000u, 32u * 1024u, 32u * 2049u + 5u}) {
    std::vector<u8> bits(tiles);
    std::vector<u64> expected;
    u64 sum = 0;
    for (std::size_t t = 0; t < tiles; ++t) {
      if (t % 32 == 0) expected.push_back(sum);
      bits[t] = u8(1 + t * 7919 % 13 % 8);
      sum += bits[t];
    }
    const plan p = *plan::make_mixed({}, {i64(tiles) * 1024 - 5}, sum);
    ASSERT_EQ(tile_index_bytes(p), expected.size() * 8);
    for (const u64 misalignment : {0, 1}) {
      const device_buffer content(bits, misalignment);
      const device_array<u64> index(expected.size());
      EXPECT_TRUE(index_tiles(p, const_view(content), view(index), stream));
      stream.wait();
      EXPECT_EQ(index.read_back(), expected) << tiles;
    }
  }
  EXPECT_TRUE(index_tiles(*plan::make_mixed({}, {0}, 0), {}, {}, stream));
}

TEST(device_allocation, IndexRefusesBadArguments) {
  const scoped_stream stream;
  const plan p = *plan::make_mixed({}, {num_elements}, 17);
  const device_buffer content(std::vector<u8>(5, 3));
  const device_array<u64> index(std::vector<u64>(2, 77));
  std::vector<u8> host_memory(16);
  const auto expect = [&](const plan& q, const_bytes bits, bytes out, error code,
                          const char* argument) {
    const status given = index_tiles(q, bits, out, stream);
    EXPECT_EQ(given.code, code) << to_string(given);
    EXPECT_STREQ(given.argument, argument);
  };
  const const_bytes bits = const_view(content);
  expect(*plan::make({}, {num_elements}), bits, view(index), error::wrong_plan, "plan");
  expect(p, {content.data(), 4}, view(index), error::wrong_size, "tile_bits");
  expect(p, {nullptr, 5}, view(index), error::null_pointer, "tile_bits");
  expect(p, {host_memory.data(), 5}, view(index), error::wrong_memory, "tile_bits");
  expect(p, bits, {index.data(), 7}, error::wrong_size, "index");
  expect(p, bits, {nullptr, 8}, error::null_pointer, "index");
  expect(p, bits, {index.data() + 4, 8}, error::misaligned, "index");
  expect(p, {index.data() + 7, 5}, view(index), error::overlap, "tile_bits");
  stream.wait();
  EXPECT_EQ(index.read_back(), std::vector<u64>(2, 77));
}

TEST(device_allocation, BadMemoryIsNamedAndNothingIsWritten) {
  const scoped_stream stream;
  const plan p = *plan::make({}, {num_elements});
  const floats x(make_input());
  const device_array<float> s(std::vector<float>(6, 1.0f));
  const device_array<double> r(std::vector<double>(6, 1.0));
  const device_buffer tile_bits(std::vector<u8>(5, 77));
  const device_buffer workspace(allocation_workspace_bytes(5));
  std::vector<float> host_floats(num_elements, 1.0f);
  std::vector<double> host_doubles(5, 1.0);
  std::vector<u8> host_bytes(1 << 16);
  const auto expect = [&](const status& given, error code, const char* argument) {
    EXPECT_EQ(given.code, code) << to_string(given);
    EXPECT_STREQ(given.argument, argument);
  };
  const furl::span<const float> s5{s.as<float>(), 5};
  const furl::span<const double> r5{r.as<double>(), 5};
  const auto allocate = [&](furl::span<const float> in, furl::span<const double> squared, bytes out,
                            bytes space) {
    return allocate_bits(10, in, squared, out, space, stream);
  };
  expect(allocate({host_floats.data(), 5}, r5, view(tile_bits), view(workspace)),
         error::wrong_memory, "sensitivity");
  expect(allocate(s5, {host_doubles.data(), 5}, view(tile_bits), view(workspace)),
         error::wrong_memory, "squared_range");
  expect(allocate(s5, r5, {host_bytes.data(), 5}, view(workspace)), error::wrong_memory,
         "tile_bits");
  expect(allocate(s5, r5, view(tile_bits), {host_bytes.data(), host_bytes.size()}),
         error::wrong_memory, "workspace");
  expect(allocate(s5, r5, view(tile_bits), {workspace.data(), workspace.size() - 1}),
         error::wrong_size, "workspace");
  expect(allocate(s5, r5, view(tile_bits), {nullptr, workspace.size()}), error::null_pointer,
         "workspace");
  expect(allocate({reinterpret_cast<const float*>(s.data() + 2), 5}, r5, view(tile_bits),
                  view(workspace)),
         error::misaligned, "sensitivity");
  expect(allocate(s5, {reinterpret_cast<const double*>(r.data() + 4), 5}, view(tile_bits),
                  view(workspace)),
         error::misaligned, "squared_range");
  expect(squared_ranges(p, host::const_values(host_floats), {r.as<double>(), 5}, stream),
         error::wrong_memory, "x");
  expect(squared_ranges(p, {x.data() + 2, dtype::f32, num_elements}, {r.as<double>(), 5}, stream),
         error::misaligned, "x");
  expect(squared_ranges(p, x.const_view(), {host_doubles.data(), 5}, stream), error::wrong_memory,
         "squared");
  expect(expand_sensitivity(p, {host_floats.data(), 1}, {s.as<float>(), 5}, stream),
         error::wrong_memory, "of_parts");
  expect(expand_sensitivity(p, s5, {host_floats.data(), 5}, stream), error::wrong_memory,
         "of_tiles");
  stream.wait();
  EXPECT_EQ(tile_bits.bytes(), std::vector<u8>(5, 77));
  EXPECT_EQ(r.read_back(), std::vector<double>(6, 1.0));
  EXPECT_EQ(s.read_back(), std::vector<float>(6, 1.0f));
}

}  // namespace
}  // namespace furl::test
