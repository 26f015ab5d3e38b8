// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Block and warp functions on their own, and kernels at indices that no test could hold in memory.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "device/buffer.cuh"
#include "furl/furl.cuh"

namespace furl::test {
namespace {

template <int Threads, class T>
__global__ void min_max_kernel(const T* x, i64 count, min_max* out) {
  __shared__ typename block_min_max<Threads>::TempStorage storage;
  const min_max found = block_min_max<Threads>(storage).of_array(x, count);
  out[threadIdx.x] = found;
}

template <int Threads, class T>
min_max block_range(const std::vector<T>& x) {
  const device_array<T> in(x);
  const device_array<min_max> out(Threads);
  min_max_kernel<Threads>
      <<<1, Threads>>>(in.template as<const T>(), i64(x.size()), out.as<min_max>());
  const std::vector<min_max> found = out.read_back();
  for (const min_max& each : found) {
    EXPECT_EQ(bits_of(each.lo), bits_of(found[0].lo));
    EXPECT_EQ(bits_of(each.hi), bits_of(found[0].hi));
  }
  return found[0];
}

TEST(block, MinMaxOfAnyCount) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const std::size_t count : {1, 10, 17, 31, 33, 500, 1000}) {
    EXPECT_EQ(block_range<64>(std::vector<float>(count, infinity)).lo, infinity);
    EXPECT_EQ(block_range<64>(std::vector<float>(count, -infinity)).hi, -infinity);
    std::vector<float> falling(count);
    for (std::size_t i = 0; i < count; ++i) falling[i] = -3.0f - 0.5f * float(i);
    const min_max range = block_range<256>(falling);
    EXPECT_EQ(range.hi, -3.0f);
    EXPECT_EQ(range.lo, falling.back());
    falling[count / 2] = std::nanf("");
    EXPECT_TRUE(std::isnan(block_range<1024>(falling).lo));
    EXPECT_TRUE(std::isnan(block_range<32>(falling).hi));
    const std::vector<f16> halves(count, f16{0xc200});
    EXPECT_EQ(block_range<128>(halves).hi, -3.0f);
  }
  const min_max none = block_range<64>(std::vector<float>{});
  EXPECT_EQ(none.lo, infinity);
  EXPECT_EQ(none.hi, -infinity);
  const float tiny = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(block_range<64>(std::vector<float>{tiny, 2 * tiny}).hi, 2 * tiny);
  EXPECT_EQ(bits_of(block_range<64>(std::vector<float>{-0.0f, 0.0f}).lo), 0x80000000u);
}

__global__ void far_tile(const float* x, i64 tile, tile_codec c, random_key key, u8* codes,
                         u8* metadata_of_tile) {
  tile_fragment<float> elements;
  load_tile(x, tile_elements, elements);
  const i64 first_group = tile * (tile_elements / c.group);
  compress_tile(elements, tile_elements, tile, c, key, codes, metadata_of_tile - 4 * first_group);
}

/// A tile far beyond 2^32 elements, against the one-thread functions.
TEST(block, IndicesBeyond32Bits) {
  std::vector<float> x(tile_elements);
  for (int i = 0; i < tile_elements; ++i) x[std::size_t(i)] = float((i * 37) % 256) * 0.013f;
  const device_array<float> in(x);
  const random_key key{0xfedcba9876543210u, 0x123456789u};
  for (const i64 tile : {i64(1) << 20, (i64(1) << 21) - 1, (i64(1) << 22) + 3, (i64(1) << 33) + 5,
                         (i64(1) << 45) + 7}) {
    const tile_codec c{8, 256, dtype::bf16, true};
    const device_buffer codes(1024);
    const device_buffer metadata(16);
    far_tile<<<1, 32>>>(in.as<const float>(), tile, c, key, codes.data(), metadata.data());
    const std::vector<u8> packed = codes.bytes();
    for (int i = 0; i < tile_elements; ++i) {
      const int begin = i / 256 * 256;
      float lo = x[std::size_t(begin)];
      float hi = lo;
      for (int j = begin; j < begin + 256; ++j) {
        lo = std::min(lo, x[std::size_t(j)]);
        hi = std::max(hi, x[std::size_t(j)]);
      }
      const group_params group = make_group(lo, hi, 8, dtype::bf16);
      const u32 fixed = fixed_point(x[std::size_t(i)], group.lo, group.inverse);
      const u32 expected = round_code(fixed, random_bits(u64(tile) * tile_elements + u64(i), key));
      // With 8 bits, row r of a column is byte r of it.
      ASSERT_EQ(packed[std::size_t(i)], expected) << "tile " << tile << " element " << i;
    }
  }
}

/// Few blocks for many tiles: every warp goes on to its next. Some tiles have groups that are coded
/// by other instructions, and the key comes from either side.
template <class T>
void expect_same_on_any_grid() {
  const i64 n = 41 * tile_elements + 17;
  std::vector<T> x(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = round_to<T>(float(i * 2654435761u % 1000) - 300.0f);
  for (const int i : {5000, 20000, 21000, 39000}) x[std::size_t(i)] = round_to<T>(NAN);
  const device_array<T> in(x);
  const random_key key{1, 2};
  const device_array<random_key> device_key(std::vector<random_key>{key});
  const plan p = *plan::make(codec{}, {n});
  const blob_layout layout(p);
  std::vector<u8> first;
  for (const unsigned blocks : {1u, 3u, 11u}) {
    for (const random_key* const at :
         {static_cast<const random_key*>(nullptr), device_key.as<const random_key>()}) {
      const device_buffer blob(p.size_bytes());
      const device_buffer y(x.size() * 4);
      kernel::compress<T, kernel::architectures><<<blocks, kernel::block_threads>>>(
          layout, detail::wide_layout(p, in.template as<const T>()), detail::tile_random(key),
          in.template as<const T>(), blob.data(), kernel::key_argument{key, at});
      kernel::decompress<float, kernel::output::replace, false, kernel::architectures>
          <<<blocks, kernel::block_threads>>>(layout, blob.data(), y.as<float>(), {});
      auto written = blob.bytes();
      const auto values = y.bytes();
      written.insert(written.end(), values.begin(), values.end());
      if (first.empty()) first = written;
      EXPECT_EQ(written, first) << blocks;
    }
  }
}

TEST(block, GridsOfAnySizeWriteTheSame) {
  expect_same_on_any_grid<float>();
  expect_same_on_any_grid<bf16>();
}

/// The tiles of a plan that have a way of their own.
u32 num_wide_turns(codec c, i64 n, u64 address = 64) {
  return detail::wide_layout(*plan::make(c, {n}), reinterpret_cast<const bf16*>(address)).num_turns;
}

TEST(block, WideTilesAreWholeAndAlignedAndOfOneNumberOfBits) {
  EXPECT_EQ(num_wide_turns(codec{}, 10 * tile_elements + 1023), 5u);
  EXPECT_EQ(num_wide_turns(codec{}, 11 * tile_elements), 5u);
  EXPECT_EQ(num_wide_turns(codec{}, 2 * tile_elements - 1), 0u);
  EXPECT_EQ(num_wide_turns(codec{}, (i64(1) << 40)), 1u << 25);  // beyond, counters have more bits
  EXPECT_EQ(num_wide_turns(codec{}, 4 * tile_elements, 66), 0u);
  codec c;
  c.group = 128;
  EXPECT_EQ(num_wide_turns(c, 4 * tile_elements), 0u);
  c = {};
  c.rounding = rounding::nearest;
  EXPECT_EQ(num_wide_turns(c, 4 * tile_elements), 0u);
}

__global__ void random_words_kernel(u32 tile, random_key key, philox_block* out) {
  const detail::tile_random random(key);
  for (u32 half = 0; half < 2; ++half)
    out[32 * half + threadIdx.x] = random.words(tile, half, threadIdx.x);
}

TEST(block, RandomWordsOfTilesAreThoseOfTheFormat) {
  for (const u32 tile : {0u, 1u, 12345u, u32(detail::tile_random::max_tiles - 1)}) {
    for (const random_key key : {random_key{0, 0}, random_key{1, 2}, random_key{~0ull, ~0ull},
                                 random_key{0x0123456789abcdefull, 0xfedcba9876543210ull}}) {
      const device_array<philox_block> out(64);
      random_words_kernel<<<1, 32>>>(tile, key, out.as<philox_block>());
      const std::vector<philox_block> found = out.read_back();
      for (u32 i = 0; i < 64; ++i) {
        const philox_block expected = random_words(tile, i / 32, i % 32, key);
        for (int k = 0; k < 4; ++k) EXPECT_EQ(found[i].word[k], expected.word[k]);
      }
    }
  }
}

/// A rotated plan's codes and values, whatever the grid and the run of its warps.
void expect_same_on_any_grid(const plan& p, const device_array<float>& in) {
  const blob_layout layout(p);
  const kernel::key_argument key{{1, 2}, nullptr};
  std::vector<u8> first;
  for (const unsigned blocks : {1u, 3u, 11u}) {
    for (const int run : {1, tiles_per_draw}) {
      const device_buffer blob(p.size_bytes());
      const device_buffer y(u64(p.num_elements()) * 4);
      kernel::compress_rotated<float, kernel::architectures>
          <<<blocks, kernel::block_threads>>>(layout, run, in.as<const float>(), blob.data(), key);
      kernel::decompress_rotated<float, kernel::output::replace, kernel::architectures>
          <<<blocks, kernel::block_threads>>>(layout, run, blob.data(), y.as<float>(), key);
      auto written = blob.bytes();
      const auto values = y.bytes();
      written.insert(written.end(), values.begin(), values.end());
      if (first.empty()) first = written;
      EXPECT_EQ(written, first) << blocks << ' ' << run;
    }
  }
}

/// The same of rotated codes, whose warps take one tile in turns or several.
TEST(block, GridsOfAnySizeWriteTheSameRotatedCodes) {
  const i64 n = 40 * tile_elements + 17;
  std::vector<float> x(std::size_t(n), 0.0f);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(i * 2654435761u % 1000) - 300.0f;
  const device_array<float> in(x);
  codec c;
  c.coding = coding::rotated;
  for (c.bits = 1; c.bits <= max_rotated_bits; ++c.bits)
    expect_same_on_any_grid(*plan::make(c, {n}), in);
}

}  // namespace
}  // namespace furl::test
