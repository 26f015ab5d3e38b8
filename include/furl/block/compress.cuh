// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE WARP. From a tile in registers to its part of the blob: ranges of its groups, their metadata,
// random bits, codes, packing (FORMAT.md, A3 to A6). Elements stay in registers throughout.
// ONE BLOCK. The same for a run of tiles, with the means of cells.

#include "furl/block/codes.cuh"
#include "furl/block/elements.cuh"
#include "furl/block/layout.cuh"
#include "furl/block/min_max.cuh"
#include "furl/block/rotated.cuh"
#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/detail/device/intrinsics.cuh"
#include "furl/detail/device/means.cuh"
#include "furl/detail/device/quantize_row.cuh"
#include "furl/detail/quantize.hpp"

namespace furl {

/// Turns a tile of elements into codes.
/// Threads : one warp, all lanes; x and mine are each lane's own.
/// Shapes  : x    : a tile.
///           mine : the parameters of the group that the lane looks after (group_of_lane).
/// Shared  : none.
/// Sync    : within the warp.
/// Result  : the codes, as store_codes takes them.
/// Pre     : every element lies within its group's range, if the group is coded.
template <class T>
__device__ __forceinline__ void quantize_tile(const tile_fragment<T>& x, const group_params& mine,
                                              bool stochastic, i64 tile, random_key key,
                                              u32 (&codes)[rows_per_tile]) {
  // A flat group has inverse 0, which makes every code 0. So does this, unless x is not finite.
  const float inverse = mine.coded ? mine.inverse : 0.0f;
  detail::fixed_row fixed[rows_per_tile];
  FURL_UNROLL
  for (int row = 0; row < rows_per_tile; ++row) {
    fixed[row] = detail::to_fixed<T>(x.word[row], shuffle_in_eight(mine.lo, row),
                                     shuffle_in_eight(inverse, row));
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

/// Compresses a tile of elements, or of residuals, with a range for each group, to any place.
/// Threads : one warp, all lanes with the same arguments but x and range.
/// Shapes  : x          : a tile as load_tile leaves it: `count` elements are present, and the
///                        others repeat the last one.
///           range      : that of the group which the lane looks after (group_of_lane). If both
///                        numbers are NaN, the group is restored as NaN.
///           tile       : the tile's index in the tensor.
///           tile_codes : global, 128 * bits bytes, aligned to 4: where the tile's codes begin.
///           metadata   : global, the blob's metadata part, aligned to 16.
/// Shared  : none.
/// Sync    : within the warp.
/// Pre     : count is 1..1024, and 1024 for all tiles but the last of a tensor; every element lies
///           within its group's range, unless that is NaN.
/// Post    : the tile's codes are written, and the metadata of the groups that begin in it.
template <class T>
__device__ __forceinline__ void compress_tile_in_range(const tile_fragment<T>& x, min_max range,
                                                       int count, i64 tile, const tile_codec& c,
                                                       random_key key, u8* tile_codes,
                                                       u8* metadata) {
  const lane_group place = group_of_lane(lane_index(), c.group);
  const group_params mine = detail::make_groups(range, c.bits, c.meta);
  if (place.is_first && place.begin < count)
    store_group(metadata, place.index(tile), c.meta, mine.lo, mine.step);
  u32 codes[rows_per_tile];
  quantize_tile(x, mine, c.stochastic, tile, key, codes);
  if (count < tile_elements) clear_absent(codes, count);
  store_codes(codes, c.bits, tile_codes);
}

/// Compresses a tile as compress_tile_in_range does, between the smallest and the largest element
/// of each group.
template <class T>
__device__ __forceinline__ void compress_tile(const tile_fragment<T>& x, int count, i64 tile,
                                              const tile_codec& c, random_key key, u8* tile_codes,
                                              u8* metadata) {
  compress_tile_in_range(x, tile_min_max(x, c.group), count, tile, c, key, tile_codes, metadata);
}

/// Compresses a tile of elements, or of residuals, into its place in a blob, between the smallest
/// and the largest element of each group.
/// Threads : one warp, all lanes with the same arguments but x.
/// Shapes  : tile : the tile's index in the tensor; `count` of its elements are present.
///           x    : the tile as load_tile leaves it: absent elements repeat the last one.
///           blob : global, layout.size_bytes bytes, aligned to 16.
/// Shared  : none.
/// Sync    : within the warp.
/// Pre     : the plan's codes are not rotated (layout.is_rotated): rotated.cuh has those.
/// Post    : the tile's codes and metadata are written, and by tile 0 what pads the blob's parts.
/// @code
/// // Compresses the sum of two arrays, without means: a tile for each warp.
/// __global__ void compress_sum(furl::blob_layout layout, const float* a, const float* b,
///                              unsigned char* blob, furl::random_key key) {
///   using namespace furl;
///   for (i64 tile = first_tile(); tile < layout.num_tiles; tile += tile_stride()) {
///     const int count = elements_in_tile(layout.num_elements, tile);
///     tile_fragment<float> sum;
///     tile_fragment<float> other;
///     load_tile(a + tile * tile_elements, count, sum);
///     load_tile(b + tile * tile_elements, count, other);
///     for (int row = 0; row < rows_per_tile; ++row)
///       for (int k = 0; k < 4; ++k) sum.word[row][k] += other.word[row][k];
///     compress_tile(layout, tile, count, sum, key, blob);
///   }
/// }
/// @endcode
template <class T>
__device__ __forceinline__ void compress_tile(const blob_layout& layout, i64 tile, int count,
                                              const tile_fragment<T>& x, random_key key, u8* blob) {
  if (tile == 0) clear_padding(layout, blob);
  const tile_place place = layout.place_of(tile);
  if (place.bits == 0) return;
  compress_tile(x, count, tile, layout.codec_of(place), key, blob + place.offset,
                blob + layout.meta_offset);
}

/// As compress_tile into a blob, with a range of the caller's choice for each group.
/// Shapes  : range : that of the group which the lane looks after (group_of_lane). If both numbers
///                   are NaN, the group is restored as NaN.
/// Pre     : every element lies within its group's range, unless that is NaN.
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

/// Compresses a block's run of tiles in a kernel of your own: elements are loaded, can be used and
/// stored elsewhere while they are in registers, and are compressed. With means (LFC) this is
/// DIVISION (Wang et al., ICML 2023), without them ActNN (Chen et al., ICML 2021).
/// Path    : layout.means.path, for which the kernel is compiled (with_path).
/// Threads : one-dimensional blocks of layout.num_threads() threads, layout.num_blocks() of them.
/// Shared  : layout.shared_bytes() bytes of dynamic shared memory, aligned to 16.
/// @code
/// // Copies x to y and compresses it, in one read.
/// template <furl::lfc_path Path>
/// __global__ void __launch_bounds__(furl::block_compress<Path>::max_threads)
///     copy_compress(furl::block_layout layout, const float* x, float* y, unsigned char* blob) {
///   extern __shared__ float4 shared[];
///   const furl::tile_run run(layout);
///   const furl::block_compress<Path> block(layout, run, shared);
///   furl::tile_fragment<float> values;
///   block.load(furl::array_elements<float>{x}, blob, values);
///   if (run.count == 0) return;  // beyond the tensor
///   furl::store_tile(y + run.tile * furl::tile_elements, run.count, values);
///   block.compress(values, furl::random_key{1, 2}, blob);
/// }
/// void launch(const furl::plan& plan, const float* x, float* y, unsigned char* blob) {
///   const furl::block_layout layout(plan);
///   const unsigned blocks = layout.num_blocks();
///   const unsigned threads = layout.num_threads();
///   if (blocks == 0) return;                         // an empty tensor
///   if (layout.means.path == furl::lfc_path::table)  // pool_all is the example of pool_cells
///     pool_all<<<unsigned((plan.num_cells() + 127) / 128), 128>>>(furl::cell_list(plan.grid()),
///                                                                 layout, x, blob);
///   furl::with_path(layout.means.path, [&](auto path) {
///     copy_compress<path><<<blocks, threads, layout.shared_bytes()>>>(layout, x, y, blob);
///   });
/// }
/// @endcode
template <lfc_path Path>
class block_compress {
 public:
  /// The most threads that layout.num_threads() asks for, for __launch_bounds__.
  static constexpr int max_threads = warp_threads * detail::max_tiles(Path);

  /// Every thread of the block constructs one, with the same arguments, to which it refers. There
  /// is no barrier. A Path other than layout.means.path ends the kernel with an error (__trap).
  __device__ __forceinline__ block_compress(const block_layout& layout, const tile_run& run,
                                            void* shared)
      : block_compress(detail::layout_of_path<Path>(layout), run, shared, detail::known_path{}) {}
  /// The same without that error, which costs three instructions a thread.
  __device__ __forceinline__ block_compress(const block_layout& layout, const tile_run& run,
                                            void* shared, detail::known_path)
      : layout_(layout), run_(run), shared_(shared), means_(layout, run, shared) {}
  /// A temporary would be gone before it is used.
  block_compress(const block_layout&&, const tile_run&, void*) = delete;
  /// Likewise.
  block_compress(const block_layout&, const tile_run&&, void*) = delete;

  /// Loads the warp's tile, and works out the means that the block's elements contribute to.
  /// Threads : one block, all threads.
  /// Shapes  : source : array_elements or mapped_elements of all elements of the tensor.
  ///           blob   : global, layout.size_bytes bytes, aligned to 16.
  /// Shared  : that of the object.
  /// Sync    : the block, unless there are no means.
  /// Result  : v, in warps whose run.count is positive; absent elements repeat the last one.
  /// Pre     : with a window, this kernel writes nothing that `source` reads: other blocks read it
  ///           too. A kernel that works in place is for plans without a window.
  ///           With lfc_path::table, pool_cells has written the blob's LFC in a kernel before.
  template <class Source>
  __device__ __forceinline__ void load(const Source& source, u8* blob,
                                       tile_fragment<float>& v) const {
    means_.load(source, blob + layout_.lfc_offset, v);
  }

  /// Turns elements into their residuals, for kernels that then call compress_tile themselves.
  /// Threads : one warp, all lanes, if its run.count is positive.
  /// Shapes  : v    : what load has loaded.
  ///           blob : the one that load had.
  /// Shared  : that of the object.
  /// Sync    : within the warp.
  /// Post    : v holds residuals, and the means that the run owns are in the blob.
  __device__ __forceinline__ void subtract_means(tile_fragment<float>& v, u8* blob) const {
    means_.subtract(blob + layout_.lfc_offset, v);
  }

  /// Compresses the tile that load has loaded into v, which this changes.
  /// Threads : one warp, all lanes, if its run.count is positive.
  /// Shapes  : blob : the one that load had.
  /// Shared  : that of the object.
  /// Sync    : within the warp.
  /// Pre     : the plan's codes are not rotated (layout.is_rotated): else compress_rotated.
  /// Post    : the tile's part of the blob is written, padding included.
  __device__ __forceinline__ void compress(tile_fragment<float>& v, random_key key,
                                           u8* blob) const {
    subtract_means(v, blob);
    compress_tile(layout_, run_.tile, run_.count, v, key, blob);
  }

  /// Compresses the tile between ranges that are given, to whose ends it moves what lies beyond.
  /// With means they are ranges of the residuals.
  /// given : made on the host of the plan and the ranges.
  __device__ __forceinline__ void compress(tile_fragment<float>& v, const range_map& given,
                                           random_key key, u8* blob) const {
    subtract_means(v, blob);
    const min_max ends = saturate_tile(given, run_.tile, run_.count, layout_.group, v);
    compress_tile_in_range(layout_, run_.tile, run_.count, v, ends, key, blob);
  }

  /// Compresses the tile to rotated codes, in place of compress: for plans that have them, as
  /// layout.is_rotated says.
  __device__ __forceinline__ void compress_rotated(tile_fragment<float>& v, random_key key,
                                                   u8* blob) const {
    subtract_means(v, blob);
    small_rotation_storage& storage = detail::storage_of_warp(layout_, shared_);
    draw_signs(run_.tile, key, storage);
    compress_rotated_tile(layout_, run_.tile, run_.count, v, storage, blob);
  }

 private:
  const block_layout& layout_;
  const tile_run& run_;
  void* const shared_;
  const detail::means_of<Path> means_;
};

}  // namespace furl
