// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// What only a device has: streams, graphs, several devices, and threads that use them; among it the
// public bug reports of that kind, under their numbers.

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "device/api.cuh"

namespace furl::test {
namespace {

/// Writes `content` to x after a while.
__global__ void write_late(float* x, const float* content, i64 count, int rounds) {
  float waste = 0.0f;
  for (int i = 0; i < rounds; ++i) waste = waste * 0.5f + float(i);
  for (i64 i = threadIdx.x; i < count; i += blockDim.x) x[i] = waste < 0.0f ? 0.0f : content[i];
}

__global__ void next_offset(random_key* key) {
  ++key->offset;
}

TEST(BugReports, Case33_WorkWaitsForWhatIsOnTheStream) {
  const scoped_stream stream;
  const plan p = make_plan();
  const std::vector<float> input = make_input();
  const floats content(input);
  const floats x(std::vector<float>(num_elements, 99.0f));
  const floats y(std::vector<float>(num_elements, 99.0f));
  const device_buffer blob(p.size_bytes());
  require(cudaDeviceSynchronize());  // the stream does not wait for the one that has filled them
  write_late<<<1, 64, 0, stream>>>(x.as<float>(), content.as<float>(), num_elements, 20000);
  ASSERT_TRUE(compress(p, x.const_view(), view(blob), {1, 2}, stream));
  ASSERT_TRUE(decompress(p, const_view(blob), y.view(), stream));
  stream.wait();
  const auto expected = host_blob(p, input, {1, 2});
  EXPECT_EQ(blob.bytes(), expected);
  EXPECT_EQ(y.read_back(), host_values(p, expected));
}

TEST(api, StreamsAreIndependent) {
  const scoped_stream streams[3];
  const plan p = make_plan();
  std::vector<std::unique_ptr<floats>> x;
  std::vector<std::unique_ptr<device_buffer>> blobs;
  for (int i = 0; i < 3; ++i) {
    x.push_back(std::make_unique<floats>(make_input(i)));
    blobs.push_back(std::make_unique<device_buffer>(p.size_bytes()));
    ASSERT_TRUE(compress(p, x.back()->const_view(), view(*blobs.back()), {5, u64(i)}, streams[i]));
  }
  for (int i = 0; i < 3; ++i) {
    streams[i].wait();
    EXPECT_EQ(blobs[std::size_t(i)]->bytes(), host_blob(p, make_input(i), {5, u64(i)}));
  }
}

TEST(BugReports, Case34_GraphReplaysWithAFixedKeyRepeat) {
  const scoped_stream stream;
  const plan p = make_plan();
  const floats x(make_input());
  const floats y(make_input());
  const device_buffer blob(p.size_bytes());
  const captured graph(stream, [&] {
    EXPECT_TRUE(compress(p, x.const_view(), view(blob), {3, 4}, stream));
    EXPECT_TRUE(decompress(p, const_view(blob), y.view(), stream));
  });
  for (int replay = 0; replay < 3; ++replay) {
    const auto input = make_input(replay);
    x.write(input.data());
    graph.replay(stream);
    EXPECT_EQ(blob.bytes(), host_blob(p, input, {3, 4}));
    EXPECT_EQ(y.read_back(), host_values(p, host_blob(p, input, {3, 4})));
  }
}

TEST(BugReports, Case34_GraphReplaysWithADeviceKeyDrawFreshBits) {
  const scoped_stream stream;
  const mixed_setup mixed;
  const plan& p = mixed.p;
  const floats x(make_input());
  const device_buffer blob(p.size_bytes());
  const device_array<random_key> key({{9, 100}});
  const mixed_options tiles(mixed, stream);
  stream.wait();
  options o = tiles.get();
  o.device_key = key.as<random_key>();
  const captured graph(stream, [&] {
    next_offset<<<1, 1, 0, stream>>>(key.as<random_key>());
    EXPECT_TRUE(compress(p, x.const_view(), view(blob), {1, 1}, stream, o));
  });
  std::vector<u8> last;
  for (u64 replay = 1; replay <= 3; ++replay) {
    graph.replay(stream);
    EXPECT_EQ(blob.bytes(), host_blob(p, make_input(), {9, 100 + replay}, mixed.tile_bits));
    EXPECT_NE(blob.bytes(), last);
    last = blob.bytes();
  }
}

TEST(BugReports, Case32_AnotherDeviceMayBeCurrent) {
  if (!has_device(2)) GTEST_SKIP() << "needs two devices";
  const plan p = make_plan();
  const auto expected = host_blob(p, make_input(), {1, 2});
  for (const bool check_pointers : {true, false}) {
    SCOPED_TRACE(check_pointers);
    options o;
    o.check_pointers = check_pointers;
    require(cudaSetDevice(1));
    const scoped_stream stream;
    const floats x(make_input());
    const floats y(make_input());
    const device_buffer blob(p.size_bytes());
    require(cudaSetDevice(0));
    EXPECT_TRUE(compress(p, x.const_view(), view(blob), {1, 2}, stream, o));
    EXPECT_TRUE(decompress(p, const_view(blob), y.view(), stream, o));
    {
      const result<stash> kept = stash::compress(p, x.const_view(), {1, 2}, stream, o);
      ASSERT_TRUE(kept) << to_string(kept.status());
      EXPECT_TRUE(kept->restore(y.view(), stream, o));
    }
    int current = -1;
    require(cudaGetDevice(&current));
    EXPECT_EQ(current, 0);
    EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
    stream.wait();
    EXPECT_EQ(blob.bytes(), expected);
    EXPECT_EQ(y.read_back(), host_values(p, expected));
  }
}

TEST(BugReports, Case32_MemoryOfAnotherDeviceIsRefused) {
  if (!has_device(2)) GTEST_SKIP() << "needs two devices";
  const plan p = make_plan();
  const std::vector<u8> untouched(p.size_bytes(), 0x5a);
  for (const int of_stream : {0, 1}) {
    SCOPED_TRACE(of_stream);
    require(cudaSetDevice(of_stream));
    const scoped_stream stream;
    const floats x(make_input());
    const device_buffer blob(untouched);
    require(cudaSetDevice(1 - of_stream));
    const floats elsewhere(make_input());
    const device_buffer blob_elsewhere(untouched);
    for (const int current : {0, 1}) {
      require(cudaSetDevice(current));
      ASSERT_NE(cudaSetDevice(-1), cudaSuccess);
      const cudaError_t earlier = cudaPeekAtLastError();
      const std::pair<status, const char*> refused[] = {
          {compress(p, x.const_view(), view(blob_elsewhere), {1, 2}, stream), "blob"},
          {compress(p, elsewhere.const_view(), view(blob), {1, 2}, stream), "x"},
          {decompress(p, const_view(blob), elsewhere.view(), stream), "y"},
          {decompress_add(p, const_view(blob_elsewhere), x.view(), stream), "blob"}};
      for (const auto& [s, argument] : refused) {
        EXPECT_EQ(s.code, error::wrong_memory);
        EXPECT_STREQ(s.argument, argument);
      }
      EXPECT_EQ(cudaGetLastError(), earlier);
      int left = -1;
      require(cudaGetDevice(&left));
      EXPECT_EQ(left, current);
    }
    stream.wait();
    EXPECT_EQ(blob.bytes(), untouched);
    EXPECT_EQ(blob_elsewhere.bytes(), untouched);
    EXPECT_EQ(elsewhere.read_back(), make_input());
  }
  require(cudaSetDevice(0));
}

/// Dimensions of one element, and windows wider than a dimension, cost nothing: these grids are
/// those of planes and of features, which one kernel compresses.
TEST(api, DimensionsOfOneAreNoDimensions) {
  const scoped_stream stream;
  const struct {
    extents shape;
    extents window;
  } cases[] = {{{16384, 1, 64, 64}, {1, 8, 8, 8}},
               {{16384, 64, 64, 1}, {1, 8, 8, 8}},
               {{64, 1, 1, 4096}, {1, 8, 8, 8}},
               {{4096, 7, 1, 8}, {1, 64, 2, 8}}};
  const device_input x(u64(16384) * 4096 * sizeof(float));
  for (const auto& each : cases) {
    codec c;
    c.window = each.window;
    const plan p = *plan::make(c, each.shape);
    const device_buffer blob(p.size_bytes());
    const captured graph(stream, [&] {
      EXPECT_TRUE(compress(p, {x.as<const float>(), p.num_elements()}, view(blob), {1, 2}, stream));
    });
    EXPECT_EQ(graph.num_nodes(), 1u) << each.shape[0] << " x " << each.shape[1] << " x ...";
  }
}

/// Plans whose kernels differ in what they need.
std::vector<plan> make_plans() {
  std::vector<plan> plans;
  for (const int group : {32, 64, 256, 1024}) {
    for (int bits = 1; bits <= max_bits; ++bits) {
      codec c;
      c.bits = bits;
      c.group = group;
      if (bits % 2 == 0) c.window = {4};
      plans.push_back(*plan::make(c, {num_elements}));
    }
  }
  return plans;
}

TEST(BugReports, Case36_ThreadsDoNotDisturbEachOther) {
  constexpr int num_threads = 8;
  const std::vector<plan> plans = make_plans();
  std::vector<std::vector<u8>> expected;
  for (const plan& p : plans) expected.push_back(host_blob(p, make_input(), {7, 8}));
  std::vector<int> wrong(num_threads, -1);
  std::vector<std::thread> threads;
  for (int t = 0; t < num_threads; ++t) {
    threads.emplace_back([&, t] {
      const scoped_stream stream;
      const floats x(make_input());
      wrong[std::size_t(t)] = 0;
      for (std::size_t i = 0; i < plans.size(); ++i) {
        const std::size_t at = (i + std::size_t(t)) % plans.size();
        const device_buffer blob(plans[at].size_bytes());
        const status s = compress(plans[at], x.const_view(), view(blob), {7, 8}, stream);
        stream.wait();
        if (!s || blob.bytes() != expected[at]) ++wrong[std::size_t(t)];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(num_threads, 0));
}

}  // namespace
}  // namespace furl::test
