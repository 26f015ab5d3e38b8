// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// What has no call of the library: the copy, the parts of its kernels, and CUB beside them.

#include <cub/device/device_reduce.cuh>
#include <cub/device/device_transform.cuh>
#include <cuda/std/functional>
#include <cuda/std/tuple>
#include <limits>
#include <type_traits>
#include <vector>

#include "device_call.cuh"
#include "furl/block/layout.cuh"
#include "furl/block/min_max.cuh"
#include "furl/block/tile.cuh"
#include "furl/detail/device/kernels.cuh"
#include "furl/detail/device/launch.cuh"

namespace furl::bench {
namespace {

/// The range of every slice of elements_per_block_range elements. One block a slice.
template <class T>
__global__ void __launch_bounds__(kernel::block_threads)
    block_ranges(const T* x, i64 num_elements, min_max* ranges) {
  using reduction = block_min_max<kernel::block_threads>;
  __shared__ typename reduction::TempStorage storage;
  const i64 begin = i64(blockIdx.x) * elements_per_block_range;
  const i64 left = num_elements - begin;
  const i64 count = left < elements_per_block_range ? left : elements_per_block_range;
  const min_max range = reduction(storage).of_array(x + begin, count);
  if (threadIdx.x == 0) ranges[blockIdx.x] = range;
}

/// The range of every group. One warp a tile.
template <class T>
__global__ void __launch_bounds__(kernel::block_threads)
    group_ranges(blob_layout layout, const T* x, min_max* ranges) {
  const lane_group place = group_of_lane(lane_index(), layout.group);
  for (i64 tile = first_tile(); tile < layout.num_tiles; tile += tile_stride()) {
    const int count = elements_in_tile(layout.num_elements, tile);
    tile_fragment<T> elements;
    load_tile(x + tile * tile_elements, count, elements);
    const min_max range = tile_min_max(elements, layout.group);
    if (place.is_first && place.begin < count) ranges[place.index(tile)] = range;
  }
}

struct range_of_one {
  template <class T>
  __device__ range operator()(T element) const {
    const float value = to_f32(element);
    return {value, value};
  }
};
struct range_of_both {
  __device__ range operator()(range a, range b) const {
    return {fminf(a.lo, b.lo), fmaxf(a.hi, b.hi)};
  }
};

/// Makes the random bits that codes of every tile are rounded with, a byte for each element. They
/// are written nowhere: that a whole word of their sum is one given number almost never happens,
/// but the compiler does not know.
__global__ void __launch_bounds__(kernel::block_threads)
    make_random_bits(i64 num_tiles, random_key key, u32* never) {
  for (i64 tile = first_tile(); tile < num_tiles; tile += tile_stride()) {
    u32 sum = 0;
    FURL_UNROLL
    for (u32 half = 0; half < 2; ++half) {
      const philox_block random = random_words(u64(tile), half, u32(lane_index()), key);
      sum ^= random.word[0] ^ random.word[1] ^ random.word[2] ^ random.word[3];
    }
    if (sum == 0x9E3779B9u) *never = sum;
  }
}

__device__ __forceinline__ u32 word_of(u32 word) {
  return word;
}
__device__ __forceinline__ u32 word_of(float word) {
  return __float_as_uint(word);
}

/// Loads every tile, and does as little with it as it takes to keep the loads.
template <class T>
__global__ void __launch_bounds__(kernel::block_threads)
    load_tiles(const T* x, i64 num_elements, u32* never) {
  for (i64 tile = first_tile(); tile * tile_elements < num_elements; tile += tile_stride()) {
    tile_fragment<T> elements;
    load_tile(x + tile * tile_elements, elements_in_tile(num_elements, tile), elements);
    u32 sum = 0;
    FURL_UNROLL
    for (const auto& row : elements.word) {
      FURL_UNROLL
      for (const auto word : row) sum ^= word_of(word);
    }
    if (sum == 0x9E3779B9u) *never = sum;
  }
}

/// Stores a tile of zeros in every place.
template <class T>
__global__ void __launch_bounds__(kernel::block_threads) store_tiles(T* y, i64 num_elements) {
  const tile_fragment<T> zeros = {};
  for (i64 tile = first_tile(); tile * tile_elements < num_elements; tile += tile_stride())
    store_tile(y + tile * tile_elements, elements_in_tile(num_elements, tile), zeros);
}

/// A warp a tile.
kernel::grid_shape grid_of(const device_call& c) {
  return {kernel::blocks_for((num_elements(c.of->r) - 1) / tile_elements + 1)};
}

/// Calls function(x), x a pointer to the elements as their type.
template <class Function>
status with_elements(const device_call& c, const Function& function) {
  return with_type(c.of->r.type, [&](auto element) {
    return function(c.array<decltype(element)>(operand::x).data);
  });
}

status copy(const device_call& c) {
  return kernel::copy(c.y().data, c.x().data, c.x().size_bytes(), cudaMemcpyDeviceToDevice,
                      c.stream);
}

status load(const device_call& c) {
  return with_elements(c, [&](auto* x) {
    return kernel::launch(load_tiles<std::remove_pointer_t<decltype(x)>>, grid_of(c), c.stream, x,
                          num_elements(c.of->r), reinterpret_cast<u32*>(x));
  });
}

status store(const device_call& c) {
  return with_elements(c, [&](auto* x) {
    return kernel::launch(store_tiles<std::remove_pointer_t<decltype(x)>>, grid_of(c), c.stream, x,
                          num_elements(c.of->r));
  });
}

status random(const device_call& c) {
  return kernel::launch(make_random_bits, grid_of(c), c.stream, c.plan().num_tiles(), c.key(),
                        c.array<u32>(operand::x).data);
}

status find_ranges_of_blocks(const device_call& c) {
  const auto ranges = c.array<min_max>(operand::result);
  return with_elements(c, [&](auto* x) {
    return kernel::launch(block_ranges<std::remove_pointer_t<decltype(x)>>, {unsigned(ranges.size)},
                          c.stream, x, num_elements(c.of->r), ranges.data);
  });
}

status find_ranges_of_groups(const device_call& c) {
  return with_elements(c, [&](auto* x) {
    return kernel::launch(group_ranges<std::remove_pointer_t<decltype(x)>>, grid_of(c), c.stream,
                          blob_layout(c.plan()), x, c.array<min_max>(operand::result).data);
  });
}

status pool_cells(const device_call& c) {
  const i64 num_cells = c.plan().num_cells();
  return with_elements(c, [&](auto* x) {
    using type = std::remove_pointer_t<decltype(x)>;
    return kernel::launch(kernel::average_pool<type, kernel::architectures>,
                          {kernel::blocks_for((num_cells - 1) / warp_threads + 1)}, c.stream,
                          cell_list(c.plan().grid()), i64{0}, num_cells, x, c.plan().codec().meta,
                          c.array<u8>(operand::result).data);
  });
}

status index(const device_call& c) {
  return index_tiles(c.plan(), c.tile_bits(), c.all_of(operand::tile_index), c.stream);
}

status add_by_cub(const device_call& c) {
  const float* const x = c.array<float>(operand::x).data;
  float* const sum = c.array<float>(operand::y).data;
  return kernel::cuda_status(
      cub::DeviceTransform::Transform(cuda::std::make_tuple(x, sum), sum, num_elements(c.of->r),
                                      cuda::std::plus<float>{}, c.stream),
      "add_arrays");
}

status find_range_by_cub(const device_call& c) {
  const bytes scratch = c.workspace();
  std::size_t size = scratch.size_bytes;
  constexpr float infinity = std::numeric_limits<float>::infinity();
  return with_elements(c, [&](auto* x) {
    return kernel::cuda_status(
        cub::DeviceReduce::TransformReduce(
            scratch.data, size, x, c.array<range>(operand::result).data, num_elements(c.of->r),
            range_of_both{}, range_of_one{}, range{infinity, -infinity}, c.stream),
        "cub_min_max");
  });
}

}  // namespace

std::vector<call<device_call>> part_calls() {
  using p = primitive;
  using o = operand;
  return {
      {p::copy, p::copy, {o::x, o::y}, copy},
      {p::add_arrays, p::add_arrays, {o::x, o::y, o::y}, add_by_cub},
      {p::tile_load, p::tile_load, {o::x}, load},
      {p::tile_store, p::tile_store, {o::x}, store},
      {p::random_bits, p::random_bits, {o::x}, random},
      {p::cub_min_max, p::cub_min_max, {o::x, o::result}, find_range_by_cub},
      {p::block_min_max, p::block_min_max, {o::x, o::result}, find_ranges_of_blocks},
      {p::group_min_max, p::group_min_max, {o::x, o::result}, find_ranges_of_groups},
      {p::pool, p::pool, {o::x, o::result}, pool_cells},
      {p::index_tiles, p::index_tiles, {o::tile_bits, o::tile_index}, index},
  };
}

}  // namespace furl::bench
