// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE GRID. Where the tiles of a mixed plan begin: the sum of the widths before every chunk of 32
// tiles. A warp adds up the rest of the way itself (blob_layout::place_of). That takes two launches
// as cub::DeviceScan does, and a quarter of a byte of workspace per tile where a scan of all tiles
// takes eight.

#include "furl/block/blob_layout.cuh"
#include "furl/block/intrinsics.cuh"
#include "furl/config.hpp"
#include "furl/kernel/launch.cuh"

FURL_HIDDEN_BEGIN

namespace furl::kernel {

inline constexpr int scan_threads = 512;  // of scan_sums

/// Chunks of 32 tiles.
FURL_HD constexpr i64 num_chunks(i64 num_tiles) {
  return (num_tiles + tiles_per_chunk - 1) / tiles_per_chunk;
}

/// Sum of the widths of each chunk. One warp a chunk.
template <int Threads = block_threads>
__global__ void __launch_bounds__(Threads)
    sum_widths(const u8* widths, i64 num_tiles, u64* chunk_sums) {
  for (i64 chunk = first_tile(); chunk < num_chunks(num_tiles); chunk += tile_stride()) {
    const i64 tile = chunk * tiles_per_chunk + lane_index();
    const u32 sum = warp_sum(tile < num_tiles ? widths[tile] : 0u);
    if (lane_index() == 0) chunk_sums[chunk] = sum;
  }
}

/// Turns sums into sums of all that is before, in place. One block: there are 2^15 elements of a
/// tensor to one sum. (CUB would do this, but including its scan takes longer to compile than all
/// of furl.)
template <int Threads = scan_threads>
__global__ void __launch_bounds__(Threads) scan_sums(u64* sums, i64 count) {
  constexpr int num_warps = Threads / warp_threads;
  static_assert(Threads % warp_threads == 0, "whole warps");
  __shared__ u64 sum_of_warp[num_warps];
  const int lane = lane_index();
  const int warp = int(threadIdx.x) / warp_threads;
  u64 before = 0;
  for (i64 begin = 0; begin < count; begin += Threads) {
    const i64 i = begin + threadIdx.x;
    const u64 mine = i < count ? sums[i] : 0;
    u64 up_to_mine = mine;
    FURL_UNROLL
    for (int distance = 1; distance < warp_threads; distance *= 2) {
      const u64 other = __shfl_up_sync(full_warp, up_to_mine, unsigned(distance));
      if (lane >= distance) up_to_mine += other;
    }
    if (lane == warp_threads - 1) sum_of_warp[warp] = up_to_mine;
    __syncthreads();
    u64 total = 0;
    u64 before_warp = 0;
    for (int w = 0; w < num_warps; ++w) {
      if (w == warp) before_warp = total;
      total += sum_of_warp[w];
    }
    if (i < count) sums[i] = before + before_warp + up_to_mine - mine;
    before += total;
    __syncthreads();  // the sums of the warps are written again
  }
}

}  // namespace furl::kernel

FURL_HIDDEN_END
