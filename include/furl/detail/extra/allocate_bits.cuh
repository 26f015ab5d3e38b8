// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE GRID. Bits of tiles that make the most of their sum, and the index by which tiles of
// different bits are found. Of CUB these take the scan of a block alone: the workspace of its scans
// and sorts of a device depends on the device, and could not be told from the number of tiles.

#include "furl/config.hpp"
#include "furl/detail/device/intrinsics.cuh"
#include "furl/detail/device/launch.cuh"
#include "furl/detail/extra/binary64.hpp"

#if !defined(__CUDACC_RTC__)
#include <cstddef>
#include <cub/block/block_scan.cuh>

FURL_HIDDEN_BEGIN

namespace furl::kernel {

/// What is allocated to.
struct gain_request {
  const float* sensitivity;     // global, of each tile
  const double* squared_range;  // likewise
  i64 num_tiles;                // of all tensors
  u64 raises;                   // gains to grant: 1 to 7 per tile

  /// Of a tile: see tile_cost.
  __device__ __forceinline__ double cost(i64 tile) const {
    return tile_cost(sensitivity[tile], squared_range[tile]);
  }
};

inline constexpr int gain_digit_bits = 9;                            // of a digit
inline constexpr int gain_digits = 1 << gain_digit_bits;             // a thread for each
inline constexpr int gain_rounds = gain_key_bits / gain_digit_bits;  // digits of a key
/// A block counts in 32 bits: 2^32 / 7 tiles of its own are out of reach.
inline constexpr i64 max_gain_blocks = 1024;

/// The largest gains are found by radix selection, a digit a round, from the highest on: first the
/// digits of the smallest key that is granted, and then, among tiles that have that very key, of
/// which none has two, the digits of the place of the last tile that is granted it. Places are
/// counted from the last tile, so that the first have the largest. There is neither a sort nor room
/// for the keys: each round works them out anew, from 12 bytes per tile.
struct gain_selection {
  u64 key;     // the smallest that is granted, in rounds that select a place
  u64 prefix;  // the digits selected so far, of the key or of the place
  u64 rest;    // gains yet to be granted among those that begin with the prefix
};

/// What a round leaves for the next one: the workspace has one for each, and one more.
struct gain_round {
  u64 of_digit[gain_digits];  // how many of those that begin with the prefix go on so; zero at
                              // first
  gain_selection selected;    // by the rounds before
};

/// Rounds for a number of tiles, at least 1.
FURL_HD constexpr int count_gain_rounds(i64 num_tiles) {
  int rounds = gain_rounds;
  for (i64 last = num_tiles - 1; last > 0; last >>= gain_digit_bits) ++rounds;
  return rounds;
}

/// What is selected before a round, from what the round before has counted.
/// Threads : one block of gain_digits, all of it.
/// Sync    : the block.
/// Result  : in every thread. Each block finds it for itself; block 0 leaves it to the next round.
__device__ __forceinline__ gain_selection next_selection(int round, u64 raises, gain_round* all) {
  using block_scan = CUB_NS_QUALIFIER::BlockScan<u64, gain_digits>;
  __shared__ typename block_scan::TempStorage storage;
  __shared__ gain_selection next;
  if (round == 0) {
    if (threadIdx.x == 0) next = {0, 0, raises};
  } else {
    const gain_round& last = all[round - 1];
    const int digit = gain_digits - 1 - int(threadIdx.x);
    const u64 count = last.of_digit[digit];
    u64 larger;
    block_scan(storage).ExclusiveSum(count, larger);
    if (larger < last.selected.rest && last.selected.rest <= larger + count) {
      const u64 prefix = last.selected.prefix << gain_digit_bits | u64(digit);
      const bool is_key = round == gain_rounds;  // it is complete
      next = {is_key ? prefix : last.selected.key, is_key ? 0 : prefix,
              last.selected.rest - larger};
    }
  }
  __syncthreads();
  if (blockIdx.x == 0 && threadIdx.x == 0) all[round].selected = next;
  return next;
}

/// Counts the digits of a round among what begins with the prefix.
template <class Architectures>
__global__ void __launch_bounds__(gain_digits)
    count_gains(gain_request request, int round, int num_rounds, gain_round* all) {
  __shared__ u32 count[gain_digits];
  count[threadIdx.x] = 0;
  const gain_selection selected = next_selection(round, request.raises, all);  // has the barrier
  const bool of_keys = round < gain_rounds;
  const int shift = ((of_keys ? gain_rounds : num_rounds) - 1 - round) * gain_digit_bits;
  const auto add = [&](u64 digits) {
    if (digits >> gain_digit_bits == selected.prefix) atomicAdd(&count[digits % gain_digits], 1u);
  };
  const i64 stride = i64(gridDim.x) * gain_digits;
  for (i64 tile = i64(blockIdx.x) * gain_digits + threadIdx.x; tile < request.num_tiles;
       tile += stride) {
    const double cost = request.cost(tile);
    FURL_UNROLL
    for (int bits = 1; bits < max_bits; ++bits) {
      const u64 key = gain_key(cost, bits);
      if (of_keys) {
        add(key >> shift);
      } else if (key == selected.key) {
        add(u64(request.num_tiles - 1 - tile) >> shift);
      }
    }
  }
  __syncthreads();
  const u32 mine = count[threadIdx.x];
  if (mine != 0) atomicAdd(&all[round].of_digit[threadIdx.x], u64(mine));
}

/// Writes the bits of tiles, from what all rounds have selected.
template <class Architectures>
__global__ void __launch_bounds__(gain_digits)
    grant_gains(gain_request request, int num_rounds, gain_round* all, u8* tile_bits) {
  const gain_selection selected = next_selection(num_rounds, request.raises, all);
  const i64 stride = i64(gridDim.x) * gain_digits;
  for (i64 tile = i64(blockIdx.x) * gain_digits + threadIdx.x; tile < request.num_tiles;
       tile += stride) {
    const double cost = request.cost(tile);
    const bool has_place = u64(request.num_tiles - 1 - tile) >= selected.prefix;
    int allocated = 1;
    FURL_UNROLL
    for (int bits = 1; bits < max_bits; ++bits) {
      const u64 key = gain_key(cost, bits);
      allocated += key > selected.key || (key == selected.key && has_place) ? 1 : 0;
    }
    tile_bits[tile] = u8(allocated);
  }
}

/// Bytes of the workspace of an allocation to a number of tiles.
constexpr u64 gain_workspace_bytes(i64 num_tiles) {
  return num_tiles < 1 ? 0 : u64(count_gain_rounds(num_tiles) + 1) * sizeof(gain_round);
}

/// Allocates bits by a workspace of that size.
template <class Architectures>
status launch_allocation(const gain_request& request, u8* tile_bits, void* workspace,
                         cudaStream_t stream) {
  const auto num_tiles = static_cast<::std::size_t>(request.num_tiles);
  if (request.raises == 0)  // nothing to select
    return cuda_status(cudaMemsetAsync(tile_bits, 1, num_tiles, stream), "stream");
  const i64 blocks = (request.num_tiles - 1) / gain_digits + 1;
  const grid_shape grid{unsigned(blocks < max_gain_blocks ? blocks : max_gain_blocks), gain_digits};
  const int num_rounds = count_gain_rounds(request.num_tiles);
  auto* const all = static_cast<gain_round*>(workspace);
  const auto zeroes = static_cast<::std::size_t>(num_rounds) * sizeof *all;
  status s = cuda_status(cudaMemsetAsync(all, 0, zeroes, stream), "stream");
  for (int round = 0; round < num_rounds && s; ++round)
    s = launch(count_gains<Architectures>, grid, stream, request, round, num_rounds, all);
  if (s) s = launch(grant_gains<Architectures>, grid, stream, request, num_rounds, all, tile_bits);
  return s;
}

inline constexpr int index_threads = 512;  // of index_tiles, one block; with more, its sums spill

/// Writes the sum of the bits of all tiles before each chunk of 32 tiles. A warp adds up its 32
/// chunks one after the other, so that its lanes read neighbouring bytes.
template <class Architectures>
__global__ void __launch_bounds__(index_threads)
    index_tiles(const u8* tile_bits, i64 num_tiles, u64* index) {
  using block_scan = CUB_NS_QUALIFIER::BlockScan<u64, index_threads>;
  __shared__ typename block_scan::TempStorage storage;
  const i64 num_chunks = (num_tiles + tiles_per_chunk - 1) / tiles_per_chunk;
  u64 before = 0;
  for (i64 begin = 0; begin < num_chunks; begin += index_threads) {
    const i64 chunk = begin + threadIdx.x;
    u32 mine = 0;
    const i64 first = chunk - lane_index();
    const i64 end = first + warp_threads < num_chunks ? first + warp_threads : num_chunks;
    for (i64 other = first; other < end; ++other) {
      const i64 tile = other * tiles_per_chunk + lane_index();
      const u32 sum = warp_sum(tile < num_tiles ? tile_bits[tile] : 0u);
      if (other == chunk) mine = sum;
    }
    u64 before_mine;
    u64 all;
    block_scan(storage).ExclusiveSum(u64(mine), before_mine, all);
    if (chunk < num_chunks) index[chunk] = before + before_mine;
    before += all;
    __syncthreads();  // the storage is used again
  }
}

}  // namespace furl::kernel

FURL_HIDDEN_END

#endif
