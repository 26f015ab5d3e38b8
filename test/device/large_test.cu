// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// More elements than a 32-bit number counts. What is at the end of them is compared with what the
// host makes of it alone: with nearest rounding that does not depend on where it is.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "device/buffer.cuh"
#include "device/device.hpp"
#include "device/library.cuh"
#include "support/backend.hpp"

namespace furl::test {
namespace {

constexpr i64 many = i64(1) << 31;
constexpr u64 needed_bytes = u64(24) << 30;

/// Numbers in [-4, 4) that every type holds, as a function of the index.
template <class T>
FURL_HD T element(i64 i) {
  const u32 hash = (u32(i) ^ u32(i >> 32) * 77u) * 2654435761u;
  return round_to<T>(float(int(hash >> 26)) * 0.125f - 4.0f);
}

template <class T>
__global__ void fill(T* x, i64 count) {
  const i64 stride = i64(gridDim.x) * blockDim.x;
  for (i64 i = i64(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride)
    x[i] = element<T>(i);
}
__global__ void fill_codes(u8* x, i64 count) {
  const i64 stride = i64(gridDim.x) * blockDim.x;
  for (i64 i = i64(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride)
    x[i] = u8(u32(i) * 2654435761u >> 24);
}

/// Bytes begin .. begin + count - 1 of device memory.
std::vector<u8> part_of(const u8* memory, u64 begin, u64 count) {
  std::vector<u8> out(count);
  require(cudaMemcpy(out.data(), memory + begin, count, cudaMemcpyDeviceToHost));
  return out;
}
std::vector<u8> part_of(const std::vector<u8>& blob, u64 begin, u64 count) {
  return {blob.begin() + std::ptrdiff_t(begin), blob.begin() + std::ptrdiff_t(begin + count)};
}

/// A shape of many elements, and how many of the outermost indices are compared: their elements
/// must be whole tiles.
struct large_case {
  const char* name;
  extents shape;
  extents window;
  i64 compared;
  bool is_mixed = false;
  bool in_range = false;
};

class large : public testing::Test {
 protected:
  void SetUp() override {
    std::size_t free_bytes = 0;
    std::size_t all_bytes = 0;
    require(cudaMemGetInfo(&free_bytes, &all_bytes));
    if (free_bytes < needed_bytes) GTEST_SKIP() << "no CUDA device with 24 GiB of free memory";
  }

  template <class T>
  void run(const large_case& each) {
    SCOPED_TRACE(each.name + std::string(" of ") + name(dtype_of<T>::value));
    extents tail = each.shape;
    tail.size[0] = each.compared;
    codec c;
    c.window = each.window;
    c.rounding = rounding::nearest;
    const plan of_shape = *plan::make(c, each.shape);
    const i64 tiles = of_shape.num_tiles();
    const i64 tail_tiles = plan::make(c, tail)->num_tiles();
    std::vector<u8> tile_bits;
    u64 sum = 0;
    u64 tail_sum = 0;
    for (i64 t = 0; each.is_mixed && t < tiles; ++t) {
      sum += tile_bits.emplace_back(u8(1 + t * 7 % 4));
      if (t >= tiles - tail_tiles) tail_sum += tile_bits.back();
    }
    const plan p = each.is_mixed ? *plan::make_mixed(c, each.shape, sum) : of_shape;
    const plan of_tail =
        each.is_mixed ? *plan::make_mixed(c, tail, tail_sum) : *plan::make(c, tail);
    const i64 n = p.num_elements();
    const i64 m = of_tail.num_elements();
    ASSERT_GT(n, many);
    ASSERT_EQ(m % tile_elements, 0);

    const device_buffer x(u64(n) * sizeof(T));
    const device_buffer blob(p.size_bytes());
    const device_buffer bits_on_device(tile_bits);
    const device_buffer index(tile_index_bytes(p));
    const device_buffer pair(2 * sizeof(float));
    const float ends[] = {-2.0f, 3.0f};
    pair.write(ends);
    options o;
    given_ranges of_host;
    if (each.in_range) {
      o.ranges = given_ranges::of_tensor(pair.as<float>());
      of_host = given_ranges::of_tensor(ends);
    }
    if (each.is_mixed) {
      o.tile_bits = {bits_on_device.data(), bits_on_device.size()};
      o.tile_index = {index.data(), index.size()};
      ASSERT_TRUE(index_tiles(p, o.tile_bits, furl::bytes{index.data(), index.size()}, stream));
    }
    fill<<<4096, 256, 0, stream>>>(x.as<T>(), n);
    ASSERT_TRUE(furl::compress(p, {x.as<T>(), n}, {blob.data(), blob.size()}, {1, 2}, stream, o));
    require(cudaStreamSynchronize(stream));

    std::vector<T> elements;
    for (i64 i = n - m; i < n; ++i) elements.push_back(element<T>(i));
    std::vector<u64> aligned(of_tail.size_bytes() / 8 + 2);
    auto* expected = reinterpret_cast<u8*>(aligned.data());
    if (reinterpret_cast<std::uintptr_t>(expected) % 16 != 0) expected += 8;
    const std::vector<u8> tail_bits(tile_bits.end() - (each.is_mixed ? tail_tiles : 0),
                                    tile_bits.end());
    ASSERT_TRUE(host->compress(of_tail, elements, {expected, of_tail.size_bytes()}, {}, tail_bits,
                               of_host));
    const std::vector<u8> small(expected, expected + of_tail.size_bytes());
    const u64 meta = u64(size_bytes(c.meta));
    const auto expect_end = [&](u64 end, u64 small_begin, u64 count) {
      EXPECT_EQ(part_of(blob.data(), end - count, count), part_of(small, small_begin, count));
    };
    expect_end(p.meta_offset(), 0, of_tail.meta_offset());
    expect_end(p.meta_offset() + u64(p.num_groups()) * 2 * meta, of_tail.meta_offset(),
               u64(of_tail.num_groups()) * 2 * meta);
    expect_end(p.lfc_offset() + u64(p.num_cells()) * meta, of_tail.lfc_offset(),
               u64(of_tail.num_cells()) * meta);

    o.ranges = {};
    const u64 tail_bytes = u64(m) * sizeof(T);
    for (const bool accumulate : {false, true}) {
      const const_bytes whole{blob.data(), blob.size()};
      const values y{x.as<T>(), n};
      ASSERT_TRUE(accumulate ? furl::decompress_add(p, whole, y, stream, o)
                             : furl::decompress(p, whole, y, stream, o));
      require(cudaStreamSynchronize(stream));
      const const_bytes in{expected, of_tail.size_bytes()};
      ASSERT_TRUE(accumulate ? host->decompress_add(of_tail, in, elements, tail_bits)
                             : host->decompress(of_tail, in, elements, tail_bits));
      const auto* const first = reinterpret_cast<const u8*>(elements.data());
      EXPECT_EQ(part_of(x.data(), x.size() - tail_bytes, tail_bytes),
                std::vector<u8>(first, first + tail_bytes));
    }
  }

  void run_all(const large_case& each) {
    run<float>(each);
    run<f16>(each);
    run<bf16>(each);
  }

  const scoped_stream stream;
  const std::unique_ptr<backend> host = make_host_backend(1);
};

TEST_F(large, Flat) {
  run_all({"flat", {many / 1024 + 3, 1024}, {}, 5});
}
TEST_F(large, FlatInARange) {
  run_all({"flat in a range", {many / 1024 + 3, 1024}, {}, 5, false, true});
}
TEST_F(large, Mixed) {
  run_all({"mixed", {many / 1024 + 3, 1024}, {}, 37, true});
}
TEST_F(large, MeansOfLanes) {
  run_all({"lanes", {many / 1024 + 3, 1024}, {1, 8}, 5});
}
TEST_F(large, MeansOfSlots) {
  run_all({"slots", {many / 4096 + 3, 64, 64}, {1, 8, 8}, 2});
}
TEST_F(large, MeansOfSlotsInARange) {
  run_all({"slots in a range", {many / 4096 + 3, 64, 64}, {1, 8, 8}, 2, false, true});
}
TEST_F(large, MeansOfColumns) {
  run_all({"columns", {many / 4096 + 3, 64, 64}, {1, 8, 1}, 2});
}
TEST_F(large, MeansInATable) {
  run_all({"table", {many / 4096 + 3, 16, 16, 16}, {1, 8, 8, 8}, 2});
}
TEST_F(large, MeansOfMixed) {
  run_all({"mixed slots", {many / 4096 + 3, 64, 64}, {1, 8, 8}, 20, true});
}

/// Random bits are those of the element's index, in all of its bits.
TEST_F(large, StochasticRounding) {
  const i64 n = many + 3 * tile_elements;
  codec c;
  c.bits = 8;
  const plan p = *plan::make(c, {n});
  const device_buffer x(u64(n) * sizeof(float));
  const device_buffer blob(p.size_bytes());
  fill<<<4096, 256, 0, stream>>>(x.as<float>(), n);
  const random_key key{7, 8};
  ASSERT_TRUE(furl::compress(p, {x.as<float>(), n}, {blob.data(), blob.size()}, key, stream));
  require(cudaStreamSynchronize(stream));
  const auto codes = part_of(blob.data(), p.meta_offset() - tile_elements, tile_elements);
  for (i64 begin = n - tile_elements; begin < n; begin += c.group) {
    float lo = element<float>(begin);
    float hi = lo;
    for (i64 i = begin; i < begin + c.group; ++i) {
      lo = std::min(lo, element<float>(i));
      hi = std::max(hi, element<float>(i));
    }
    const group_params group = make_group(lo, hi, c.bits, c.meta);
    for (i64 i = begin; i < begin + c.group; ++i) {
      const u32 fixed = fixed_point(element<float>(i), group.lo, group.inverse);
      // With 8 bits, row r of a column is byte r of it.
      ASSERT_EQ(codes[std::size_t(i - (n - tile_elements))],
                round_code(fixed, random_bits(u64(i), key)));
    }
  }
}

TEST_F(large, Codes) {
  const i64 n = many + 3 * tile_elements;
  const i64 m = 5 * tile_elements;
  const plan p = *plan::make_codes(3, {n});
  const plan of_tail = *plan::make_codes(3, {m});
  const device_buffer codes{u64(n)};
  const device_buffer blob(p.size_bytes());
  fill_codes<<<4096, 256, 0, stream>>>(codes.data(), n);
  ASSERT_TRUE(furl::pack(p, furl::const_bytes{codes.data(), codes.size()},
                         {blob.data(), blob.size()}, stream));
  require(cudaStreamSynchronize(stream));
  std::vector<u8> tail = part_of(codes.data(), u64(n - m), u64(m));
  alignas(16) static u8 expected[1 << 16];
  ASSERT_TRUE(host->pack(of_tail, tail, {expected, of_tail.size_bytes()}));
  EXPECT_EQ(part_of(blob.data(), p.size_bytes() - of_tail.size_bytes(), of_tail.size_bytes()),
            std::vector<u8>(expected, expected + of_tail.size_bytes()));
  ASSERT_TRUE(furl::unpack(p, furl::const_bytes{blob.data(), blob.size()},
                           {codes.data(), codes.size()}, stream));
  require(cudaStreamSynchronize(stream));
  for (u8& code : tail) code = u8(code & 7u);
  EXPECT_EQ(part_of(codes.data(), u64(n - m), u64(m)), tail);
}

}  // namespace
}  // namespace furl::test
