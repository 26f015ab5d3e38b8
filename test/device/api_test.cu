// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// What only a device has: streams, graphs, several devices, and the error state of the runtime.

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "device/device.hpp"
#include "furl/furl.cuh"

namespace furl::test {
namespace {

using api = device_test;

constexpr i64 num_elements = 5000;

std::vector<float> make_input(int seed = 1) {
  std::vector<float> x(num_elements);
  for (i64 i = 0; i < num_elements; ++i)
    x[std::size_t(i)] = float((i * 7919 + seed * 131) % 4001) / 400.0f - 5.0f;
  return x;
}

plan make_plan() {
  codec c;
  c.bits = 3;
  c.window = {8};
  return *plan::make(c, {num_elements});
}

struct mixed_setup {
  std::vector<u8> widths;
  plan p;
};

mixed_setup make_mixed_plan() {
  std::vector<u8> widths = {3, 8, 1, 2, 5};
  return {widths, *plan::make_mixed({}, {num_elements}, 19)};
}

std::vector<u8> host_blob(const plan& p, const std::vector<float>& x, random_key key,
                          const std::vector<u8>& widths = {}) {
  alignas(16) static u8 memory[1 << 16];
  const status s = host::compress(p, x, {memory, p.size_bytes()}, key, {nullptr, widths});
  EXPECT_TRUE(s) << to_string(s);
  return {memory, memory + p.size_bytes()};
}

std::vector<float> host_values(const plan& p, const std::vector<u8>& blob) {
  alignas(16) static u8 memory[1 << 16];
  std::copy(blob.begin(), blob.end(), memory);
  std::vector<float> y(std::size_t(p.num_elements()));
  EXPECT_TRUE(host::decompress(p, {memory, blob.size()}, y));
  return y;
}

/// A device array of floats.
struct floats : device_buffer {
  explicit floats(const std::vector<float>& content) : device_buffer(content.size() * 4) {
    write(content.data());
  }
  values view() const { return {as<float>(), i64(size() / 4)}; }
  const_values const_view() const { return {as<const float>(), i64(size() / 4)}; }
  std::vector<float> read_back() const {
    std::vector<float> out(size() / 4);
    read(out.data());
    return out;
  }
};

bytes view(const device_buffer& buffer) {
  return {buffer.data(), buffer.size()};
}
const_bytes const_view(const device_buffer& buffer) {
  return {buffer.data(), buffer.size()};
}

/// Writes `content` to x after a while.
__global__ void write_late(float* x, const float* content, i64 count, int rounds) {
  float waste = 0.0f;
  for (int i = 0; i < rounds; ++i) waste = waste * 0.5f + float(i);
  for (i64 i = threadIdx.x; i < count; i += blockDim.x) x[i] = waste < 0.0f ? 0.0f : content[i];
}

__global__ void next_offset(random_key* key) {
  ++key->offset;
}

TEST_F(api, WorkWaitsForWhatIsOnTheStream) {
  const scoped_stream stream;
  const plan p = make_plan();
  const std::vector<float> input = make_input();
  const floats content(input);
  const floats x(std::vector<float>(num_elements, 99.0f));
  const floats y(std::vector<float>(num_elements, 99.0f));
  const device_buffer blob(p.size_bytes());
  write_late<<<1, 64, 0, stream>>>(x.as<float>(), content.as<float>(), num_elements, 20000);
  ASSERT_TRUE(compress(p, x.const_view(), view(blob), {1, 2}, stream));
  ASSERT_TRUE(decompress(p, const_view(blob), y.view(), stream));
  stream.wait();
  const auto expected = host_blob(p, input, {1, 2});
  EXPECT_EQ(blob.bytes(), expected);
  EXPECT_EQ(y.read_back(), host_values(p, expected));
}

TEST_F(api, StreamsAreIndependent) {
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

/// What a stream is given in `record`, as a graph.
class captured {
 public:
  captured(cudaStream_t stream, const std::function<void()>& record) {
    require(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    record();
    require(cudaStreamEndCapture(stream, &graph_));
    require(cudaGraphInstantiate(&exec_, graph_, 0));
  }
  ~captured() {
    (void)cudaGraphExecDestroy(exec_);
    (void)cudaGraphDestroy(graph_);
  }
  captured(const captured&) = delete;
  captured& operator=(const captured&) = delete;
  void replay(const scoped_stream& stream) const {
    require(cudaGraphLaunch(exec_, stream));
    stream.wait();
  }

 private:
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t exec_ = nullptr;
};

TEST_F(api, GraphReplaysWithAFixedKeyRepeat) {
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

TEST_F(api, GraphReplaysWithADeviceKeyDrawFreshBits) {
  const scoped_stream stream;
  const mixed_setup mixed = make_mixed_plan();
  const plan& p = mixed.p;
  const floats x(make_input());
  const device_buffer blob(p.size_bytes());
  const device_buffer widths(mixed.widths);
  const device_buffer workspace(workspace_bytes(p));
  const device_buffer key(sizeof(random_key));
  const random_key start{9, 100};
  key.write(&start);
  options o;
  o.widths = const_view(widths);
  o.workspace = view(workspace);
  o.device_key = key.as<const random_key>();
  const captured graph(stream, [&] {
    next_offset<<<1, 1, 0, stream>>>(key.as<random_key>());
    EXPECT_TRUE(compress(p, x.const_view(), view(blob), {1, 1}, stream, o));
  });
  std::vector<u8> last;
  for (u64 replay = 1; replay <= 3; ++replay) {
    graph.replay(stream);
    EXPECT_EQ(blob.bytes(), host_blob(p, make_input(), {9, 100 + replay}, mixed.widths));
    EXPECT_NE(blob.bytes(), last);
    last = blob.bytes();
  }
}

TEST_F(api, AnotherDeviceMayBeCurrent) {
  if (!has_device(2)) GTEST_SKIP() << "needs two devices";
  const plan p = make_plan();
  require(cudaSetDevice(1));
  {
    const scoped_stream stream;
    const floats x(make_input());
    const floats y(make_input());
    const device_buffer blob(p.size_bytes());
    require(cudaSetDevice(0));
    EXPECT_TRUE(compress(p, x.const_view(), view(blob), {1, 2}, stream));
    EXPECT_TRUE(decompress(p, const_view(blob), y.view(), stream));
    {
      const result<stash> kept = stash::compress(p, x.const_view(), {1, 2}, stream);
      ASSERT_TRUE(kept) << to_string(kept.status());
      EXPECT_TRUE(kept->restore(y.view(), stream));
    }
    int current = -1;
    require(cudaGetDevice(&current));
    EXPECT_EQ(current, 0);
    stream.wait();
    require(cudaSetDevice(1));
    EXPECT_EQ(blob.bytes(), host_blob(p, make_input(), {1, 2}));

    require(cudaSetDevice(0));
    const device_buffer elsewhere(p.size_bytes());
    const status refused = compress(p, x.const_view(), view(elsewhere), {1, 2}, stream);
    EXPECT_EQ(refused.code, error::wrong_memory);
    EXPECT_STREQ(refused.argument, "blob");
  }
  require(cudaSetDevice(0));
}

TEST_F(api, AnEarlierErrorStays) {
  const scoped_stream stream;
  const plan p = make_plan();
  const floats x(make_input());
  const device_buffer blob(p.size_bytes());
  ASSERT_EQ(cudaPeekAtLastError(), cudaSuccess);
  ASSERT_NE(cudaSetDevice(-1), cudaSuccess);
  const cudaError_t earlier = cudaPeekAtLastError();
  ASSERT_NE(earlier, cudaSuccess);
  EXPECT_TRUE(compress(p, x.const_view(), view(blob), {1, 2}, stream));
  EXPECT_FALSE(compress(p, x.const_view(), {}, {1, 2}, stream));
  EXPECT_EQ(cudaGetLastError(), earlier);
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  stream.wait();
  EXPECT_EQ(blob.bytes(), host_blob(p, make_input(), {1, 2}));
}

TEST_F(api, AnErrorOfOursIsReportedAndGone) {
  const scoped_stream stream;
  {
    const kernel::stream_scope scope(stream);
    const status s = kernel::launch(next_offset, 1, 4096, stream, nullptr);
    EXPECT_EQ(s.code, error::cuda);
    EXPECT_EQ(s.value, cudaErrorInvalidConfiguration);
  }
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
}

TEST_F(api, BadArgumentsAreNamedAndNothingIsWritten) {
  const scoped_stream stream;
  const plan p = make_plan();
  const mixed_setup mixed = make_mixed_plan();
  const floats x(make_input());
  const std::vector<u8> untouched(p.size_bytes(), 0x5a);
  const device_buffer blob(untouched);
  const device_buffer key(16);
  const auto host_memory = make_input();
  std::vector<std::pair<status, const char*>> refused;
  const auto try_compress = [&](const plan& q, const_values in, bytes out, const options& o,
                                const char* argument) {
    refused.emplace_back(compress(q, in, out, {1, 2}, stream, o), argument);
    refused.emplace_back(
        decompress(q, {out.data, out.size_bytes},
                   {const_cast<void*>(in.data), in.type, in.num_elements}, stream, o),
        argument[0] == 'x' ? "y" : argument);
  };
  const const_values in = x.const_view();
  const bytes out = view(blob);
  options o;
  try_compress(*plan::make_codes(1, {num_elements}), in, out, o, "plan");
  try_compress(p, {nullptr, dtype::f32, num_elements}, out, o, "x");
  try_compress(p, {x.as<float>(), num_elements - 1}, out, o, "x");
  try_compress(p, {x.data(), dtype(9), num_elements}, out, o, "x");
  try_compress(p, {x.data() + 2, dtype::f32, num_elements}, out, o, "x");
  try_compress(p, host_memory, out, o, "x");
  try_compress(p, in, {nullptr, out.size_bytes}, o, "blob");
  try_compress(p, in, {blob.data(), out.size_bytes - 1}, o, "blob");
  try_compress(p, in, {blob.data() + 8, out.size_bytes}, o, "blob");
  try_compress(p, in, {x.data(), out.size_bytes}, o, "x");
  o.device_key = reinterpret_cast<const random_key*>(key.data() + 4);
  try_compress(p, in, out, o, "options.device_key");
  o.device_key = nullptr;
  o.widths = const_view(key);
  try_compress(p, in, out, o, "options.widths");
  try_compress(mixed.p, in, out, o, "options.widths");
  o.widths = {nullptr, 5};
  try_compress(mixed.p, in, out, o, "options.widths");
  o.widths = {key.data(), 5};
  try_compress(mixed.p, in, out, o, "options.workspace");
  o.workspace = {nullptr, 8};
  try_compress(mixed.p, in, out, o, "options.workspace");
  o.workspace = {key.data() + 4, 8};
  try_compress(mixed.p, in, out, o, "options.workspace");
  for (const auto& [s, argument] : refused) {
    EXPECT_FALSE(s) << argument;
    EXPECT_STREQ(s.argument, argument) << to_string(s);
  }
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  stream.wait();
  EXPECT_EQ(blob.bytes(), untouched);
  EXPECT_TRUE(compress(p, in, out, {1, 2}, stream));
  stream.wait();
  EXPECT_EQ(blob.bytes(), host_blob(p, make_input(), {1, 2}));
}

TEST_F(api, NothingIsLaunchedForNoElements) {
  const scoped_stream stream;
  const captured graph(stream, [&] {
    for (const extents& shape : {extents{0}, extents{0, 8}, extents{8, 0}}) {
      const plan p = *plan::make({}, shape);
      EXPECT_TRUE(compress(p, {}, {}, {}, stream));
      EXPECT_TRUE(decompress(p, {}, {}, stream));
      EXPECT_TRUE(decompress_add(p, {}, {}, stream));
      EXPECT_TRUE(pack(*plan::make_codes(1, shape), {}, {}, stream));
      EXPECT_TRUE(unpack(*plan::make_codes(1, shape), {}, {}, stream));
    }
  });
  graph.replay(stream);
}

TEST_F(api, WidthsThatBreakTheirPreconditionStayInTheBlob) {
  const scoped_stream stream;
  const mixed_setup mixed = make_mixed_plan();
  const floats x(make_input());
  const device_buffer blob(mixed.p.size_bytes());
  const device_buffer widths(std::vector<u8>{8, 0, 200, 8, 8});
  const device_buffer workspace(workspace_bytes(mixed.p));
  options o;
  o.widths = const_view(widths);
  o.workspace = view(workspace);
  EXPECT_TRUE(compress(mixed.p, x.const_view(), view(blob), {1, 2}, stream, o));
  EXPECT_TRUE(decompress(mixed.p, const_view(blob), x.view(), stream, o));
  stream.wait();
}

}  // namespace
}  // namespace furl::test
