// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE WARP. Rotated codes (FORMAT.md, R1 to R8): from a tile in registers to its part of the blob,
// and back.

#include "furl/block/codes.cuh"
#include "furl/block/layout.cuh"
#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/detail/device/intrinsics.cuh"
#include "furl/detail/device/pairs.cuh"
#include "furl/detail/device/rotated_codes.cuh"
#include "furl/detail/device/rotated_values.cuh"
#include "furl/detail/device/rotated_wide.cuh"
#include "furl/detail/device/rotation.cuh"
#include "furl/detail/device/vectors.cuh"
#include "furl/detail/number.hpp"
#include "furl/detail/rotated.hpp"

namespace furl {

/// Clears the elements that a partial last tile lacks: rotated codes are those of +0 there.
/// Threads : any lane, for its own elements.
/// Shared  : none.
/// Sync    : none.
/// Pre     : count, the elements that are present, is 1..1024.
template <class T>
__device__ __forceinline__ void clear_absent(tile_fragment<T>& x, int count) {
  FURL_UNROLL
  for (int row = 0; row < rows_per_tile; ++row) {
    const int present = count - row_begin(row, lane_index());
    FURL_UNROLL
    for (int w = 0; w < int(sizeof(T)); ++w) {
      if constexpr (sizeof(T) == 4) {
        if (present <= w) x.word[row][w] = 0.0f;
      } else {
        x.word[row][w] &= present >= 2 * w + 2 ? ~0u : present <= 2 * w ? 0u : 0xffffu;
      }
    }
  }
}

namespace detail {

/// Codes of a tile without absent elements, to any place, and the scale of the lane's block.
/// Everything else is as for compress_rotated_tile.
template <class T, class Storage>
__device__ __forceinline__ u32 code_rotated_tile(tile_fragment<T>& x, i64 tile, int bits,
                                                 Storage& storage, u8* tile_codes) {
  const int at = Storage::index_of(tile);
  const int lane = lane_index();
  float v[rows_per_tile][4];
  FURL_UNROLL
  for (int row = 0; row < rows_per_tile; ++row) {
    flip_row(storage.signs[0][at][lane], row, x.word[row]);
    unpack_row<T>(x.word[row], v[row]);
  }
  rotate_tile(v, storage.signs[1][at], storage.exchange);
  u32* const out = reinterpret_cast<u32*>(tile_codes) + lane;
  if (bits == 2) {
    const rotated_codes<2> codes = quantize_rotated<2>(v);
    store_words(u64(out), codes.plane);
    return codes.scale;
  }
  if (bits < 2) {
    const rotated_codes<1> codes = quantize_rotated<1>(v);
    store_words(u64(out), codes.plane);
    return codes.scale;
  }
  const rotated_codes<4> codes = quantize_wide(v, bits);
  store_wide(u64(out), codes.plane, bits);
  return codes.scale;
}

}  // namespace detail

/// Compresses a tile of elements, or of residuals, to any place.
/// Threads : one warp, all lanes with the same arguments but x.
/// Shapes  : x          : a tile: `count` elements are present, and the others are anything.
///           tile       : the tile's index in the tensor, whose signs are in the storage.
///           tile_codes : global, 128 * bits bytes, aligned to 4: where the tile's codes begin.
///           scales     : global, four of 16 bits: those of the tile's blocks.
/// Shared  : storage of the warp.
/// Sync    : within the warp.
/// Pre     : bits is 1..4; count is 1..1024.
/// Post    : the tile's codes and scales are written.
template <class T, class Storage>
__device__ __forceinline__ void compress_rotated_tile(tile_fragment<T>& x, int count, i64 tile,
                                                      int bits, Storage& storage, u8* tile_codes,
                                                      u16* scales) {
  if (count < tile_elements) clear_absent(x, count);
  const u32 scale = detail::code_rotated_tile(x, tile, bits, storage, tile_codes);
  if (lane_index() % 8 == 0) scales[lane_index() / 8] = u16(scale);
}

/// A rotated tile of a blob, as integers in the registers of a warp.
struct rotated_tile {
  detail::rotated_integers integers;  // of the lane's elements
  float factor;                       // the scale times 2, or 4; 0 or NaN for special blocks
  float offset;                       // factor * -1.5 * 2^23, which is exact
  u32 signs;                          // of the elements (R1); none for special blocks
};

namespace detail {

/// Loads a rotated tile with the scale of the lane's block. Everything else is as for
/// load_rotated_tile.
template <class Storage>
__device__ __forceinline__ rotated_tile load_scaled_tile(i64 tile, int bits, const u8* tile_codes,
                                                         u32 scale, Storage& storage) {
  const int at = Storage::index_of(tile);
  const int lane = lane_index();
  const u64 in = u64(reinterpret_cast<const u32*>(tile_codes) + lane);
  rotated_tile loaded;
  float stored = f32_from_bf16(u16(scale));
  if (bits == 2) {
    u32 plane[2];
    load_words(in, plane);
    __syncwarp();  // signs that other lanes have drawn
    transform_columns(plane, storage.signs[1][at], loaded.integers.word);
  } else if (bits < 2) {
    u32 plane[1];
    load_words(in, plane);
    __syncwarp();
    transform_columns(plane, storage.signs[1][at], loaded.integers.word);
  } else {
    u32 plane[4];
    load_wide(in, plane, bits);
    __syncwarp();
    transform_wide_columns(plane, storage.signs[1][at], loaded.integers.word);
    stored = add_rn(stored, stored);
  }
  restore_integers(loaded.integers, storage.exchange);
  loaded.factor = decodes_to_nan(scale) ? float_of(f32_nan_bits) : add_rn(stored, stored);
  loaded.offset = mul_rn(loaded.factor, -0x1.8p23f);
  loaded.signs = is_scale(scale) ? storage.signs[0][at][lane] : 0;
  return loaded;
}

}  // namespace detail

/// Loads a rotated tile from any place.
/// Threads : one warp, all lanes with the same arguments.
/// Shapes  : tile       : the tile's index in the tensor, whose signs are in the storage.
///           tile_codes : global, 128 * bits bytes, aligned to 4.
///           scales     : global, four of 16 bits: those of the tile's blocks.
/// Shared  : storage of the warp.
/// Sync    : within the warp.
/// Result  : the tile, as dequantize_row takes it.
/// Pre     : bits is 1..4.
template <class Storage>
__device__ __forceinline__ rotated_tile load_rotated_tile(i64 tile, int bits, const u8* tile_codes,
                                                          const u16* scales, Storage& storage) {
  return detail::load_scaled_tile(tile, bits, tile_codes, scales[lane_index() / 8], storage);
}

/// Restores the lane's four elements of a row, but for their signs (flip_row of `signs`).
/// Threads : any lane, for its own elements.
/// Shared  : none.
/// Sync    : none.
__device__ __forceinline__ void dequantize_unsigned_row(const rotated_tile& tile, int row,
                                                        float (&x)[4]) {
  constexpr u32 integer_bits = 0x4b400000u;  // 1.5 * 2^23, to whose bits v / 2 is added
  FURL_UNROLL
  for (int w = 0; w < 2; ++w) {
    const u32 word = tile.integers.word[row][w];
    const u32 sum = dot_halves<1, 1>(word, integer_bits - 2 * detail::bias_of_halves);
    const u32 difference = dot_halves<1, -1>(word, integer_bits);
    x[2 * w] = fma_rn(float_of(sum), tile.factor, tile.offset);
    x[2 * w + 1] = fma_rn(float_of(difference), tile.factor, tile.offset);
  }
}

/// Restores the lane's four elements of a row, to which no mean is added.
/// Threads, Shared, Sync : as dequantize_unsigned_row.
__device__ __forceinline__ void dequantize_row(const rotated_tile& tile, int row, float (&x)[4]) {
  dequantize_unsigned_row(tile, row, x);
  detail::flip_row(tile.signs, row, x);
}

// ---- Tiles of a blob -------------------------------------------------------------------------

namespace detail {

/// Where the scales of a tile are.
__device__ __forceinline__ u64 scales_of(const blob_layout& layout, i64 tile) {
  return layout.meta_offset + u64(tile) * blocks_per_tile * sizeof(u16);
}

}  // namespace detail

/// Compresses a tile of elements, or of residuals, into its place in the blob of a rotated plan.
/// Everything else is as for compress_rotated_tile to any place.
/// Shapes  : blob : global, layout.size_bytes bytes, aligned to 16.
/// Post    : the tile's codes and scales are written, and by tile 0 what pads the blob's parts.
/// @code
/// // Compresses the squares of x to rotated codes: <<<any, 128>>>.
/// __global__ void compress_rotated_squares(furl::blob_layout layout, const float* x,
///                                          unsigned char* blob, furl::random_key key) {
///   using namespace furl;
///   __shared__ small_rotation_storage of_warps[4];
///   small_rotation_storage& storage = of_warps[warp_index()];
///   for (i64 tile = first_tile(); tile < layout.num_tiles; tile += tile_stride()) {
///     const int count = elements_in_tile(layout.num_elements, tile);
///     tile_fragment<float> values;
///     load_tile(x + tile * tile_elements, count, values);
///     for_each_element(values, [](int, float& value) { value *= value; });
///     draw_signs(tile, key, storage);
///     compress_rotated_tile(layout, tile, count, values, storage, blob);
///   }
/// }
/// @endcode
template <class T, class Storage>
__device__ __forceinline__ void compress_rotated_tile(const blob_layout& layout, i64 tile,
                                                      int count, tile_fragment<T>& x,
                                                      Storage& storage, u8* blob) {
  if (tile == 0) clear_padding(layout, blob);
  compress_rotated_tile(x, count, tile, layout.bits, storage, blob + layout.place_of(tile).offset,
                        reinterpret_cast<u16*>(blob + detail::scales_of(layout, tile)));
}

/// Loads a tile from its place in the blob of a rotated plan. Everything else is as for
/// load_rotated_tile from any place.
/// Shapes  : blob : global, layout.size_bytes bytes, aligned to 16.
/// @code
/// // Restores what compress_rotated_squares has compressed: <<<any, 128>>>.
/// __global__ void restore_rotated(furl::blob_layout layout, const unsigned char* blob, float* y,
///                                 furl::random_key key) {
///   using namespace furl;
///   __shared__ small_rotation_storage of_warps[4];
///   small_rotation_storage& storage = of_warps[warp_index()];
///   for (i64 tile = first_tile(); tile < layout.num_tiles; tile += tile_stride()) {
///     draw_signs(tile, key, storage);
///     const rotated_tile loaded = load_rotated_tile(layout, tile, blob, storage);
///     tile_fragment<float> values;
///     for (int row = 0; row < rows_per_tile; ++row) dequantize_row(loaded, row, values.word[row]);
///     store_tile(y + tile * tile_elements, elements_in_tile(layout.num_elements, tile), values);
///   }
/// }
/// @endcode
template <class Storage>
__device__ __forceinline__ rotated_tile load_rotated_tile(const blob_layout& layout, i64 tile,
                                                          const u8* blob, Storage& storage) {
  return load_rotated_tile(tile, layout.bits, blob + layout.place_of(tile).offset,
                           reinterpret_cast<const u16*>(blob + detail::scales_of(layout, tile)),
                           storage);
}

}  // namespace furl
