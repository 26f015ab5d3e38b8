// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE GRID. Widths that make the most of a number of bits: the largest gains
// (element/bit_gain.hpp) are found by radix selection, a digit a launch, from the highest on.
// Seven reads of 12 bytes per tile, and neither a sort nor room for the keys: they are worked out
// anew each time.

#include "furl/config.hpp"
#include "furl/detail/device/exclusive_sum.cuh"
#include "furl/detail/device/intrinsics.cuh"
#include "furl/detail/device/launch.cuh"
#include "furl/detail/extra/bit_gain.hpp"

FURL_HIDDEN_BEGIN

namespace furl::kernel {

inline constexpr int gain_digit_bits = 9;                            // of a digit
inline constexpr int gain_digits = 1 << gain_digit_bits;             // a thread for each
inline constexpr int gain_rounds = gain_key_bits / gain_digit_bits;  // digits of a key
/// A block counts in 32 bits: 2^32 / 7 tiles of its own are out of reach.
inline constexpr i64 max_gain_blocks = 1024;

/// What is granted among gains whose key begins like `prefix`: the `rest` largest. Those whose key
/// begins with more are granted all.
struct gain_selection {
  u64 prefix;  // the digits selected so far
  u64 rest;    // gains yet to be granted
};

/// Workspace of an allocation.
struct gain_counts {
  u64 of_digit[gain_rounds][gain_digits];     // zero at first
  gain_selection selection[gain_rounds + 1];  // before each round, and at last
};

/// What is to be allocated.
struct gain_request {
  const float* sensitivity;     // global, of each tile
  const double* squared_range;  // likewise
  i64 num_tiles;                // of all tensors
  u64 raises;                   // gains to grant

  /// Of a tile: see tile_cost.
  __device__ __forceinline__ double cost(i64 tile) const {
    return tile_cost(sensitivity[tile], squared_range[tile]);
  }
};

/// The selection before a round, from what the round before has counted.
/// Threads : one block of gain_digits, all of it.
/// Sync    : barriers inside.
/// Result  : in every thread. Each block finds it for itself; block 0 leaves it in `all`.
__device__ __forceinline__ gain_selection next_selection(int round, u64 raises, gain_counts& all) {
  using block_sum = block_exclusive_sum<gain_digits>;
  __shared__ block_sum::temp_storage storage;
  __shared__ gain_selection next;
  const int digit = gain_digits - 1 - int(threadIdx.x);
  if (round == 0) {
    if (threadIdx.x == 0) next = {0, raises};
  } else {
    const gain_selection last = all.selection[round - 1];
    const u64 count = all.of_digit[round - 1][digit];
    u64 all_digits;
    const u64 larger = block_sum(storage).sum(count, all_digits);
    if (larger < last.rest && last.rest <= larger + count)
      next = {last.prefix << gain_digit_bits | u64(digit), last.rest - larger};
  }
  __syncthreads();
  if (blockIdx.x == 0 && threadIdx.x == 0) all.selection[round] = next;
  return next;
}

/// Counts the values of the round's digit among the keys that begin like the selection.
/// Pre: request.raises is positive, and at most 7 per tile.
template <int Threads = gain_digits>
__global__ void __launch_bounds__(Threads)
    count_gains(gain_request request, int round, gain_counts* all) {
  static_assert(Threads == gain_digits, "a thread a digit");
  __shared__ u32 count[gain_digits];
  count[threadIdx.x] = 0;
  const u64 prefix = next_selection(round, request.raises, *all).prefix;  // has the barrier
  const int shift = gain_key_bits - (round + 1) * gain_digit_bits;
  const i64 stride = i64(gridDim.x) * Threads;
  for (i64 tile = i64(blockIdx.x) * Threads + threadIdx.x; tile < request.num_tiles;
       tile += stride) {
    const double cost = request.cost(tile);
    FURL_UNROLL
    for (int bits = 1; bits < max_bits; ++bits) {
      const u64 key = gain_key(cost, bits) >> shift;
      if (key >> gain_digit_bits == prefix) atomicAdd(&count[key % gain_digits], 1u);
    }
  }
  __syncthreads();
  const u32 mine = count[threadIdx.x];
  if (mine != 0) atomicAdd(&all->of_digit[round][threadIdx.x], u64(mine));
}

/// Counts the tiles of each chunk of 32 that have a gain equal to the smallest one granted. One
/// warp a chunk.
template <int Threads = gain_digits>
__global__ void __launch_bounds__(Threads)
    count_ties(gain_request request, gain_counts* all, u64* ties_of_chunk) {
  const u64 threshold = next_selection(gain_rounds, request.raises, *all).prefix;
  const i64 stride = i64(gridDim.x) * (Threads / warp_threads);
  for (i64 chunk = first_tile(); chunk < num_chunks(request.num_tiles); chunk += stride) {
    const i64 tile = chunk * tiles_per_chunk + lane_index();
    const double cost = tile < request.num_tiles ? request.cost(tile) : 0.0;
    bool tie = false;
    FURL_UNROLL
    for (int bits = 1; bits < max_bits; ++bits) tie = tie || gain_key(cost, bits) == threshold;
    const u32 ties = __ballot_sync(full_warp, tie && tile < request.num_tiles);
    if (lane_index() == 0) ties_of_chunk[chunk] = u64(__popc(ties));
  }
}

/// Writes the widths. One warp a chunk of 32 tiles.
/// ties_before : of each chunk, the ties of those before it.
template <int Threads = block_threads>
__global__ void __launch_bounds__(Threads)
    grant_gains(gain_request request, const gain_counts* all, const u64* ties_before, u8* widths) {
  const gain_selection selected = all->selection[gain_rounds];
  for (i64 chunk = first_tile(); chunk < num_chunks(request.num_tiles); chunk += tile_stride()) {
    const i64 tile = chunk * tiles_per_chunk + lane_index();
    const double cost = tile < request.num_tiles ? request.cost(tile) : 0.0;
    int width = 1;
    bool tie = false;
    FURL_UNROLL
    for (int bits = 1; bits < max_bits; ++bits) {
      const u64 key = gain_key(cost, bits);
      width += key > selected.prefix ? 1 : 0;
      tie = tie || key == selected.prefix;
    }
    const u32 before = __ballot_sync(full_warp, tie) & ((1u << lane_index()) - 1);
    if (tie && ties_before[chunk] + u64(__popc(before)) < selected.rest) ++width;
    if (tile < request.num_tiles) widths[tile] = u8(width);
  }
}

}  // namespace furl::kernel

FURL_HIDDEN_END
