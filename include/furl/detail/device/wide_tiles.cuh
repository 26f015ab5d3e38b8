// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE WARP. What most tensors consist of: whole, aligned tiles, with groups of whole rows and
// stochastic codes of one number of bits. The bytes are those of compress_tile, for half the
// instructions: nothing is asked in the loop that the host can answer.

#include "furl/block/codes.cuh"
#include "furl/block/layout.cuh"
#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/detail/device/intrinsics.cuh"
#include "furl/detail/device/quantize_row.cuh"
#include "furl/detail/device/wide_range.cuh"
#include "furl/detail/quantize.hpp"
#include "furl/detail/usual_group.hpp"
#include "furl/types.hpp"

#if !defined(__CUDACC_RTC__)
#include "furl/plan.hpp"
#endif

namespace furl::detail {

/// What the random words of a tensor's tiles have in common. Of a counter only the lowest word
/// differs, if tiles are below max_tiles: so a part of the first three rounds is the same for all.
class tile_random {
 public:
  static constexpr i64 max_tiles = i64(1) << 26;

  FURL_HD explicit tile_random(const random_key& key) {
    const u32 seed[2] = {u32(key.seed), u32(key.seed >> 32)};
    FURL_UNROLL
    for (u32 round = 2; round < u32(philox_rounds); ++round) {
      key_0_[round - 2] = seed[0] + round * philox_weyl_0;
      key_1_[round - 2] = seed[1] + round * philox_weyl_1;
    }
    const wide_product first = multiply_wide(philox_multiplier_1, u32(key.offset));
    const wide_product second = multiply_wide(philox_multiplier_0, first.high ^ seed[0]);
    first_ = u32(key.offset >> 32) ^ seed[1];
    second_[0] = first.low ^ (seed[0] + philox_weyl_0);
    second_[1] = second.high ^ (seed[1] + philox_weyl_1);
    key_1_[0] ^= second.low;
  }

  /// As random_words. Pre: tile is below max_tiles.
  __device__ __forceinline__ philox_block words(u32 tile, u32 half, u32 column_quad) const {
    const wide_product a =
        multiply_wide(philox_multiplier_0, 64u * tile + (32u * half + column_quad));
    const wide_product b = multiply_wide(philox_multiplier_1, a.high ^ first_);
    philox_block block{{b.high ^ second_[0], b.low, a.low ^ second_[1], 0}};
    FURL_UNROLL
    for (int round = 2; round < philox_rounds; ++round)
      block = philox_round(block, key_0_[round - 2], key_1_[round - 2]);
    return block;
  }

 private:
  // Words of the key, and what of the constant words of counters meets them in the same sum.
  u32 first_;                     // of the first round, for the third word
  u32 second_[2];                 // of the second round, for the first and the third word
  u32 key_0_[philox_rounds - 2];  // from the third round on
  u32 key_1_[philox_rounds - 2];  // likewise; with the fourth word of the second round
};

/// The whole tiles of a tensor that are coded this way, and how: those of turns 0 .. num_turns - 1,
/// each of which has wide_tiles<T> of them.
struct wide_layout {
  u32 num_turns = 0;
  u32 code_bytes = 0;      // of a tile
  u32 metadata_bytes = 0;  // of a turn
  group_scale scale{};

  wide_layout() = default;
#if !defined(__CUDACC_RTC__)
  /// x : the tensor's elements, or null for residuals, which are in registers.
  /// Pre : the plan's codes are neither rotated nor those of positives.
  template <class T>
  FURL_HIDDEN wide_layout(const plan& p, const T* x) {
    const codec& c = p.codec();
    if (p.kind() != plan_kind::uniform || c.group < 256 || c.rounding == rounding::nearest ||
        u64(x) % (4 * sizeof(T)) != 0)
      return;
    const i64 whole = p.num_elements() / tile_elements;
    num_turns =
        u32((whole < tile_random::max_tiles ? whole : tile_random::max_tiles) / wide_tiles<T>);
    code_bytes = u32(c.bits * row_elements);
    metadata_bytes =
        u32(wide_tiles<T> * tile_elements / c.group) * 2 * u32(furl::size_bytes(c.meta));
    scale = make_scale(c.bits, c.meta, 1.0f / levels_of(c.bits));
  }
#endif
};

/// Compresses the tiles of a wide_layout.
template <class T>
class wide_compress {
  static constexpr int tiles = wide_tiles<T>;  // of a turn

 public:
  /// blob : global, aligned to 16. The references must outlive the object.
  __device__ __forceinline__ wide_compress(const blob_layout& layout, const wide_layout& wide,
                                           const T* x, u8* blob)
      : layout_(layout),
        wide_(wide),
        lane_(u32(lane_index())),
        x_(__cvta_generic_to_global(x + 4 * lane_)),
        codes_(__cvta_generic_to_global(blob + 4 * lane_)),
        metadata_(__cvta_generic_to_global(blob + layout.meta_offset)) {
    const u32 begin = wide_group_begin<T>(lane_);
    const bool is_first = lane_ % (8 / tiles) == 0 && (begin & u32(layout.group - 1)) == 0;
    const u32 offset = is_first ? begin * wide.metadata_bytes / (tiles * tile_elements) : no_group;
    offset_ = shuffle(offset, int(lane_));  // lest each turn computes it anew
    forget(x_);
    forget(codes_);
    forget(metadata_);
  }

  /// Compresses turns turn, turn + stride, ... until one of them has a group that is not usual, or
  /// there is none any more. Returns that turn, of which nothing is written.
  /// Threads : one warp, all lanes with the same arguments.
  /// Shared  : none. Sync : within the warp.
  __device__ __forceinline__ u32 run(u32 turn, u32 stride, const tile_random& random) const {
    for (; turn < wide_.num_turns; turn += stride) {
      tile_fragment<T> x[tiles];
      const u64 at = multiply_add(turn, u32(tiles * tile_elements * sizeof(T)), x_);
      FURL_UNROLL
      for (int t = 0; t < tiles; ++t) load_rows(at + u32(t) * tile_elements * sizeof(T), x[t]);
      if (!compress(turn, x, random)) break;
    }
    return turn;
  }

  /// Compresses the tiles of a turn, if their groups are usual; otherwise it writes nothing and
  /// returns false.
  /// Threads, Shared, Sync: as run.
  __device__ __forceinline__ bool compress(u32 turn, const tile_fragment<T> (&x)[tiles],
                                           const tile_random& random) const {
    const min_max ends = wide_min_max<T>(x, selectors_, layout_.group);
    group_params mine;
    const bool usual =
        make_usual_group<T>(ends.lo, ends.hi, wide_.scale, approximate_reciprocal, mine);
    if (__any_sync(full_warp, !usual)) return false;
    store_group(turn, mine);
    FURL_UNROLL
    for (int t = 0; t < tiles; ++t) {
      u32 codes[rows_per_tile];
      quantize(x[t], t, mine, u32(tiles) * turn + u32(t), random, codes);
      store(codes, u32(tiles) * turn + u32(t));
    }
    return true;
  }

 private:
  static constexpr u32 no_group = ~0u;

  static __device__ __forceinline__ void forget(u64& address) { asm volatile("" : "+l"(address)); }

  __device__ __forceinline__ void quantize(const tile_fragment<T>& x, int t,
                                           const group_params& mine, u32 tile,
                                           const tile_random& random,
                                           u32 (&codes)[rows_per_tile]) const {
    FURL_UNROLL
    for (int half = 0; half < 2; ++half) {
      const philox_block words = random.words(tile, u32(half), lane_);
      FURL_UNROLL
      for (int r = 0; r < 4; ++r) {
        const int row = 4 * half + r;
        const int owner = 8 * (row / 2) + 4 * t;
        const fixed_row fixed =
            to_fixed<T>(x.word[row], shuffle(mine.lo, owner), shuffle(mine.inverse, owner));
        codes[row] = round_row(fixed, words.word[r]);
      }
    }
  }

  __device__ __forceinline__ void store(const u32 (&codes)[rows_per_tile], u32 tile) const {
    u8* const at = reinterpret_cast<u8*>(multiply_add(tile, wide_.code_bytes, codes_));
    if (wide_.code_bytes == 2 * row_elements) {
      store_packed<2>(codes, reinterpret_cast<u32*>(at));
    } else {
      store_codes(codes, layout_.bits, at - 4 * lane_);
    }
  }

  __device__ __forceinline__ void store_group(u32 turn, const group_params& mine) const {
    if (offset_ != no_group)
      store_pair(metadata_ + (turn * wide_.metadata_bytes + offset_), wide_.scale.dropped != 0,
                 mine.lo, mine.step);
  }

  const blob_layout& layout_;
  const wide_layout& wide_;
  u32 lane_;
  u64 x_;         // the lane's elements of the first tile
  u64 codes_;     // and its codes
  u64 metadata_;  // the blob's metadata part
  u32 offset_;    // there, of the group that begins in the lane
  lane_selectors<T> selectors_;
};

}  // namespace furl::detail
