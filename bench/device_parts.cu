// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Rows of the parts: ranges, pooling, packing. What has no call of its own is launched here.

#include <vector>

#include "device_rows.hpp"
#include "device_timing.cuh"
#include "furl/block/layout.cuh"
#include "furl/block/min_max.cuh"
#include "furl/block/tile.cuh"
#include "furl/compress.cuh"
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

void run_ranges(benchmark::State& state, const row& r) {
  const plan p = plan_of(r);
  const bool of_blocks = r.what == primitive::block_min_max;
  const i64 blocks = (p.num_elements() - 1) / elements_per_block_range + 1;
  const u64 num_ranges = u64(of_blocks ? blocks : p.num_groups());
  const rotating_arrays arrays({tensor_bytes(r), num_ranges * sizeof(min_max)});
  arrays.fill(0, deviates_as(r.type));
  arrays.replicate();
  with_type(r.type, [&](auto element) {
    using type = decltype(element);
    measure(state, r, bytes_moved(r, p), [&](i64 index, cudaStream_t stream) {
      const auto* const x = reinterpret_cast<const type*>(arrays.at(0, index));
      auto* const ranges = reinterpret_cast<min_max*>(arrays.at(1, index));
      if (of_blocks) {
        require(kernel::launch(block_ranges<type>, {unsigned(blocks)}, stream, x, p.num_elements(),
                               ranges));
      } else {
        require(kernel::launch(group_ranges<type>, {kernel::blocks_for(p.num_tiles())}, stream,
                               blob_layout(p), x, ranges));
      }
    });
  });
}

void run_pool(benchmark::State& state, const row& r) {
  const plan p = plan_of(r);
  const dtype meta = p.codec().meta;
  const rotating_arrays arrays({tensor_bytes(r), u64(p.num_cells()) * u64(size_bytes(meta))});
  arrays.fill(0, deviates_as(r.type));
  arrays.replicate();
  const unsigned blocks = kernel::blocks_for((p.num_cells() - 1) / warp_threads + 1);
  with_type(r.type, [&](auto element) {
    using type = decltype(element);
    measure(state, r, bytes_moved(r, p), [&](i64 index, cudaStream_t stream) {
      require(kernel::launch(kernel::average_pool<type, kernel::architectures>, {blocks}, stream,
                             cell_list(p.grid()), i64{0}, p.num_cells(),
                             reinterpret_cast<const type*>(arrays.at(0, index)), meta,
                             arrays.at(1, index)));
    });
  });
}

void run_codes(benchmark::State& state, const row& r) {
  const plan p = plan_of(r);
  const rotating_arrays arrays({tensor_bytes(r), p.size_bytes()});
  arrays.fill(0, random_codes());
  const auto codes = [&](i64 index) { return bytes(arrays.at(0, index), arrays.size(0)); };
  const auto blob = [&](i64 index) { return bytes(arrays.at(1, index), arrays.size(1)); };
  require(pack(p, {codes(0).data, arrays.size(0)}, blob(0), nullptr));
  arrays.replicate();
  const bool packs = r.what == primitive::pack || r.what == primitive::mask_pack;
  measure(state, r, bytes_moved(r, p), [&](i64 index, cudaStream_t stream) {
    if (packs) {
      require(pack(p, {codes(index).data, arrays.size(0)}, blob(index), stream));
    } else {
      require(unpack(p, {blob(index).data, arrays.size(1)}, codes(index), stream));
    }
  });
}

}  // namespace

void register_part_rows(bool all) {
  for (const primitive what : {primitive::block_min_max, primitive::group_min_max})
    register_device_rows(what, all, run_ranges);
  register_device_rows(primitive::pool, all, run_pool);
  for (const primitive what :
       {primitive::pack, primitive::unpack, primitive::mask_pack, primitive::mask_unpack})
    register_device_rows(what, all, run_codes);
}

}  // namespace furl::bench
