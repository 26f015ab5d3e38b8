// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE WARP or ONE BLOCK. Smallest and largest element: of a warp, of a block, of an array, of every
// group of a tile (FORMAT.md, A3). NaN if any element is NaN; infinities and subnormals are numbers
// like any other.

#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/detail/device/intrinsics.cuh"
#include "furl/detail/device/pairs.cuh"
#include "furl/detail/number.hpp"

namespace furl {

/// Of no element at all: the neutral pair.
struct min_max {
  float lo = float_of(f32_infinity_bits);                // the smallest
  float hi = float_of(f32_infinity_bits | 0x80000000u);  // the largest
};

/// Of the elements of both.
__device__ __forceinline__ min_max combine(min_max a, min_max b) {
  return {min_nan(a.lo, b.lo), max_nan(a.hi, b.hi)};
}

/// Threads : one warp, all lanes.
/// Shared  : none. Sync : within the warp.
/// Result  : the pair of all lanes' pairs, in every lane.
__device__ __forceinline__ min_max warp_min_max(min_max mine) {
  FURL_UNROLL
  for (int distance = warp_threads / 2; distance > 0; distance /= 2)
    mine = combine(mine, {shuffle_xor(mine.lo, distance), shuffle_xor(mine.hi, distance)});
  return mine;
}

/// Reductions over a block of `Threads` threads.
/// Threads : all of the block: Threads x 1 x 1, a multiple of 32, at most 1024.
/// Shared  : temp_storage, owned by the caller.
/// Sync    : barriers inside; one more (__syncthreads) before the storage is used again.
/// Result  : in every thread.
template <int Threads>
class block_min_max {
  static_assert(Threads % warp_threads == 0 && Threads <= 1024, "whole warps, one block");
  static constexpr int num_warps = Threads / warp_threads;

 public:
  /// In shared memory.
  struct temp_storage {
    float2 of_warp[num_warps];  // (lo, hi) of each; a min_max has initial values
  };

  /// In every thread.
  __device__ explicit block_min_max(temp_storage& storage) : storage_(storage) {}

  /// The pair of all threads' pairs.
  __device__ min_max reduce(min_max mine) {
    mine = warp_min_max(mine);
    if (threadIdx.x % warp_threads == 0)
      storage_.of_warp[threadIdx.x / warp_threads] = {mine.lo, mine.hi};
    __syncthreads();
    const int lane = int(threadIdx.x % warp_threads);
    min_max other;
    if (lane < num_warps) other = {storage_.of_warp[lane].x, storage_.of_warp[lane].y};
    return warp_min_max(other);
  }

  /// The pair of an array. x : global or shared, `count` elements, 0 or more.
  template <class T>
  __device__ min_max of_array(const T* x, i64 count) {
    min_max mine;
    for (i64 i = threadIdx.x; i < count; i += Threads) {
      const float value = element_to_f32(x[i]);
      mine = combine(mine, {value, value});
    }
    return reduce(mine);
  }

 private:
  temp_storage& storage_;
};

// ---- Groups of a tile ------------------------------------------------------------------------

/// The group that a lane looks after: the one of the 32 elements from column 32 * (l / 8) on of row
/// l % 8 of the tile, for lane l. So in every segment of 8 lanes, lane r looks after the group that
/// the segment's elements of row r belong to.
struct lane_group {
  int begin;      // the first of those 32 elements, from the start of the tile
  int log2_size;  // of the group
  bool is_first;  // whether the group begins there: true in one lane of those that look after it

  /// Index of the group in the tensor.
  __device__ __forceinline__ i64 index(i64 tile) const {
    return (tile * tile_elements + begin) >> log2_size;
  }
};

/// Pre: group is 32, 64, 128, 256, 512 or 1024.
__device__ __forceinline__ lane_group group_of_lane(int lane, int group) {
  const int begin = (lane & 7) * row_elements + (lane >> 3) * 32;
  return {begin, 31 - __clz(group), (begin & (group - 1)) == 0};
}

/// Of two rows, each lane keeps the one that its bit `distance` names, combined with what its
/// partner has of it.
template <class Value, class Combine>
__device__ __forceinline__ Value exchange_rows(Value first, Value second, int lane, int distance,
                                               const Combine& combine_values) {
  const int chooser = lane * int(0x80000000u / u32(distance));  // negative where the bit is set
  const Value kept = choose(chooser, first, second);
  const Value sent = choose(chooser, second, first);
  return combine_values(kept, shuffle_xor(sent, distance));
}

/// Reduces rows over segments of Rows lanes: lane l ends with row l % Rows of its own segment.
/// Every exchange also halves the rows that a lane carries on, so that 8 rows take 7 shuffles
/// instead of 24.
template <int Rows, class Value, class Combine>
__device__ __forceinline__ Value reduce_rows(Value (&row)[Rows], int lane,
                                             const Combine& combine_values) {
  FURL_UNROLL
  for (int half = Rows / 2; half > 0; half /= 2) {
    FURL_UNROLL
    for (int r = 0; r < half; ++r)
      row[r] = exchange_rows(row[r], row[r + half], lane, half, combine_values);
  }
  return row[0];
}

/// Calls exchange(distance) for the lanes that a group extends over beyond 8: segments of a row
/// first, then rows.
template <class Exchange>
__device__ __forceinline__ void for_each_distance(int group, const Exchange& exchange) {
  constexpr int distances[] = {8, 16, 1, 2, 4};
  FURL_UNROLL
  for (int k = 0; k < 5; ++k)
    if (group >= (64 << k)) exchange(distances[k]);
}

/// Of four elements.
__device__ __forceinline__ min_max row_min_max(const float (&v)[4]) {
  return {min_nan(min_nan(v[0], v[1]), min_nan(v[2], v[3])),
          max_nan(max_nan(v[0], v[1]), max_nan(v[2], v[3]))};
}

/// Smallest and largest element of the lane's group.
/// Threads : one warp, all lanes.
/// Shapes  : x : a tile; `group` elements share a result.
/// Shared  : none. Sync : within the warp.
/// Result  : in every lane for its group (group_of_lane), 32-bit elements.
__device__ __forceinline__ min_max tile_min_max(const tile_fragment<float>& x, int group) {
  constexpr int half = rows_per_tile / 2;
  const int lane = lane_index();
  const auto smaller = [](float a, float b) { return min_nan(a, b); };
  const auto larger = [](float a, float b) { return max_nan(a, b); };
  float lo[half];
  float hi[half];
  // The first exchange as soon as there are two rows for it: that takes the fewest registers.
  FURL_UNROLL
  for (int r = 0; r < half; ++r) {
    const min_max a = row_min_max(x.word[r]);
    const min_max b = row_min_max(x.word[r + half]);
    lo[r] = exchange_rows(a.lo, b.lo, lane, half, smaller);
    hi[r] = exchange_rows(a.hi, b.hi, lane, half, larger);
  }
  min_max mine{reduce_rows(lo, lane, smaller), reduce_rows(hi, lane, larger)};
  for_each_distance(group, [&](int distance) {
    mine = combine(mine, {shuffle_xor(mine.lo, distance), shuffle_xor(mine.hi, distance)});
  });
  return mine;
}

/// The same for f16 and bf16, two elements an operation. The maximum is the minimum of negated
/// elements, so that one word (minimum, -maximum) carries both through the exchanges.
template <class T>
__device__ __forceinline__ min_max tile_min_max(const tile_fragment<T>& x, int group) {
  const int lane = lane_index();
  constexpr u32 negate_both = 0x80008000u;
  const auto minimum = [](u32 a, u32 b) { return min_nan_pair<T>(a, b); };
  u32 pair[rows_per_tile];
  FURL_UNROLL
  for (int row = 0; row < rows_per_tile; ++row) {
    const u32 lo = minimum(x.word[row][0], x.word[row][1]);
    const u32 negated = max_nan_pair<T>(x.word[row][0], x.word[row][1]) ^ negate_both;
    pair[row] = minimum(select_bytes(lo, negated, 0x5410), select_bytes(lo, negated, 0x7632));
  }
  u32 mine = reduce_rows(pair, lane, minimum);
  for_each_distance(group,
                    [&](int distance) { mine = minimum(mine, shuffle_xor(mine, distance)); });
  const f32_pair result = unpack_pair<T>(mine);
  return {result.low, float_of(bits_of(result.high) ^ 0x80000000u)};
}

}  // namespace furl
