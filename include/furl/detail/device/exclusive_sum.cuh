// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE BLOCK. Prefix sums. (CUB has them, but including its scan takes longer to compile than all of
// furl.)
//
// ONE GRID. Where the tiles of a mixed plan begin: the sum of the widths before every chunk of 32
// tiles. A warp adds up the rest of the way itself (blob_layout::place_of). That takes two launches
// as cub::DeviceScan does, and a quarter of a byte of workspace per tile where a scan of all tiles
// takes eight.

#include "furl/block/layout.cuh"
#include "furl/config.hpp"
#include "furl/detail/device/intrinsics.cuh"
#include "furl/detail/device/launch.cuh"

namespace furl {

/// Sums over the threads before, in a block of `Threads` threads. One warp adds up, which spares
/// the others the work. Threads : all of the block: Threads x 1 x 1, a multiple of 32, at most
/// 1024. Shared  : temp_storage, owned by the caller. Sync    : barriers inside; one more
/// (__syncthreads) before the storage is used again.
template <int Threads>
class block_exclusive_sum {
  static_assert(Threads % warp_threads == 0 && Threads <= 1024, "whole warps, one block");
  static constexpr int run_threads = Threads / warp_threads;  // whose values a lane adds up

 public:
  /// In shared memory.
  struct temp_storage {
    u64 of_run[warp_threads][run_threads + 1];  // one more, so that lanes use different banks
    u64 total;                                  // of all threads
  };

  /// In every thread.
  __device__ explicit block_exclusive_sum(temp_storage& storage) : storage_(storage) {}

  /// The sum of `value` over the threads before this one, and over all threads.
  __device__ u64 sum(u64 value, u64& total) {
    u64& mine = storage_.of_run[threadIdx.x / run_threads][threadIdx.x % run_threads];
    mine = value;
    __syncthreads();
    if (threadIdx.x < warp_threads) add_up();
    __syncthreads();
    total = storage_.total;
    return mine;
  }

 private:
  __device__ void add_up() {
    const int lane = lane_index();
    u64(&run)[run_threads + 1] = storage_.of_run[lane];
    u64 sum = 0;
    FURL_UNROLL
    for (int k = 0; k < run_threads; ++k) sum += run[k];
    u64 through_run = sum;
    FURL_UNROLL
    for (int distance = 1; distance < warp_threads; distance *= 2) {
      const u64 other = __shfl_up_sync(full_warp, through_run, unsigned(distance));
      if (lane >= distance) through_run += other;
    }
    u64 before = through_run - sum;
    FURL_UNROLL
    for (int k = 0; k < run_threads; ++k) {
      const u64 value = run[k];
      run[k] = before;
      before += value;
    }
    if (lane == warp_threads - 1) storage_.total = before;
  }

  temp_storage& storage_;
};

}  // namespace furl

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
