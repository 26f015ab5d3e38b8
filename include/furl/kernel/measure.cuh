// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE GRID. What a blob has kept of x: sums over groups, one warp a tile, and over arrays of sums.
// The order of every sum is that of host/measure.hpp.

#include "furl/block/blob_layout.cuh"
#include "furl/block/intrinsics.cuh"
#include "furl/block/lfc_table.cuh"
#include "furl/block/measure.cuh"
#include "furl/block/min_max.cuh"
#include "furl/block/tile.cuh"
#include "furl/block/unpack_dequantize.cuh"
#include "furl/config.hpp"
#include "furl/element/cell_locator.hpp"
#include "furl/kernel/launch.cuh"
#include "furl/quality.hpp"

FURL_HIDDEN_BEGIN

namespace furl::kernel {

inline constexpr int sum_threads = 1024;  // of sum_qualities

/// Measures the groups of all tiles.
/// Lfc: whether the blob has an LFC part; the locator is not used otherwise.
template <class T, bool Lfc>
__global__ void __launch_bounds__(block_threads)
    measure(blob_layout layout, cell_locator locator, const T* x, const u8* blob, quality* groups) {
  const lane_group mine = group_of_lane(lane_index(), layout.group);
  for (i64 tile = first_tile(); tile < layout.num_tiles; tile += tile_stride()) {
    const int count = elements_in_tile(layout.num_elements, tile);
    const tile_place place = layout.place_of(tile);
    if (place.bits == 0) continue;
    tile_fragment<T> elements;
    load_tile(x + tile * tile_elements, count, elements);
    tile_fragment<float> values;
    dequantize_tile(blob + place.offset, blob + layout.meta_offset, tile, count,
                    layout.codec_of(place), values);
    if constexpr (Lfc) {
      __shared__ lfc_table table_of_warp[warps_per_block];
      lfc_table& table = table_of_warp[warp_index()];
      look_up_lfc(blob + layout.lfc_offset, locator, tile, count, layout.meta, table);
      for_each_row(table, locator,
                   [&](int row, float4 mean) { add_to_row(values.word[row], mean); });
      __syncwarp();  // the table is used again
    }
    const quality sum = measure_groups(elements, values, count, layout.group);
    if (mine.is_first && mine.begin < count) groups[mine.index(tile)] = canonical(sum);
  }
}

/// Sums every 1024 terms, one block each.
template <int Threads = sum_threads>
__global__ void __launch_bounds__(Threads)
    sum_qualities(const quality* terms, i64 count, quality* sums) {
  static_assert(Threads == warp_threads * warp_threads, "a warp for the sums of the warps");
  __shared__ double of_warp[3][warp_threads];  // not qualities, which have initial values
  const i64 i = i64(blockIdx.x) * Threads + threadIdx.x;
  quality sum = i < count ? terms[i] : quality{};
  FURL_UNROLL
  for (int distance = 1; distance < warp_threads; distance *= 2)
    sum = combine(sum, shuffle_xor(sum, distance));
  if (lane_index() == 0) {
    const int warp = int(threadIdx.x) / warp_threads;
    of_warp[0][warp] = sum.sum_error;
    of_warp[1][warp] = sum.sum_squared_error;
    of_warp[2][warp] = sum.sum_squares;
  }
  __syncthreads();
  if (threadIdx.x >= warp_threads) return;
  sum = {of_warp[0][threadIdx.x], of_warp[1][threadIdx.x], of_warp[2][threadIdx.x]};
  FURL_UNROLL
  for (int distance = 1; distance < warp_threads; distance *= 2)
    sum = combine(sum, shuffle_xor(sum, distance));
  if (threadIdx.x == 0) sums[blockIdx.x] = canonical(sum);
}

}  // namespace furl::kernel

FURL_HIDDEN_END
