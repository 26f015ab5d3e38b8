// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE WARP. Codes of positives (FORMAT.md, R9): from the output of a ReLU in registers to its
// mask, means and rotated codes in a blob, and back.

#include "furl/block/layout.cuh"
#include "furl/block/rotated.cuh"
#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/detail/device/intrinsics.cuh"
#include "furl/detail/device/one_bit.cuh"
#include "furl/detail/device/rotated_codes.cuh"
#include "furl/detail/number.hpp"
#include "furl/detail/rotated.hpp"

namespace furl {

/// Makes of a tile what a ReLU makes of it: NaN where it is NaN, +0 where it is not above 0.
/// Threads : one warp, all lanes.
/// Shapes  : x : a tile, of which `count` elements are present.
/// Shared  : none.
/// Sync    : none.
/// Result  : x, replaced; and the lane's mask, as compress_positives_tile takes it: bit r of byte k
///           says whether row r and column 4 * lane + k was above 0.
template <class T>
__device__ __forceinline__ u32 relu_tile(tile_fragment<T>& x, int count) {
  return relu_tile(x, count, sizeof(T) == 4 ? 1u : 0x10001u);  // patterns of the smallest number
}

namespace detail {

/// Where the (scale, mean) of the lane's block is, as one word.
__device__ __forceinline__ u64 pair_of_block(const blob_layout& layout, i64 tile) {
  return layout.meta_offset + (u64(tile) * blocks_per_tile + u64(lane_index() / 8)) * sizeof(u32);
}
/// Where the lane's word of the mask is.
__device__ __forceinline__ u64 mask_of_lane(const blob_layout& layout, i64 tile) {
  return layout.mask_offset() + u64(tile) * row_elements + u64(lane_index()) * sizeof(u32);
}

/// The stored mean of the lane's block, of elements of which none is below 0.
__device__ __forceinline__ u16 mean_of_block(const tile_fragment<float>& z, u32 mask) {
  float of_column[4];
  FURL_UNROLL
  for (int k = 0; k < 4; ++k) {
    of_column[k] = z.word[0][k];
    FURL_UNROLL
    for (int row = 1; row < rows_per_tile; ++row)
      of_column[k] = add_rn(of_column[k], z.word[row][k]);
  }
  float sum = add_rn(add_rn(of_column[0], of_column[1]), add_rn(of_column[2], of_column[3]));
  u32 count = u32(__popc(mask));
  FURL_UNROLL
  for (int distance = 1; distance < 8; distance *= 2) {
    sum = add_rn(sum, shuffle_xor(sum, distance));
    count += shuffle_xor(count, distance);
  }
  return mean_of_positives(sum, int(count));
}

}  // namespace detail

/// Compresses the output of a ReLU into its place in the blob of a plan with coding::positives.
/// Threads : one warp, all lanes with the same arguments but mask and z.
/// Shapes  : tile  : its index in the tensor, whose signs are in the storage.
///           count : elements that are present, 1..1024.
///           mask  : the lane's, as relu_tile gives it.
///           z     : the tile, as relu_tile leaves it. It is changed.
///           blob  : global, layout.size_bytes bytes, aligned to 16.
/// Shared  : storage of the warp.
/// Sync    : within the warp.
/// Post    : the tile's codes, scales, means and mask are written.
/// @code
/// // The ReLU of the sum of x and b to y, and all that its backward pass needs: <<<any, 128>>>.
/// __global__ void relu_of_sum(furl::blob_layout layout, const float* x, const float* b, float* y,
///                             unsigned char* blob, furl::random_key key) {
///   using namespace furl;
///   __shared__ small_rotation_storage of_warps[4];
///   small_rotation_storage& storage = of_warps[warp_index()];
///   for (i64 tile = first_tile(); tile < layout.num_tiles; tile += tile_stride()) {
///     const int count = elements_in_tile(layout.num_elements, tile);
///     tile_fragment<float> values;
///     tile_fragment<float> addend;
///     load_tile(x + tile * tile_elements, count, values);
///     load_tile(b + tile * tile_elements, count, addend);
///     for (int row = 0; row < rows_per_tile; ++row)
///       for (int k = 0; k < 4; ++k) values.word[row][k] += addend.word[row][k];
///     const unsigned mask = relu_tile(values, count);
///     store_tile(y + tile * tile_elements, count, values);
///     draw_signs(tile, key, storage);
///     compress_positives_tile(layout, tile, count, mask, values, storage, blob);
///   }
/// }
/// @endcode
template <class T, class Storage>
__device__ __forceinline__ void compress_positives_tile(const blob_layout& layout, i64 tile,
                                                        int count, u32 mask, tile_fragment<T>& z,
                                                        Storage& storage, u8* blob) {
  if (count < tile_elements) clear_absent(z, count);
  *reinterpret_cast<u32*>(blob + detail::mask_of_lane(layout, tile)) = mask;
  tile_fragment<float> residual;
  FURL_UNROLL
  for (int row = 0; row < rows_per_tile; ++row) unpack_row<T>(z.word[row], residual.word[row]);
  const u16 mean = detail::mean_of_block(residual, mask);
  const float negated = -f32_from_bf16(mean);
  FURL_UNROLL
  for (int row = 0; row < rows_per_tile; ++row) {
    FURL_UNROLL
    for (float& v : residual.word[row])
      v = fma_rn(negated, detail::one_at_least(v, 0x1p-149f), v);  // the product is exact
  }
  const u32 scale = detail::code_rotated_tile(residual, tile, layout.bits, storage,
                                              blob + layout.place_of(tile).offset);
  if (lane_index() % 8 == 0)
    *reinterpret_cast<u32*>(blob + detail::pair_of_block(layout, tile)) = u32(mean) << 16 | scale;
}

/// A tile of positives of a blob, in the registers of a warp.
struct positives_tile {
  rotated_tile residual;  // of the lane's elements
  float mean;             // of the positives of the lane's block
  u32 mask;               // of the lane's elements
};

/// Loads a tile from its place in the blob of a plan with coding::positives.
/// Threads : one warp, all lanes with the same arguments.
/// Shapes  : tile : its index in the tensor, whose signs are in the storage.
///           blob : global, layout.size_bytes bytes, aligned to 16.
/// Shared  : storage of the warp.
/// Sync    : within the warp.
/// Result  : the tile, as dequantize_row takes it.
template <class Storage>
__device__ __forceinline__ positives_tile load_positives_tile(const blob_layout& layout, i64 tile,
                                                              const u8* blob, Storage& storage) {
  const u32 pair = *reinterpret_cast<const u32*>(blob + detail::pair_of_block(layout, tile));
  const u32 mask = *reinterpret_cast<const u32*>(blob + detail::mask_of_lane(layout, tile));
  return {detail::load_scaled_tile(tile, layout.bits, blob + layout.place_of(tile).offset,
                                   pair & 0xffffu, storage),
          float_of(pair & 0xffff0000u), mask};
}

/// Restores the lane's four elements of a row, +0 where the ReLU gave it.
/// Threads : any lane, for its own elements.
/// Shared  : none.
/// Sync    : none.
__device__ __forceinline__ void dequantize_row(const positives_tile& tile, int row, float (&x)[4]) {
  dequantize_row(tile.residual, row, x);
  const u32 on_top = tile.mask << (rows_per_tile - 1 - row);  // the row's bit of each byte
  x[0] = keep_by_mask(add_rn(x[0], tile.mean), replicate_signs<0x8888>(on_top));
  x[1] = keep_by_mask(add_rn(x[1], tile.mean), replicate_signs<0x9999>(on_top));
  x[2] = keep_by_mask(add_rn(x[2], tile.mean), replicate_signs<0xaaaa>(on_top));
  x[3] = keep_by_mask(add_rn(x[3], tile.mean), replicate_signs<0xbbbb>(on_top));
}

}  // namespace furl
