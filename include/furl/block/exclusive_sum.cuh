// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE BLOCK. Prefix sums. (CUB has them, but including its scan takes longer to compile than all of
// furl.)

#include "furl/block/intrinsics.cuh"
#include "furl/config.hpp"

namespace furl {

/// Sums over the threads before, in a block of `Threads` threads.
/// Threads : all of the block: Threads x 1 x 1, a multiple of 32, at most 1024.
/// Shared  : temp_storage, owned by the caller.
/// Sync    : a barrier inside; one more (__syncthreads) before the storage is used again.
template <int Threads>
class block_exclusive_sum {
  static_assert(Threads % warp_threads == 0 && Threads <= 1024, "whole warps, one block");
  static constexpr int num_warps = Threads / warp_threads;

 public:
  /// In shared memory.
  struct temp_storage {
    u64 of_warp[num_warps];  // one each
  };

  /// In every thread.
  __device__ explicit block_exclusive_sum(temp_storage& storage) : storage_(storage) {}

  /// The sum of `value` over the threads before this one, and over all threads.
  __device__ u64 sum(u64 value, u64& total) {
    const int lane = lane_index();
    const int warp = int(threadIdx.x) / warp_threads;
    u64 through_mine = value;
    FURL_UNROLL
    for (int distance = 1; distance < warp_threads; distance *= 2) {
      const u64 other = __shfl_up_sync(full_warp, through_mine, unsigned(distance));
      if (lane >= distance) through_mine += other;
    }
    if (lane == warp_threads - 1) storage_.of_warp[warp] = through_mine;
    __syncthreads();
    u64 before_warp = 0;
    total = 0;
    for (int w = 0; w < num_warps; ++w) {
      if (w == warp) before_warp = total;
      total += storage_.of_warp[w];
    }
    return before_warp + through_mine - value;
  }

 private:
  temp_storage& storage_;
};

}  // namespace furl
