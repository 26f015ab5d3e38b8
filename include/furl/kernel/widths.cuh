// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE GRID. Where the tiles of a mixed plan begin: the sum of the widths before every chunk of 32
// tiles. A warp adds up the rest of the way itself (blob_layout::place_of). That takes two launches
// as cub::DeviceScan does, and a quarter of a byte of workspace per tile where a scan of all tiles
// takes eight.

#include "furl/block/blob_layout.cuh"
#include "furl/block/exclusive_sum.cuh"
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
/// tensor to one sum.
template <int Threads = scan_threads>
__global__ void __launch_bounds__(Threads) scan_sums(u64* sums, i64 count) {
  using block_sum = block_exclusive_sum<Threads>;
  __shared__ typename block_sum::temp_storage storage;
  u64 before = 0;
  for (i64 begin = 0; begin < count; begin += Threads) {
    const i64 i = begin + threadIdx.x;
    u64 total;
    const u64 before_mine = block_sum(storage).sum(i < count ? sums[i] : 0, total);
    if (i < count) sums[i] = before + before_mine;
    before += total;
    __syncthreads();  // the storage is used again
  }
}

}  // namespace furl::kernel

FURL_HIDDEN_END
