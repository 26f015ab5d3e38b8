// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Bad arguments, errors of the CUDA runtime, and calls that have nothing to do.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
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
  const status s = kernel::run_on(stream, true, {}, [&] {
    return kernel::launch(do_nothing, {1, 4096}, stream);
  });
  EXPECT_EQ(s.code, error::cuda);
  EXPECT_EQ(s.value, cudaErrorInvalidConfiguration);
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
}

TEST(api_errors, BadArgumentsAreNamedAndNothingIsWritten) {
  const scoped_stream stream;
  const plan p = make_plan();
  const mixed_setup mixed;
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
  try_compress(p, host::const_values(host_memory), out, o, "x");
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
  try_compress(mixed.p, in, out, o, "options.tile_index");
  o.tile_index = {nullptr, 8};
  try_compress(mixed.p, in, out, o, "options.tile_index");
  o.tile_index = {key.data() + 4, 8};
  try_compress(mixed.p, in, out, o, "options.tile_index");
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
  EXPECT_EQ(graph.num_nodes(), 0u);
  graph.replay(stream);
}

/// A blob whose every byte is 0x5a, compressed with bits of tiles that a mixed plan does not have.
struct broken_blob {
  std::vector<u8> bytes;
  std::vector<float> restored;  // over 99
};

broken_blob compress_broken(const mixed_setup& broken, const std::vector<u64>& index = {}) {
  const scoped_stream stream;
  const mixed_options tiles(broken, stream);
  stream.wait();
  if (!index.empty()) tiles.index().write(index.data());
  const floats x(make_input());
  const floats y(std::vector<float>(num_elements, 99.0f));
  const device_buffer blob(std::vector<u8>(broken.p.size_bytes(), 0x5a));
  EXPECT_TRUE(compress(broken.p, x.const_view(), view(blob), {1, 2}, stream, tiles.get()));
  EXPECT_TRUE(decompress(broken.p, const_view(blob), y.view(), stream, tiles.get()));
  stream.wait();
  return {blob.bytes(), y.read_back()};
}

/// Codes of a tile: `bits` rows from row `before` on.
std::vector<u8> rows_of(const std::vector<u8>& blob, u64 before, u64 bits) {
  const auto begin = blob.begin() + std::ptrdiff_t(before * row_elements);
  return {begin, begin + std::ptrdiff_t(bits * row_elements)};
}
/// The ranges of a tile's four groups.
std::vector<u8> ranges_of(const plan& p, const std::vector<u8>& blob, u64 tile) {
  const u64 end = std::min<u64>(p.lfc_offset(), p.meta_offset() + 16 * tile + 16);
  return {blob.begin() + std::ptrdiff_t(p.meta_offset() + 16 * tile),
          blob.begin() + std::ptrdiff_t(end)};
}
std::vector<float> tile_of(const std::vector<float>& x, u64 tile) {
  const u64 end = std::min<u64>(x.size(), (tile + 1) * tile_elements);
  return {x.begin() + std::ptrdiff_t(tile * tile_elements), x.begin() + std::ptrdiff_t(end)};
}

/// The buffers of these tests look at their guards.
TEST(api_errors, WidthsThatBreakTheirPreconditionStayInTheBlob) {
  const std::vector<u8> untouched(8 * row_elements, 0x5a);
  {
    SCOPED_TRACE("one tile has no bits, and the others move up");
    const mixed_setup right;
    const auto expected = host_blob(right.p, make_input(), {1, 2}, right.tile_bits);
    const auto values = host_values(right.p, expected, right.tile_bits);
    const broken_blob broken = compress_broken({{3, 8, 0, 2, 5}, right.p});
    EXPECT_EQ(rows_of(broken.bytes, 0, 11), rows_of(expected, 0, 11));
    EXPECT_EQ(rows_of(broken.bytes, 11, 7), rows_of(expected, 12, 7));
    EXPECT_EQ(rows_of(broken.bytes, 18, 1), rows_of(untouched, 0, 1));
    for (const u64 tile : {0, 1, 3, 4}) {
      EXPECT_EQ(ranges_of(right.p, broken.bytes, tile), ranges_of(right.p, expected, tile));
      EXPECT_EQ(tile_of(broken.restored, tile), tile_of(values, tile));
    }
    EXPECT_EQ(ranges_of(right.p, broken.bytes, 2), std::vector<u8>(16, 0x5a));
    EXPECT_EQ(tile_of(broken.restored, 2), std::vector<float>(tile_elements, 99.0f));
  }
  {
    SCOPED_TRACE("all tiles but the first have no bits, too many, or no place");
    const mixed_setup right{{8, 2, 3, 5, 1}};
    const auto expected = host_blob(right.p, make_input(), {1, 2}, right.tile_bits);
    const auto values = host_values(right.p, expected, right.tile_bits);
    const broken_blob broken = compress_broken({{8, 0, 200, 8, 8}, right.p});
    EXPECT_EQ(rows_of(broken.bytes, 0, 8), rows_of(expected, 0, 8));
    EXPECT_EQ(rows_of(broken.bytes, 8, 8), untouched);
    EXPECT_EQ(rows_of(broken.bytes, 16, 3), rows_of(untouched, 0, 3));
    EXPECT_EQ(ranges_of(right.p, broken.bytes, 0), ranges_of(right.p, expected, 0));
    EXPECT_EQ(tile_of(broken.restored, 0), tile_of(values, 0));
    for (u64 tile = 1; tile < 5; ++tile) {
      EXPECT_EQ(ranges_of(right.p, broken.bytes, tile)[0], 0x5a);
      EXPECT_EQ(tile_of(broken.restored, tile)[0], 99.0f);
    }
  }
}

/// Sums of bits beyond the blob, among them such whose offsets in bytes wrap round to its start.
TEST(api_errors, AnIndexOfTilesThatIsWrongStaysInTheBlob) {
  const mixed_setup mixed;
  for (const u64 before : {u64(19), u64(1) << 20, u64(1) << 56, u64(1) << 57, u64(3) << 57,
                           (u64(1) << 57) + 3, u64(1) << 63, ~u64(0) - 100}) {
    SCOPED_TRACE(before);
    const broken_blob broken = compress_broken(mixed, {before});
    EXPECT_EQ(rows_of(broken.bytes, 0, 19), std::vector<u8>(19 * row_elements, 0x5a));
    EXPECT_EQ(ranges_of(mixed.p, broken.bytes, 0)[0], 0x5a);
    EXPECT_EQ(broken.restored, std::vector<float>(num_elements, 99.0f));
  }
}

TEST(api_errors, RangesAreForCompressAlone) {
  const scoped_stream stream;
  const plan p = make_plan();
  const plan codes = *plan::make_codes(2, {num_elements});
  const floats x(make_input());
  const device_buffer blob(std::vector<u8>(4 * num_elements, 0x5a));
  const device_buffer one_per_byte(std::vector<u8>(num_elements, 0x5a));
  const floats pair({1.0f, 1.0f});
  options o;
  o.ranges = given_ranges::of_tensor(pair.as<const float>());
  options without_scope;
  without_scope.ranges.pairs = pair.as<const float>();
  for (const options& each : {o, without_scope}) {
    const status refused[] = {decompress(p, const_view(blob), x.view(), stream, each),
                              decompress_add(p, const_view(blob), x.view(), stream, each),
                              pack(codes, const_view(one_per_byte), view(blob), stream, each),
                              unpack(codes, const_view(blob), view(one_per_byte), stream, each)};
    for (const status& s : refused) {
      EXPECT_EQ(s.code, error::out_of_range);
      EXPECT_STREQ(s.argument, "options.ranges");
    }
  }
  for (const int scope : {4, 255}) {
    o.ranges.scope = range_scope(scope);
    const status s = compress(p, x.const_view(), view(blob), {}, stream, o);
    EXPECT_EQ(s.code, error::out_of_range);
    EXPECT_EQ(s.value, scope);
    EXPECT_STREQ(s.argument, "options.ranges.scope");
  }
  stream.wait();
  EXPECT_EQ(x.read_back(), make_input());
  EXPECT_EQ(blob.bytes(), std::vector<u8>(4 * num_elements, 0x5a));
  EXPECT_EQ(one_per_byte.bytes(), std::vector<u8>(num_elements, 0x5a));
}

TEST(BugReports, Case137_OptionsOverlapWhatACallWrites) {
  const scoped_stream stream;
  const mixed_setup mixed;
  const plan uniform = make_plan();
  const plan codes = *plan::make_codes(2, {num_elements});
  const floats x(make_input());
  const floats y(make_input());
  const device_buffer blob(std::vector<u8>(4096, 0x5a));
  const device_buffer one_per_byte(std::vector<u8>(num_elements, 0x5a));
  const mixed_options tiles(mixed, stream);
  const auto expect_overlap = [](const status& s, const char* argument) {
    EXPECT_EQ(s.code, error::overlap) << to_string(s);
    EXPECT_STREQ(s.argument, argument);
  };
  // Each option in turn lies at an end of what is written.
  const auto refuse = [&](const device_buffer& written, u64 size, const plan& p, const auto& call) {
    const auto first = [&](u64 bytes) { return written.data() + size - bytes; };
    if (p.kind() == plan_kind::mixed) {
      options o = tiles.get();
      o.tile_bits = {written.data(), 5};
      expect_overlap(call(o), "options.tile_bits");
      o.tile_bits = {written.data() + size - 1, 5};
      expect_overlap(call(o), "options.tile_bits");
      o = tiles.get();
      o.tile_index = {first(8), 8};
      expect_overlap(call(o), "options.tile_index");
    }
    options o = p.kind() == plan_kind::mixed ? tiles.get() : options{};
    o.device_key = reinterpret_cast<const random_key*>(first(8));
    expect_overlap(call(o), "options.device_key");
  };
  const auto to_blob = [&](const plan& p) {
    return
        [&, p](const options& o) { return compress(p, x.const_view(), view(blob), {}, stream, o); };
  };
  refuse(blob, mixed.p.size_bytes(), mixed.p, to_blob(mixed.p));
  refuse(blob, uniform.size_bytes(), uniform, to_blob(uniform));
  options with_ranges;
  with_ranges.ranges = given_ranges::of_tensor(blob.as<float>() + uniform.size_bytes() / 4 - 1);
  expect_overlap(to_blob(uniform)(with_ranges), "options.ranges");
  refuse(y, y.size(), mixed.p, [&](const options& o) {
    return decompress(mixed.p, const_view(blob), y.view(), stream, o);
  });
  refuse(y, y.size(), mixed.p, [&](const options& o) {
    return decompress_add(mixed.p, const_view(blob), y.view(), stream, o);
  });
  refuse(blob, codes.size_bytes(), codes, [&](const options& o) {
    return pack(codes, const_view(one_per_byte), view(blob), stream, o);
  });
  refuse(one_per_byte, one_per_byte.size(), codes, [&](const options& o) {
    return unpack(codes, const_view(blob), view(one_per_byte), stream, o);
  });
  stream.wait();
  EXPECT_EQ(y.read_back(), make_input());
  EXPECT_EQ(blob.bytes(), std::vector<u8>(4096, 0x5a));
  EXPECT_EQ(one_per_byte.bytes(), std::vector<u8>(num_elements, 0x5a));
}

}  // namespace
}  // namespace furl::test
