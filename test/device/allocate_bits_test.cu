// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Widths found on the device: in a graph, from measuring to compressing; what only a device
// refuses; and more tiles than a grid has threads.

#include <gtest/gtest.h>

#include <vector>

#include "device/api.cuh"

namespace furl::test {
namespace {

TEST(device_widths, AGraphFindsAndUsesThem) {
  const scoped_stream stream;
  const plan uniform = *plan::make({}, {num_elements});
  const plan mixed = *plan::make_mixed({}, {num_elements}, 17);
  const floats x(make_input());
  const floats y(make_input());
  const std::vector<float> of_parts = {1, 2, 3, 5};
  const device_array<float> parts(of_parts);
  const device_array<double> squared(5);
  const device_array<float> sensitivity(5);
  const device_buffer widths(5);
  const device_buffer allocation(allocation_workspace_bytes(5));
  const device_buffer workspace(workspace_bytes(mixed));
  const device_buffer blob(mixed.size_bytes());
  options o;
  o.tile_bits = const_view(widths);
  o.workspace = view(workspace);
  const captured graph(stream, [&] {
    EXPECT_TRUE(squared_ranges(uniform, x.const_view(), squared.view(), stream));
    EXPECT_TRUE(expand_sensitivity(uniform, parts.const_view(), sensitivity.view(), stream));
    EXPECT_TRUE(allocate_bits(17, sensitivity.const_view(), squared.const_view(), view(widths),
                              view(allocation), stream));
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
    std::vector<u8> host_widths(5);
    ASSERT_TRUE(on_host->squared_ranges(uniform, const_values(input), host_squared));
    ASSERT_TRUE(on_host->expand_sensitivity(uniform, of_parts, host_sensitivity));
    ASSERT_TRUE(on_host->allocate_bits(17, host_sensitivity, host_squared, host_widths));
    EXPECT_EQ(widths.bytes(), host_widths);
    EXPECT_EQ(blob.bytes(), host_blob(mixed, input, {1, 2}, host_widths));
  }
}

TEST(device_widths, MoreTilesThanThreads) {
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
  const device_buffer widths(tiles);
  const device_buffer workspace(allocation_workspace_bytes(i64(tiles)));
  ASSERT_TRUE(
      allocate_bits(sum, s.const_view(), r.const_view(), view(widths), view(workspace), stream));
  stream.wait();
  EXPECT_TRUE(widths.bytes() == expected);
}

TEST(device_widths, BadMemoryIsNamedAndNothingIsWritten) {
  const scoped_stream stream;
  const plan p = *plan::make({}, {num_elements});
  const floats x(make_input());
  const device_array<float> s(std::vector<float>(6, 1.0f));
  const device_array<double> r(std::vector<double>(6, 1.0));
  const device_buffer widths(std::vector<u8>(5, 77));
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
  expect(allocate({host_floats.data(), 5}, r5, view(widths), view(workspace)), error::wrong_memory,
         "sensitivity");
  expect(allocate(s5, host_doubles, view(widths), view(workspace)), error::wrong_memory,
         "squared_range");
  expect(allocate(s5, r5, {host_bytes.data(), 5}, view(workspace)), error::wrong_memory, "widths");
  expect(allocate(s5, r5, view(widths), host_bytes), error::wrong_memory, "workspace");
  expect(allocate(s5, r5, view(widths), {workspace.data(), workspace.size() - 1}),
         error::wrong_size, "workspace");
  expect(allocate(s5, r5, view(widths), {nullptr, workspace.size()}), error::null_pointer,
         "workspace");
  expect(allocate({reinterpret_cast<const float*>(s.data() + 2), 5}, r5, view(widths),
                  view(workspace)),
         error::misaligned, "sensitivity");
  expect(allocate(s5, {reinterpret_cast<const double*>(r.data() + 4), 5}, view(widths),
                  view(workspace)),
         error::misaligned, "squared_range");
  expect(squared_ranges(p, const_values(host_floats), {r.as<double>(), 5}, stream),
         error::wrong_memory, "x");
  expect(squared_ranges(p, {x.data() + 2, dtype::f32, num_elements}, {r.as<double>(), 5}, stream),
         error::misaligned, "x");
  expect(squared_ranges(p, x.const_view(), host_doubles, stream), error::wrong_memory, "squared");
  expect(expand_sensitivity(p, {host_floats.data(), 1}, {s.as<float>(), 5}, stream),
         error::wrong_memory, "of_parts");
  expect(expand_sensitivity(p, s5, {host_floats.data(), 5}, stream), error::wrong_memory,
         "of_tiles");
  stream.wait();
  EXPECT_EQ(widths.bytes(), std::vector<u8>(5, 77));
  EXPECT_EQ(r.read_back(), std::vector<double>(6, 1.0));
  EXPECT_EQ(s.read_back(), std::vector<float>(6, 1.0f));
}

}  // namespace
}  // namespace furl::test
