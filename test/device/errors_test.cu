// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Bad arguments, errors of the CUDA runtime, and calls that have nothing to do.

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "device/api.cuh"

namespace furl::test {
namespace {

__global__ void do_nothing() {}

TEST(BugReports, Case35_AnEarlierErrorStays) {
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

TEST(api_errors, AnErrorOfOursIsReportedAndGone) {
  const scoped_stream stream;
  {
    const kernel::stream_scope scope(stream);
    const status s = kernel::launch(do_nothing, 1, 4096, stream);
    EXPECT_EQ(s.code, error::cuda);
    EXPECT_EQ(s.value, cudaErrorInvalidConfiguration);
  }
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
}

TEST(api_errors, BadArgumentsAreNamedAndNothingIsWritten) {
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
  o.tile_bits = const_view(key);
  try_compress(p, in, out, o, "options.tile_bits");
  try_compress(mixed.p, in, out, o, "options.tile_bits");
  o.tile_bits = {nullptr, 5};
  try_compress(mixed.p, in, out, o, "options.tile_bits");
  o.tile_bits = {key.data(), 5};
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

TEST(api_errors, NothingIsLaunchedForNoElements) {
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

TEST(api_errors, WidthsThatBreakTheirPreconditionStayInTheBlob) {
  const scoped_stream stream;
  const mixed_setup mixed = make_mixed_plan();
  const floats x(make_input());
  const device_buffer blob(mixed.p.size_bytes());
  const device_buffer widths(std::vector<u8>{8, 0, 200, 8, 8});
  const device_buffer workspace(workspace_bytes(mixed.p));
  options o;
  o.tile_bits = const_view(widths);
  o.workspace = view(workspace);
  EXPECT_TRUE(compress(mixed.p, x.const_view(), view(blob), {1, 2}, stream, o));
  EXPECT_TRUE(decompress(mixed.p, const_view(blob), x.view(), stream, o));
  stream.wait();
}

}  // namespace
}  // namespace furl::test
