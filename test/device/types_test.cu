// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Elements of CUDA's own 16-bit types, and of a user's, without a cast.

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <gtest/gtest.h>
#include <thrust/device_vector.h>

#include <type_traits>
#include <vector>

#include "device/buffer.cuh"
#include "furl/block.cuh"
#include "furl/plan.hpp"

namespace furl::test {

struct own_half {
  u16 raw;
};

}  // namespace furl::test

template <>
struct furl::dtype_of<furl::test::own_half> {
  static constexpr bool known = true;
  static constexpr dtype value = dtype::f16;
};

namespace furl::test {
namespace {

template <class T>
constexpr dtype type_of_view = dtype_of<T>::value;
static_assert(type_of_view<__half> == dtype::f16 && dtype_of<__half>::known);
static_assert(type_of_view<__nv_bfloat16> == dtype::bf16 && dtype_of<__nv_bfloat16>::known);
static_assert(!dtype_of<u16>::known && !dtype_of<int>::known);
static_assert(std::is_convertible_v<thrust::device_vector<__half>&, values>);
static_assert(std::is_convertible_v<const thrust::device_vector<__nv_bfloat16>&, const_values>);
static_assert(!std::is_convertible_v<const thrust::device_vector<__half>&, values>);
static_assert(!std::is_convertible_v<std::vector<__half>&, values>);
static_assert(std::is_convertible_v<std::vector<__half>&, host::values>);
static_assert(std::is_convertible_v<std::vector<own_half>&, host::values>);
static_assert(std::is_constructible_v<const_values, const own_half*, int>);

TEST(types, ViewsKnowThem) {
  EXPECT_EQ(const_values(static_cast<const __half*>(nullptr), 3).type, dtype::f16);
  EXPECT_EQ(const_values(static_cast<const __nv_bfloat16*>(nullptr), 3).type, dtype::bf16);
  std::vector<own_half> x(5);
  EXPECT_EQ(host::values(x).type, dtype::f16);
  EXPECT_EQ(host::values(x).num_elements, 5);
}

/// Every way by which block functions take elements: to a blob, negated to y, and their range.
template <class T>
__global__ void use_elements(const block_layout layout, const T* x, T* y, u8* blob,
                             min_max* range) {
  __shared__ block_min_max<128>::TempStorage storage;
  const min_max found = block_min_max<128>(storage).of_array(x, layout.num_elements);
  if (threadIdx.x == 0) *range = found;
  const tile_run run(layout);
  if (run.count == 0) return;
  tile_fragment<T> loaded;
  load_tile(x + run.tile * tile_elements, run.count, loaded);
  compress_tile(layout, run.tile, run.count, loaded, {1, 2}, blob);
  tile_fragment<float> v;
  const array_elements<T> elements{x};
  elements.from(run.tile * tile_elements).load_tile(run.count, v);
  float four[4];
  elements.first_four(four);
  const auto negated = map_elements(x, [](float value, i64) { return -value; });
  FURL_UNROLL
  for (int row = 0; row < rows_per_tile; ++row) {
    FURL_UNROLL
    for (int k = 0; k < 4; ++k)
      v.word[row][k] = four[0] == elements.at(0) && negated.at(0) == -four[0] ? -v.word[row][k] : 0;
  }
  store_tile_as(y + run.tile * tile_elements, run.count, v);
}

template <class T>
std::vector<u8> bytes_made_of(const std::vector<u16>& x) {
  codec c;
  c.bits = 5;
  const plan p = *plan::make(c, {i64(x.size())});
  const device_input in(x.size() * sizeof(T));
  in.write(x.data());
  const device_buffer y(x.size() * sizeof(T));
  const device_buffer blob(p.size_bytes());
  const device_buffer range(sizeof(min_max));
  const block_layout layout(p);
  use_elements<<<layout.num_blocks(), layout.num_threads(), layout.shared_bytes()>>>(
      layout, in.as<const T>(), y.as<T>(), blob.data(), range.as<min_max>());
  require(cudaDeviceSynchronize());
  std::vector<u8> all = blob.bytes();
  for (const device_buffer* each : {&y, &range}) {
    const auto more = each->bytes();
    all.insert(all.end(), more.begin(), more.end());
  }
  // y is x but for the signs.
  for (std::size_t i = 0; i < x.size(); ++i)
    EXPECT_EQ(all[p.size_bytes() + 2 * i + 1], (x[i] >> 8) ^ 0x80u);
  return all;
}

TEST(types, BlockFunctionsTakeThem) {
  std::vector<u16> x;
  for (u32 i = 0; i < 3000; ++i) x.push_back(u16(0x3800u + i * 7919u % 2048u));
  const auto halves = bytes_made_of<f16>(x);
  EXPECT_EQ(bytes_made_of<__half>(x), halves);
  EXPECT_EQ(bytes_made_of<own_half>(x), halves);
  const auto bfloats = bytes_made_of<bf16>(x);
  EXPECT_EQ(bytes_made_of<__nv_bfloat16>(x), bfloats);
  EXPECT_NE(halves, bfloats);
}

}  // namespace
}  // namespace furl::test
