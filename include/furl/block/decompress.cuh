// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE WARP. From the blob to a tile of values in registers, and on into an array or added to one
// (FORMAT.md, A7).

#include "furl/block/codes.cuh"
#include "furl/block/min_max.cuh"
#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/detail/device/pairs.cuh"
#include "furl/detail/number.hpp"

namespace furl {

/// A tile as the blob has it, in the registers of a warp.
struct coded_tile {
  u32 codes[rows_per_tile];  // of the lane's four columns
  float2 group;              // lo and step of the group that the lane looks after (group_of_lane)
};

/// Loads a tile from the blob.
/// Threads : one warp, all lanes with the same arguments.
/// Shapes  : tile_codes : global, 128 * bits bytes, aligned to 4.
///           metadata   : global, the blob's metadata part, aligned to 16.
///           tile       : its index in the tensor; `count` of its elements are present.
/// Shared  : none. Sync : none.
/// Pre     : 1 <= count <= 1024.
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

/// Values of the lane's four elements of a row, before any LFC is added. Absent elements have
/// values without meaning. Threads : one warp, all lanes with the same row. Shared : none. Sync :
/// within the warp.
__device__ __forceinline__ void dequantize_row(const coded_tile& coded, int row, float (&x)[4]) {
  const float lo = shuffle_in_eight(coded.group.x, row);
  const float step = shuffle_in_eight(coded.group.y, row);
  FURL_UNROLL
  for (int k = 0; k < 4; ++k) x[k] = fma_rn(byte_to_f32(coded.codes[row], u32(k)), step, lo);
}

/// The two in one, for a whole tile.
/// Threads, Shapes, Shared, Pre : as load_coded_tile. Sync : within the warp.
__device__ __forceinline__ void dequantize_tile(const u8* tile_codes, const u8* metadata, i64 tile,
                                                int count, const tile_codec& c,
                                                tile_fragment<float>& x) {
  const coded_tile coded = load_coded_tile(tile_codes, metadata, tile, count, c);
  FURL_UNROLL
  for (int row = 0; row < rows_per_tile; ++row) dequantize_row(coded, row, x.word[row]);
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

}  // namespace furl
