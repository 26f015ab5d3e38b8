// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE WARP. The ranges of groups of whole rows, that is of 256 elements or more. Lanes combine two
// rows before they exchange anything, and two tiles of a 16-bit type share the exchanges.

#include "furl/block/min_max.cuh"
#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/detail/device/intrinsics.cuh"
#include "furl/detail/device/pairs.cuh"
#include "furl/detail/quantize.hpp"

namespace furl::detail {

/// Tiles whose ranges a warp finds at a time: as many as it has registers for.
template <class T>
inline constexpr int wide_tiles = sizeof(T) == 4 ? 1 : 2;

/// In lane l, the first element of the group that the lane looks after, from the first of its
/// tiles: of rows 2 g and 2 g + 1 where g is l / 8, and of tile l / 4 % 2 if there are two. It
/// shares them with the lanes that differ in the last bits.
template <class T>
__device__ __forceinline__ u32 wide_group_begin(u32 lane) {
  return lane / 8 * 256 + (wide_tiles<T> == 2 ? lane / 4 % 2 * tile_elements : 0);
}

/// Which of two words, or of their halves, a lane keeps when it divides two groups with a partner.
template <class T>
class lane_selectors {
  static constexpr bool has_halves = sizeof(T) == 2;

 public:
  // "Forgotten" lest each use computes them from the lane anew.
  u32 half_warp = forgotten(choose(16, 0x3210u, 0x7654u));
  u32 row_pair =
      forgotten(choose(8, has_halves ? 0x5410u : 0x3210u, has_halves ? 0x7632u : 0x7654u));
  u32 tile = forgotten(choose(4, 0x3210u, 0x7654u));

 private:
  static __device__ __forceinline__ u32 choose(int bit, u32 first, u32 second) {
    return (lane_index() & bit) != 0 ? second : first;
  }
};

/// Of two words, each lane keeps the one that its selector names, combined with what its partner
/// has of it.
template <class Combine>
__device__ __forceinline__ u32 divide_words(u32 first, u32 second, u32 selector, int distance,
                                            const Combine& combine_words) {
  const u32 kept = select_bytes(first, second, selector);
  return combine_words(kept, shuffle_xor(xor_of_three(first, second, kept), distance));
}

/// Combines what the lanes of a group have: exchange(distance) is to do it for two.
template <class Exchange>
__device__ __forceinline__ void exchange_wide(int group, const Exchange& exchange) {
  exchange(2);
  exchange(1);
  if (group != 256) {
    exchange(8);
    if (group == 1024) exchange(16);
  }
}

/// The ranges of a tile's row pairs, each in the eight lanes that look after it, as far as the
/// lanes with the same remainder by 8 have its elements: the smallest in the low half of a word and
/// minus the largest in the high one, so that the smaller of two words is the range of both.
template <class T>
__device__ __forceinline__ u32 row_pair_ranges(const tile_fragment<T>& x,
                                               const lane_selectors<T>& lane) {
  const auto smaller = [](u32 a, u32 b) { return min_nan_pair<T>(a, b); };
  const auto larger = [](u32 a, u32 b) { return max_nan_pair<T>(a, b); };
  // Those of row pairs g and g + 1 in a word. A chain, as there is an instruction for three.
  const auto of_two = [&](int g, const auto& nearer) {
    u32 found[2];
    FURL_UNROLL
    for (int k = 0; k < 2; ++k) {
      const auto& a = x.word[2 * (g + k)];
      const auto& b = x.word[2 * (g + k) + 1];
      found[k] = nearer(nearer(nearer(a[0], a[1]), b[0]), b[1]);
    }
    return nearer(select_bytes(found[0], found[1], 0x5410),
                  select_bytes(found[0], found[1], 0x7632));
  };
  const u32 lo = divide_words(of_two(0, smaller), of_two(2, smaller), lane.half_warp, 16, smaller);
  const u32 hi = divide_words(of_two(0, larger), of_two(2, larger), lane.half_warp, 16, larger);
  const u32 negated = hi ^ 0x80008000u;
  const u32 sent = select_bytes(lo, negated, lane.row_pair ^ 0x2222u);
  return smaller(select_bytes(lo, negated, lane.row_pair), shuffle_xor(sent, 8));
}

/// @{
/// Finds the smallest and the largest element of each group of one or two tiles.
/// Threads : one warp, all lanes with the same group.
/// Shapes  : x     : whole tiles.
///           group : elements of a group: 256, 512 or 1024.
/// Shared  : none. Sync : within the warp.
/// Result  : in every lane that of the group which it looks after (wide_group_begin).
template <class T>
__device__ __forceinline__ min_max wide_min_max(const tile_fragment<T> (&x)[2],
                                                const lane_selectors<T>& lane, int group) {
  const auto smaller = [](u32 a, u32 b) { return min_nan_pair<T>(a, b); };
  u32 mine =
      divide_words(row_pair_ranges(x[0], lane), row_pair_ranges(x[1], lane), lane.tile, 4, smaller);
  exchange_wide(group, [&](int distance) { mine = smaller(mine, shuffle_xor(mine, distance)); });
  const f32_pair ends = unpack_pair<T>(mine);
  return {ends.low, float_of(bits_of(ends.high) ^ 0x80000000u)};
}
template <class T>
__device__ __forceinline__ min_max wide_min_max(const tile_fragment<float> (&x)[1],
                                                const lane_selectors<float>& lane, int group) {
  const auto smaller = [](float a, float b) { return min_nan(a, b); };
  const auto larger = [](float a, float b) { return max_nan(a, b); };
  const auto of_tile = [&](const auto& nearer) {
    const auto of_pair = [&](int g) {
      float found = x[0].word[2 * g][0];
      FURL_UNROLL
      for (int k = 1; k < 8; ++k) found = nearer(found, x[0].word[2 * g + k / 4][k % 4]);
      return bits_of(found);
    };
    const auto combine_words = [&](u32 a, u32 b) {
      return bits_of(nearer(float_of(a), float_of(b)));
    };
    const u32 even = divide_words(of_pair(0), of_pair(2), lane.half_warp, 16, combine_words);
    const u32 odd = divide_words(of_pair(1), of_pair(3), lane.half_warp, 16, combine_words);
    return float_of(divide_words(even, odd, lane.row_pair, 8, combine_words));
  };
  min_max mine{of_tile(smaller), of_tile(larger)};
  const auto exchange = [&](int distance) {
    mine = combine(mine, {shuffle_xor(mine.lo, distance), shuffle_xor(mine.hi, distance)});
  };
  exchange(4);
  exchange_wide(group, exchange);
  return mine;
}
/// @}

}  // namespace furl::detail
