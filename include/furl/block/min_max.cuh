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
#include "furl/detail/quantize.hpp"

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

namespace detail {

// Pairs as integers, in whose order a NaN without a sign, as max_nan returns it, is above all
// numbers. So the largest is a NaN if any is, and then the smallest becomes one too.

__device__ __forceinline__ int2 keys_of(min_max pair) {
  return {ordered(pair.lo), ordered(max_nan(pair.hi, pair.hi))};
}
__device__ __forceinline__ int2 combine_keys_of_warp(int2 keys) {
  return {warp_min(keys.x), warp_max(keys.y)};
}
__device__ __forceinline__ min_max pair_of_keys(int2 keys) {
  const float hi = from_ordered(keys.y);
  return {is_nan(hi) ? hi : from_ordered(keys.x), hi};
}

}  // namespace detail

/// Combines the pairs of a warp.
/// Threads : one warp, all lanes.
/// Shared  : none.
/// Sync    : within the warp.
/// Result  : the pair of all lanes' pairs, in every lane.
/// Pre     : if one number of a pair is NaN, so is the other.
__device__ __forceinline__ min_max warp_min_max(min_max mine) {
  return detail::pair_of_keys(detail::combine_keys_of_warp(detail::keys_of(mine)));
}

/// Finds the smallest and the largest number of a block, in the manner of CUB's collectives: it is
/// constructed with its TempStorage.
/// Threads : all of a block of Threads x 1 x 1; a multiple of 32, at most 1024.
/// Shared  : a TempStorage that the caller declares.
/// Sync    : there is a barrier inside; __syncthreads() is due before the storage is used again.
/// Result  : in every thread.
/// @code
/// // The largest magnitude of each row, by a block for each: <<<rows, 128>>>.
/// __global__ void row_magnitudes(const float* x, int columns, float* magnitude) {
///   using reduction = furl::block_min_max<128>;
///   __shared__ reduction::TempStorage storage;
///   const float* const row = x + furl::i64(blockIdx.x) * columns;
///   furl::min_max mine;  // of no element
///   for (int i = threadIdx.x; i < columns; i += blockDim.x)
///     mine = furl::combine(mine, {row[i], row[i]});
///   const furl::min_max found = reduction(storage).reduce(mine);
///   if (threadIdx.x == 0) magnitude[blockIdx.x] = fmaxf(-found.lo, found.hi);
/// }
/// @endcode
// With cub::BlockReduce a thread of 128 executes 66 instructions (31 by raking) and two barriers,
// here 36 and one; and to include it takes 3.5 s of compiling, this header 1.4 s.
template <int Threads>
class block_min_max {
  static_assert(Threads % warp_threads == 0 && Threads <= 1024, "whole warps, one block");
  static constexpr int num_warps = Threads / warp_threads;

 public:
  /// What the threads exchange, in shared memory.
  struct TempStorage {
    int2 of_warp[num_warps];  // one each
  };

  /// Every thread constructs one with the same storage.
  __device__ explicit block_min_max(TempStorage& storage) : storage_(storage) {}

  /// Returns the pair of all threads' pairs. If one number of a pair is NaN, the other must be.
  __device__ min_max reduce(min_max mine) {
    const int2 of_warp = detail::combine_keys_of_warp(detail::keys_of(mine));
    const int lane = lane_index();
    if (lane == 0) storage_.of_warp[threadIdx.x / warp_threads] = of_warp;
    __syncthreads();
    const int2 other = storage_.of_warp[lane < num_warps ? lane : 0];
    return detail::pair_of_keys(detail::combine_keys_of_warp(other));
  }

  /// Returns the pair of an array in global or shared memory, of `count` elements, 0 or more.
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
  TempStorage& storage_;
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

/// Finds the smallest and the largest element of each group of a tile of f32.
/// Threads : one warp, all lanes with the same group.
/// Shapes  : x     : a tile as load_tile leaves it.
///           group : elements of a group: 32, 64, 128, 256, 512 or 1024.
/// Shared  : none.
/// Sync    : within the warp.
/// Result  : in every lane that of the group which it looks after (group_of_lane).
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

/// Finds the same in a tile of f16 or bf16, two elements an operation. The maximum is the minimum
/// of negated elements, so that one word (minimum, -maximum) carries both through the exchanges.
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

/// Finds the range of the lane's group among ranges that the caller has given.
/// Threads : one warp, all lanes with the same arguments.
/// Shapes  : tile : the tile's index in the tensor; `count` of its elements are present.
/// Shared  : none.
/// Sync    : within the warp.
/// Result  : in every lane the hull of the pairs of all elements of its group (group_of_lane), or
///           NaN if one of the pairs is no range.
/// Pre     : given.pairs is not null.
__device__ __forceinline__ min_max given_range(const range_map& given, i64 tile, int count,
                                               int group) {
  const int begin = group_of_lane(lane_index(), group).begin;
  min_max mine;
  if (begin < count) {  // the 32 elements from there on, each lane its own
    const i64 first = tile * tile_elements;
    const range hull = given.hull(first + begin, first + min(begin + 32, count) - 1);
    mine = {hull.lo, hull.hi};
  }
  for_each_distance(group, [&](int distance) {
    mine = combine(mine, {shuffle_xor(mine.lo, distance), shuffle_xor(mine.hi, distance)});
  });
  return mine;
}

/// Moves elements, or residuals, that lie beyond the given range of their group to its end; a NaN
/// stays.
/// Threads : one warp, all lanes with the same arguments but x.
/// Shapes  : x    : a tile as load_tile leaves it, which is changed.
///           tile : the tile's index in the tensor; `count` of its elements are present.
/// Shared  : none.
/// Sync    : within the warp.
/// Result  : in every lane the range of its group, as compress_tile_in_range takes it: NaN if the
///           group has a NaN, or a pair that is no range.
/// Pre     : given.pairs is not null.
__device__ __forceinline__ min_max saturate_tile(const range_map& given, i64 tile, int count,
                                                 int group, tile_fragment<float>& x) {
  min_max ends = given_range(given, tile, count, group);
  float smallest = x.word[0][0];
  FURL_UNROLL
  for (int row = 0; row < rows_per_tile; ++row) {
    FURL_UNROLL
    for (int k = 0; k < 4; ++k) smallest = min_nan(smallest, x.word[row][k]);
  }
  if (__any_sync(full_warp, is_nan(smallest))) {  // which groups have it is seldom of interest
    const float lo = tile_min_max(x, group).lo;
    if (is_nan(lo)) ends = {lo, lo};
  }
  FURL_UNROLL
  for (int row = 0; row < rows_per_tile; ++row) {
    const float lo = shuffle_in_eight(ends.lo, row);
    const float hi = shuffle_in_eight(ends.hi, row);
    FURL_UNROLL
    for (int k = 0; k < 4; ++k) x.word[row][k] = min_nan(max_nan(x.word[row][k], lo), hi);
  }
  return ends;
}

}  // namespace furl
