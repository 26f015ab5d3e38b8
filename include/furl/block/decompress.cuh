// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE WARP. From the blob to a tile of values in registers, and on into an array or added to one
// (FORMAT.md, A7 and A12).

#include "furl/block/codes.cuh"
#include "furl/block/layout.cuh"
#include "furl/block/min_max.cuh"
#include "furl/block/rotated.cuh"
#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/detail/device/means.cuh"
#include "furl/detail/device/pairs.cuh"
#include "furl/detail/number.hpp"

namespace furl {

/// A tile as the blob has it, in the registers of a warp.
struct coded_tile {
  u32 codes[rows_per_tile];  // of the lane's four columns
  float2 group;              // lo and step of the group that the lane looks after (group_of_lane)
};

/// Loads a tile's codes and the metadata of its groups from any place.
/// Threads : one warp, all lanes with the same arguments.
/// Shapes  : tile_codes : global, 128 * bits bytes, aligned to 4.
///           metadata   : global, the blob's metadata part, aligned to 16.
///           tile       : the tile's index in the tensor; `count` of its elements are present.
/// Shared  : none.
/// Sync    : none.
/// Result  : each lane's part of the tile, as dequantize_row takes it.
/// Pre     : count is 1..1024.
__device__ __forceinline__ coded_tile load_coded_tile(const u8* tile_codes, const u8* metadata,
                                                      i64 tile, int count, const tile_codec& c) {
  coded_tile loaded;
  load_codes(tile_codes, c.bits, loaded.codes);
  const lane_group place = group_of_lane(lane_index(), c.group);
  // Groups begin at or before `place.begin`, so one that begins in the tensor is in the blob.
  loaded.group = {0.0f, 0.0f};
  if (place.begin < count) loaded.group = load_group(metadata, place.index(tile), c.meta);
  return loaded;
}

/// Restores the lane's four elements of a row, to which no mean is added.
/// Threads : one warp, all lanes with the same row.
/// Shared  : none.
/// Sync    : within the warp.
/// Result  : x, in which the values of absent elements have no meaning.
__device__ __forceinline__ void dequantize_row(const coded_tile& coded, int row, float (&x)[4]) {
  const float lo = shuffle_in_eight(coded.group.x, row);
  const float step = shuffle_in_eight(coded.group.y, row);
  FURL_UNROLL
  for (int k = 0; k < 4; ++k) x[k] = fma_rn(byte_to_f32(coded.codes[row], u32(k)), step, lo);
}

/// A tile as the blob has it, with what its codes were rounded with: for dithered decoding.
struct dithered_tile : coded_tile {
  u32 random[rows_per_tile];  // 255 - u (FORMAT.md, A6) of a row's elements, bytes 0, 2, 1 and 3
};

/// Draws again the random bits with which a tile was compressed.
/// Threads : one warp, all lanes with the same arguments but `coded`.
/// Shared  : none.
/// Sync    : none.
/// Result  : each lane's part of the tile, as dequantize_row takes it.
__device__ __forceinline__ dithered_tile dither(const coded_tile& coded, i64 tile, random_key key) {
  dithered_tile dithered{coded, {}};
  FURL_UNROLL
  for (int half = 0; half < 2; ++half) {
    const philox_block random = random_words(u64(tile), u32(half), u32(lane_index()), key);
    FURL_UNROLL
    for (int r = 0; r < 4; ++r) dithered.random[4 * half + r] = ~random.word[r];
  }
  return dithered;
}

/// Restores the lane's four elements of a row as the midpoints of what gives their codes with their
/// random bits (FORMAT.md, A12). Everything else is as for coded tiles.
__device__ __forceinline__ void dequantize_row(const dithered_tile& dithered, int row,
                                               float (&x)[4]) {
  const float lo = shuffle_in_eight(dithered.group.x, row);
  const float step = shuffle_in_eight(dithered.group.y, row);
  FURL_UNROLL
  for (int pair = 0; pair < 2; ++pair) {
    const u32 sums =  // 256 code + 255 - u, of two elements
        select_bytes(dithered.random[row], dithered.codes[row], pair == 0 ? 0x5240 : 0x7361);
    FURL_UNROLL
    for (int k = 0; k < 2; ++k) {
      const float code = sub_rn(half_to_f32(sums, u32(k)), 255.0f / 512.0f);  // exact
      x[2 * pair + k] = fma_rn(code, step, lo);
    }
  }
}

/// Converts values to the output type, as decompress does: what is beyond the largest finite f16 or
/// bf16 becomes that.
template <class T>
__device__ __forceinline__ void saturate_row(const float (&x)[4], row_words<T>& y) {
  FURL_UNROLL
  for (int w = 0; w < int(sizeof(T)); ++w) {
    if constexpr (sizeof(T) == 4) {
      y[w] = x[w];
    } else {
      y[w] = saturate_pair<T>(x[2 * w], x[2 * w + 1]);
    }
  }
}

/// y + x in f32, rounded once to y's type, as decompress_add does: an overflow becomes infinity.
template <class T>
__device__ __forceinline__ void add_row(const float (&x)[4], row_words<T>& y) {
  float v[4];
  unpack_row<T>(y, v);
  FURL_UNROLL
  for (int k = 0; k < 4; ++k) v[k] = add_rn(v[k], x[k]);
  pack_row<T>(v, y);
}

// ---- Tiles of a blob -------------------------------------------------------------------------

/// Loads a tile's codes and the metadata of its groups from their place in a blob.
/// Threads : one warp, all lanes with the same arguments.
/// Shapes  : tile : the tile's index in the tensor; `count` of its elements are present.
///           blob : global, layout.size_bytes bytes, aligned to 16.
/// Shared  : none.
/// Sync    : within the warp.
/// Result  : whether the tile has a place, as it has unless tile_bits break their precondition; if
///           so, each lane's part of it in `coded`, as dequantize_row takes it.
/// Pre     : the plan's codes are not rotated (layout.is_rotated): rotated.cuh has those.
/// @code
/// // Restores the tiles of a plan without means.
/// __global__ void restore(furl::blob_layout layout, const unsigned char* blob, float* y) {
///   using namespace furl;
///   for (i64 tile = first_tile(); tile < layout.num_tiles; tile += tile_stride()) {
///     const int count = elements_in_tile(layout.num_elements, tile);
///     coded_tile coded;
///     if (!load_coded_tile(layout, tile, count, blob, coded)) continue;
///     tile_fragment<float> values;
///     for (int row = 0; row < rows_per_tile; ++row) dequantize_row(coded, row, values.word[row]);
///     store_tile(y + tile * tile_elements, count, values);
///   }
/// }
/// @endcode
__device__ __forceinline__ bool load_coded_tile(const blob_layout& layout, i64 tile, int count,
                                                const u8* blob, coded_tile& coded) {
  const tile_place place = layout.place_of(tile);
  if (place.bits == 0) return false;
  coded = load_coded_tile(blob + place.offset, blob + layout.meta_offset, tile, count,
                          layout.codec_of(place));
  return true;
}

/// Decompresses a block's run of tiles, with or without means (LFC), in a kernel of your own.
/// Path    : layout.means.path, for which the kernel is compiled (with_path).
/// Threads : one-dimensional blocks of layout.num_threads() threads, layout.num_blocks() of them.
/// Shared  : layout.shared_bytes() bytes of dynamic shared memory, aligned to 16.
/// @code
/// // y = factor * x for the x in a blob. The launch is as with block_compress.
/// template <furl::lfc_path Path>
/// __global__ void __launch_bounds__(furl::block_decompress<Path>::max_threads)
///     decompress_scaled(furl::block_layout layout, const unsigned char* blob, float factor,
///                       float* y) {
///   extern __shared__ float4 shared[];
///   const furl::tile_run run(layout);
///   const furl::block_decompress<Path> block(layout, run, shared, blob);
///   if (run.count == 0) return;  // beyond the tensor
///   furl::tile_fragment<float> out;
///   block.for_each_row([&](int row, const float(&values)[4]) {
///     for (int k = 0; k < 4; ++k) out.word[row][k] = factor * values[k];
///   });
///   furl::store_tile(y + run.tile * furl::tile_elements, run.count, out);
/// }
/// @endcode
template <lfc_path Path>
class block_decompress {
 public:
  /// The most threads that layout.num_threads() asks for, for __launch_bounds__.
  static constexpr int max_threads = warp_threads * detail::max_tiles(Path);

  /// Makes the means of the run's elements known to its warps. It refers to layout and run from
  /// then on. A Path other than layout.means.path ends the kernel with an error (__trap).
  /// Threads : one block, all threads with the same arguments.
  /// Shapes  : blob : global, layout.size_bytes bytes, aligned to 16.
  /// Sync    : the block, if the means go through shared memory.
  __device__ __forceinline__ block_decompress(const block_layout& layout, const tile_run& run,
                                              void* shared, const u8* blob)
      : block_decompress(detail::layout_of_path<Path>(layout), run, shared, blob,
                         detail::known_path{}) {}
  /// The same without that error, which costs three instructions a thread.
  __device__ __forceinline__ block_decompress(const block_layout& layout, const tile_run& run,
                                              void* shared, const u8* blob, detail::known_path)
      : layout_(layout), run_(run), shared_(shared), blob_(blob), means_(layout, run, shared) {
    means_.spread(blob + layout.lfc_offset);
  }
  /// A temporary would be gone before it is used.
  block_decompress(const block_layout&&, const tile_run&, void*, const u8*) = delete;
  /// Likewise.
  block_decompress(const block_layout&, const tile_run&&, void*, const u8*) = delete;

  /// Calls function(row, values) for every row of the warp's tile, with the restored values of the
  /// lane's four elements: a float[4] that the function may change.
  /// Threads : one warp, all lanes, if its run.count is positive.
  /// Shared  : that of the object.
  /// Sync    : within the warp.
  /// Result  : whether the tile has a place (load_coded_tile); without one there is no call.
  /// Pre     : the plan's codes are not rotated; dithered ones are restored as stochastic ones are.
  template <class Function>
  __device__ __forceinline__ bool for_each_row(const Function& function) const {
    coded_tile coded;
    if (!load_coded_tile(layout_, run_.tile, run_.count, blob_, coded)) return false;
    for_each_row_of(coded, function);
    return true;
  }
  /// The same for dithered codes, with the key that they were compressed with.
  template <class Function>
  __device__ __forceinline__ bool for_each_row(random_key key, const Function& function) const {
    coded_tile coded;
    if (!load_coded_tile(layout_, run_.tile, run_.count, blob_, coded)) return false;
    for_each_row_of(dither(coded, run_.tile, key), function);
    return true;
  }
  /// The same for rotated codes, as layout.is_rotated says, with the key that they were compressed
  /// with.
  template <class Function>
  __device__ __forceinline__ void for_each_rotated_row(random_key key,
                                                       const Function& function) const {
    small_rotation_storage& storage = detail::storage_of_warp(layout_, shared_);
    draw_signs(run_.tile, key, storage);
    for_each_row_of(load_rotated_tile(layout_, run_.tile, blob_, storage), function);
  }

  /// Restores the warp's tile into v. Everything else is as for for_each_row.
  __device__ __forceinline__ bool load(tile_fragment<float>& v) const {
    return for_each_row([&](int row, const float(&values)[4]) {
      FURL_UNROLL
      for (int k = 0; k < 4; ++k) v.word[row][k] = values[k];
    });
  }

 private:
  /// Calls function(row, values) for every row of a tile that dequantize_row takes.
  template <class Tile, class Function>
  __device__ __forceinline__ void for_each_row_of(const Tile& tile,
                                                  const Function& function) const {
    if constexpr (Path == lfc_path::none) {
      FURL_UNROLL
      for (int row = 0; row < rows_per_tile; ++row) {
        float values[4];
        dequantize_row(tile, row, values);
        function(row, values);
      }
    } else {
      means_.for_each_row(blob_ + layout_.lfc_offset, [&](int row, float4 mean) {
        float values[4];
        dequantize_row(tile, row, values);
        add_to_row(values, mean);
        function(row, values);
      });
    }
  }

  const block_layout& layout_;
  const tile_run& run_;
  void* const shared_;
  const u8* const blob_;
  const detail::means_of<Path> means_;
};

}  // namespace furl
