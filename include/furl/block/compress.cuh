// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE WARP. From a tile in registers to its part of the blob: ranges of its groups, their metadata,
// random bits, codes, packing (FORMAT.md, A3 to A6). Every element is touched once, and never
// leaves the registers in between. ONE BLOCK. The same for a run of tiles, with the means of cells.

#include "furl/block/codes.cuh"
#include "furl/block/layout.cuh"
#include "furl/block/min_max.cuh"
#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/detail/device/intrinsics.cuh"
#include "furl/detail/device/means.cuh"
#include "furl/detail/quantize.hpp"
#include "furl/detail/ranges.hpp"

namespace furl {

namespace detail {

/// Four codes in 8.8 fixed point, before rounding, as two pairs of 16 bits: columns (0, 1) and
/// (2, 3).
struct fixed_row {
  u32 low;
  u32 high;
};

__device__ __forceinline__ fixed_row to_fixed(const float (&x)[4], float lo, float inverse) {
  float y[4];
  FURL_UNROLL
  for (int k = 0; k < 4; ++k) y[k] = fma_rn(sub_rn(x[k], lo), inverse, 32768.0f);
  return {select_bytes(y[0], y[1], 0x5410), select_bytes(y[2], y[3], 0x5410)};
}

/// Adds the random bits of a row's four elements (FORMAT.md, A6: bytes 0, 2, 1, 3 of the word) and
/// keeps the integer parts. No sum carries into its neighbour: a code is at most 255 * 256.
__device__ __forceinline__ u32 round_row(fixed_row t, u32 random) {
  t.low += random & 0x00ff00ffu;
  t.high += select_bytes(random, 0, 0x4341);
  return select_bytes(t.low, t.high, 0x7531);
}

}  // namespace detail

/// Codes of a tile.
/// Threads : one warp, all lanes; x and mine are each lane's own.
/// Shapes  : x : a tile; mine : the parameters of the group that the lane looks after.
/// Shared  : none. Sync : within the warp.
/// Result  : codes, as store_codes takes them.
/// Pre     : lo <= x <= hi of its group, for groups that are coded.
template <class T>
__device__ __forceinline__ void quantize_tile(const tile_fragment<T>& x, const group_params& mine,
                                              bool stochastic, i64 tile, random_key key,
                                              u32 (&codes)[rows_per_tile]) {
  // A flat group has inverse 0, which makes every code 0. So does this, unless x is not finite.
  const float inverse = mine.coded ? mine.inverse : 0.0f;
  detail::fixed_row fixed[rows_per_tile];
  FURL_UNROLL
  for (int row = 0; row < rows_per_tile; ++row) {
    float v[4];
    unpack_row<T>(x.word[row], v);
    fixed[row] =
        detail::to_fixed(v, shuffle_in_eight(mine.lo, row), shuffle_in_eight(inverse, row));
  }
  if (stochastic) {
    FURL_UNROLL
    for (int half = 0; half < 2; ++half) {
      const philox_block random = random_words(u64(tile), u32(half), u32(lane_index()), key);
      FURL_UNROLL
      for (int r = 0; r < 4; ++r)
        codes[4 * half + r] = detail::round_row(fixed[4 * half + r], random.word[r]);
    }
  } else {
    FURL_UNROLL
    for (int row = 0; row < rows_per_tile; ++row)
      codes[row] = detail::round_row(fixed[row], in_each_byte(nearest_bits));
  }
  if (__any_sync(full_warp, is_nan(mine.lo))) {
    FURL_UNROLL
    for (int row = 0; row < rows_per_tile; ++row)
      codes[row] &= shuffle_in_eight(mine.coded ? ~0u : 0u, row);
  }
}

/// Compresses a tile of elements, or of residuals, with a range of each group.
/// Threads : one warp, all lanes with the same arguments but x and range.
/// Shapes  : x          : a tile of which `count` elements are present, the others repeat the last
///                        (as load_tile leaves them).
///           range      : of the lane's group (group_of_lane). Both NaN poison it.
///           tile       : its index in the tensor.
///           tile_codes : global, 128 * bits bytes, aligned to 4: where the tile's codes begin.
///           metadata   : global, the blob's metadata part, aligned to 16.
/// Shared  : none. Sync : within the warp.
/// Post    : the tile's codes, and the pairs of the groups that begin in its `count` elements.
/// Pre     : 1 <= count <= 1024, and 1024 for all tiles but the last; lo <= x <= hi of its group,
///           unless that is NaN.
template <class T>
__device__ __forceinline__ void compress_tile_in_range(const tile_fragment<T>& x, min_max range,
                                                       int count, i64 tile, const tile_codec& c,
                                                       random_key key, u8* tile_codes,
                                                       u8* metadata) {
  const lane_group place = group_of_lane(lane_index(), c.group);
  const group_params mine = make_group(range.lo, range.hi, c.bits, c.meta);
  if (place.is_first && place.begin < count)
    store_group(metadata, place.index(tile), c.meta, mine.lo, mine.step);
  u32 codes[rows_per_tile];
  quantize_tile(x, mine, c.stochastic, tile, key, codes);
  if (count < tile_elements) clear_absent(codes, count);
  store_codes(codes, c.bits, tile_codes);
}

/// The same with the smallest and the largest element of each group as its range.
template <class T>
__device__ __forceinline__ void compress_tile(const tile_fragment<T>& x, int count, i64 tile,
                                              const tile_codec& c, random_key key, u8* tile_codes,
                                              u8* metadata) {
  compress_tile_in_range(x, tile_min_max(x, c.group), count, tile, c, key, tile_codes, metadata);
}

/// Range of the lane's group, from the pairs of all its elements.
/// Threads : one warp, all lanes with the same arguments.
/// Shapes  : tile : its index in the tensor; `count` of its elements are present.
/// Shared  : none. Sync : within the warp.
/// Result  : in every lane for its group (group_of_lane). NaN if a pair is no range.
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

/// Saturates elements, or residuals, to the ranges of their groups; NaN stays.
/// Threads : one warp, all lanes with the same arguments but x.
/// Shapes  : x : a tile of which `count` elements are present, the others repeat the last.
///           tile, given, Pre : as given_range.
/// Shared  : none. Sync : within the warp.
/// Result  : x, and the range of the lane's group, as compress_tile takes both: NaN if the group
///           has one, or a pair that is no range.
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

// ---- Tiles of a blob -------------------------------------------------------------------------

/// Zeroes what the parts of a blob are padded with.
/// Threads : one warp, all lanes. Shared : none. Sync : none.
__device__ __forceinline__ void clear_padding(const blob_layout& layout, u8* blob) {
  const int lane = lane_index();
  const u64 end = lane < blob_alignment ? layout.lfc_offset : layout.size_bytes;
  const u64 begin = lane < blob_alignment ? layout.meta_end : layout.lfc_end;
  const u64 at = begin + u64(lane % blob_alignment);
  if (at < end) blob[at] = 0;
}

/// Compresses a tile of elements, or of residuals, into its place in a blob.
/// Threads : one warp, all lanes with the same arguments but x.
/// Shapes  : x    : tile `tile` of the tensor, as load_tile leaves it: `count` elements are
/// present.
///           blob : global, layout.size_bytes bytes, aligned to 16.
/// Shared  : none. Sync : within the warp.
/// Post    : the tile's codes and metadata; by tile 0 also what pads the parts of the blob.
template <class T>
__device__ __forceinline__ void compress_tile(const blob_layout& layout, i64 tile, int count,
                                              const tile_fragment<T>& x, random_key key, u8* blob) {
  if (tile == 0) clear_padding(layout, blob);
  const tile_place place = layout.place_of(tile);
  if (place.bits == 0) return;
  compress_tile(x, count, tile, layout.codec_of(place), key, blob + place.offset,
                blob + layout.meta_offset);
}

/// The same with a range of the lane's group that is given, such as saturate_tile's.
/// Pre : as for compress_tile_in_range.
template <class T>
__device__ __forceinline__ void compress_tile_in_range(const blob_layout& layout, i64 tile,
                                                       int count, const tile_fragment<T>& x,
                                                       min_max range, random_key key, u8* blob) {
  if (tile == 0) clear_padding(layout, blob);
  const tile_place place = layout.place_of(tile);
  if (place.bits == 0) return;
  compress_tile_in_range(x, range, count, tile, layout.codec_of(place), key, blob + place.offset,
                         blob + layout.meta_offset);
}

/// Compression of a block's run of tiles, with or without means (LFC), in a kernel of one's own:
/// elements are loaded, can be used and stored elsewhere while they are in registers, and are
/// compressed. DIVISION (Wang et al., ICML 2023) with means, ActNN (Chen et al., ICML 2021)
/// without. Path    : layout.means.path, for which the kernel is compiled (with_path). Threads :
/// one-dimensional blocks of layout.num_threads() threads, layout.num_blocks() of them. Shared  :
/// layout.shared_bytes() bytes of dynamic shared memory, aligned to 16.
template <lfc_path Path>
class block_compress {
 public:
  /// Threads : one block, all threads. Sync : none.
  __device__ __forceinline__ block_compress(const block_layout& layout, const tile_run& run,
                                            void* shared)
      : layout_(layout), run_(run), means_(layout, run, shared) {}

  /// Loads the warp's tile, and works out the means that the block's elements have part in.
  /// Threads : one block, all threads.
  /// Shapes  : source : array_elements or mapped_elements of all elements of the tensor.
  ///           blob   : global, layout.size_bytes bytes, aligned to 16; with lfc_path::table its
  ///                    LFC part must have been written, by pool_cells in a kernel before.
  /// Sync    : the block. Result : v, where run.count is positive; absent elements repeat the last.
  template <class Source>
  __device__ __forceinline__ void load(const Source& source, u8* blob,
                                       tile_fragment<float>& v) const {
    means_.load(source, blob + layout_.lfc_offset, v);
  }

  /// Turns elements into their residuals. Between load and compress elements are still elements.
  /// Threads : a warp, all lanes, of those whose run.count is positive. Sync : within the warp.
  /// Post    : the means that the run owns are in the blob.
  __device__ __forceinline__ void subtract_means(tile_fragment<float>& v, u8* blob) const {
    means_.subtract(blob + layout_.lfc_offset, v);
  }

  /// Compresses elements that load has loaded; v is changed.
  /// Threads : a warp, all lanes, of those whose run.count is positive. Sync : within the warp.
  /// Post    : the run's part of the blob, padding included.
  __device__ __forceinline__ void compress(tile_fragment<float>& v, random_key key,
                                           u8* blob) const {
    subtract_means(v, blob);
    compress_tile(layout_, run_.tile, run_.count, v, key, blob);
  }

  /// The same with ranges of the residuals that are given, to whose ends those beyond are moved.
  /// given : made on the host of the plan and the ranges.
  __device__ __forceinline__ void compress(tile_fragment<float>& v, const range_map& given,
                                           random_key key, u8* blob) const {
    subtract_means(v, blob);
    const min_max ends = saturate_tile(given, run_.tile, run_.count, layout_.group, v);
    compress_tile_in_range(layout_, run_.tile, run_.count, v, ends, key, blob);
  }

 private:
  const block_layout& layout_;
  const tile_run& run_;
  const detail::means_of<Path> means_;
};

}  // namespace furl
