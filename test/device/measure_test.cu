// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Given ranges and what a blob has kept, in a graph; and what only a device refuses.

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "device/api.cuh"

namespace furl::test {
namespace {

/// Running ranges that a replay has moved on.
__global__ void widen(float* pairs, i64 count) {
  const i64 i = threadIdx.x;
  if (i < count) pairs[i] *= 2.0f;
}

bool same(const std::vector<quality>& a, const std::vector<quality>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof a[0]) == 0;
}

TEST(device_measure, AGraphUsesRangesAndMeasures) {
  const scoped_stream stream;
  codec c;
  c.group = 32;
  for (const extents& window : {extents{}, extents{1, 8}}) {
    c.window = window;
    const plan p = *plan::make(c, {4, 12000});  // more groups than one block adds up
    std::vector<float> x(48000);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(i * 7919 % 4001) / 400.0f - 5.0f;
    const floats elements(x);
    std::vector<float> pairs = {-1, 1, -0.5f, 0.25f, 0, 2, -3, 0};
    const floats ranges(pairs);
    const device_buffer blob(p.size_bytes());
    const device_array<quality> groups(std::size_t(p.num_groups()));
    const device_array<quality> total(1);
    const device_buffer workspace(measure_workspace_bytes(p));
    EXPECT_EQ(workspace.size(), 2 * sizeof(quality));
    options o;
    o.ranges = given_ranges::of_channels(ranges.as<float>(), 4, 0);
    const captured graph(stream, [&] {
      widen<<<1, 32, 0, stream>>>(ranges.as<float>(), 8);
      EXPECT_TRUE(compress(p, elements.const_view(), view(blob), {1, 2}, stream, o));
      EXPECT_TRUE(measure(p, elements.const_view(), const_view(blob), groups.view(),
                          total.as<quality>(), view(workspace), stream));
    });
    const auto on_host = make_host_backend(1);
    for (int replay = 0; replay < 3; ++replay) {
      graph.replay(stream);
      for (float& end : pairs) end *= 2;
      alignas(16) static u8 memory[1 << 16];
      ASSERT_LE(p.size_bytes(), sizeof memory);
      ASSERT_TRUE(on_host->compress(p, x, {memory, p.size_bytes()}, {1, 2}, {},
                                    given_ranges::of_channels(pairs.data(), 4, 0)));
      EXPECT_EQ(blob.bytes(), std::vector<u8>(memory, memory + p.size_bytes()));
      std::vector<quality> host_groups(std::size_t(p.num_groups()));
      std::vector<quality> host_total(1);
      ASSERT_TRUE(on_host->measure(p, x, {memory, p.size_bytes()}, host_groups, host_total.data()));
      EXPECT_TRUE(same(groups.read_back(), host_groups));
      EXPECT_TRUE(same(total.read_back(), host_total));
    }
  }
}

TEST(device_measure, BadMemoryIsNamedAndNothingIsWritten) {
  const scoped_stream stream;
  codec c;
  c.group = 32;
  const plan p = *plan::make(c, {48000});
  const floats x(std::vector<float>(48000, 1.0f));
  const std::vector<u8> untouched(p.size_bytes(), 0x5a);
  const device_buffer blob(untouched);
  const quality unset{-7, -7, -7};
  const std::vector<quality> unset_groups(1501, unset);
  const device_array<quality> groups(unset_groups);
  const device_buffer workspace(measure_workspace_bytes(p) + 8);
  std::vector<float> host_pair = {-1, 1};
  std::vector<quality> host_groups(1500);
  const bytes space{workspace.data(), measure_workspace_bytes(p)};
  const auto expect = [&](const status& given, error code, const char* argument) {
    EXPECT_EQ(given.code, code) << to_string(given);
    EXPECT_STREQ(given.argument, argument);
  };
  quality* const total = groups.as<quality>() + 1500;
  const auto run = [&](furl::span<quality> of_groups, quality* of_all, bytes scratch) {
    return measure(p, x.const_view(), const_view(blob), of_groups, of_all, scratch, stream);
  };
  const furl::span<quality> some{groups.as<quality>(), 1500};
  const furl::span<quality> misaligned{reinterpret_cast<quality*>(groups.data() + 4), 1500};
  expect(run({host_groups.data(), 1500}, total, space), error::wrong_memory, "groups");
  expect(run(some, host_groups.data(), space), error::wrong_memory, "total");
  expect(run(misaligned, total, space), error::misaligned, "groups");
  expect(run(some, reinterpret_cast<quality*>(groups.data() + 36004), space), error::misaligned,
         "total");
  expect(run(some, total, {host_groups.data(), space.size_bytes}), error::wrong_memory,
         "workspace");
  expect(run(some, total, {space.data, space.size_bytes - 1}), error::wrong_size, "workspace");
  expect(run(some, total, {nullptr, space.size_bytes}), error::null_pointer, "workspace");
  expect(run(some, total, {workspace.data() + 4, space.size_bytes}), error::misaligned,
         "workspace");
  const auto compress_with = [&](const given_ranges& ranges) {
    options with;
    with.ranges = ranges;
    return compress(p, x.const_view(), view(blob), {1, 2}, stream, with);
  };
  expect(compress_with(given_ranges::of_tensor(host_pair.data())), error::wrong_memory,
         "options.ranges");
  expect(
      compress_with(given_ranges::of_tensor(reinterpret_cast<const float*>(workspace.data() + 2))),
      error::misaligned, "options.ranges");
  stream.wait();
  EXPECT_EQ(blob.bytes(), untouched);
  EXPECT_TRUE(same(groups.read_back(), unset_groups));
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
}

}  // namespace
}  // namespace furl::test
