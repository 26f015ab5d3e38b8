// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE GRID. What widths are found from: the squared ranges of a tile's groups, summed, and the
// sensitivities of tiles.

#include "furl/block/blob_layout.cuh"
#include "furl/block/intrinsics.cuh"
#include "furl/block/metadata.cuh"
#include "furl/block/min_max.cuh"
#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/element/divisor.hpp"
#include "furl/element/width_gain.hpp"
#include "furl/kernel/launch.cuh"

FURL_HIDDEN_BEGIN

namespace furl::kernel {

/// Sum of the squared ranges of a tile's groups, as a pairwise tree, neighbours first.
/// Threads : one warp, all lanes; range is that of the group that the lane looks after.
/// Result  : in every lane.
__device__ __forceinline__ double sum_squared_ranges(float range, const lane_group& place,
                                                     int count) {
  double sum = place.is_first && place.begin < count ? squared_range(range) : 0.0;
  for_each_distance(tile_elements,
                    [&](int distance) { sum = add(sum, shuffle_xor(sum, distance)); });
  return sum;
}

/// From the elements. One warp a tile.
template <class T>
__global__ void __launch_bounds__(block_threads)
    squared_ranges(blob_layout layout, const T* x, double* squared) {
  const lane_group place = group_of_lane(lane_index(), layout.group);
  for (i64 tile = first_tile(); tile < layout.num_tiles; tile += tile_stride()) {
    const int count = elements_in_tile(layout.num_elements, tile);
    tile_fragment<T> elements;
    load_tile(x + tile * tile_elements, count, elements);
    const min_max range = tile_min_max(elements, layout.group);
    const double sum = sum_squared_ranges(sub(range.hi, range.lo), place, count);
    if (lane_index() == 0) squared[tile] = sum;
  }
}

/// From the metadata of a blob. One warp a tile.
template <int Threads = block_threads>
__global__ void __launch_bounds__(Threads)
    squared_coded_ranges(blob_layout layout, const u8* blob, double* squared) {
  const lane_group place = group_of_lane(lane_index(), layout.group);
  for (i64 tile = first_tile(); tile < layout.num_tiles; tile += tile_stride()) {
    const int count = elements_in_tile(layout.num_elements, tile);
    const int bits = layout.widths == nullptr ? layout.bits : layout.widths[tile];
    float step = 0.0f;
    if (place.is_first && place.begin < count)
      step = load_group(blob + layout.meta_offset, place.index(tile), layout.meta).y;
    const double sum = sum_squared_ranges(coded_range(step, bits), place, count);
    if (lane_index() == 0) squared[tile] = sum;
  }
}

/// One thread a tile. part : divides an element's index by the elements of a part.
template <int Threads = block_threads>
__global__ void __launch_bounds__(Threads)
    expand_sensitivity(const float* of_parts, i64 num_elements, divisor64 part, float* of_tiles,
                       i64 num_tiles) {
  const i64 stride = i64(gridDim.x) * Threads;
  for (i64 tile = i64(blockIdx.x) * Threads + threadIdx.x; tile < num_tiles; tile += stride) {
    const i64 first = tile * tile_elements;
    const i64 last = first + elements_in_tile(num_elements, tile) - 1;
    of_tiles[tile] =
        largest_sensitivity(of_parts, i64(part.divide(u64(first))), i64(part.divide(u64(last))));
  }
}

}  // namespace furl::kernel

FURL_HIDDEN_END
