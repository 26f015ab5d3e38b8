// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE WARP. From the blob to a tile of values in registers, and on into an array or added to one
// (README, A7).

#include "furl/block/codes.cuh"
#include "furl/block/metadata.cuh"
#include "furl/block/min_max.cuh"
#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/element/arithmetic.hpp"

namespace furl {

/// Values of a tile, before any LFC is added.
/// Threads : one warp, all lanes with the same arguments.
/// Shapes  : tile_codes : global, 128 * bits bytes, aligned to 4.
///           metadata   : global, the blob's metadata part, aligned to 16.
///           tile       : its index in the tensor; `count` of its elements are present.
/// Shared  : none. Sync : within the warp.
/// Result  : x, in f32; absent elements have values without meaning.
/// Pre     : 1 <= count <= 1024.
__device__ __forceinline__ void dequantize_tile(const u8* tile_codes, const u8* metadata, i64 tile,
                                                int count, const tile_codec& c,
                                                tile_fragment<float>& x) {
  u32 codes[rows_per_tile];
  load_codes(tile_codes, c.bits, codes);
  const lane_group place = group_of_lane(lane_index(), c.group);
  // Groups begin at or before `place.begin`, so one that begins in the tensor is in the blob.
  float2 mine{0.0f, 0.0f};
  if (place.begin < count) mine = load_group(metadata, place.index(tile), c.meta);
  FURL_UNROLL
  for (int row = 0; row < rows_per_tile; ++row) {
    const float lo = shuffle_in_eight(mine.x, row);
    const float step = shuffle_in_eight(mine.y, row);
    FURL_UNROLL
    for (int k = 0; k < 4; ++k) x.word[row][k] = fma(byte_to_f32(codes[row], u32(k)), step, lo);
  }
}

/// Converts values to the output type, as decompress does: what is beyond the largest finite f16 or
/// bf16 becomes that.
template <class T>
__device__ __forceinline__ void saturate_tile(const tile_fragment<float>& x, tile_fragment<T>& y) {
  FURL_UNROLL
  for (int row = 0; row < rows_per_tile; ++row) {
    FURL_UNROLL
    for (int w = 0; w < int(sizeof(T)); ++w) {
      if constexpr (sizeof(T) == 4) {
        y.word[row][w] = x.word[row][w];
      } else {
        y.word[row][w] = saturate_pair<T>(x.word[row][2 * w], x.word[row][2 * w + 1]);
      }
    }
  }
}

/// y + x in f32, rounded once to y's type, as decompress_add does: an overflow becomes infinity.
template <class T>
__device__ __forceinline__ void add_tile(const tile_fragment<float>& x, tile_fragment<T>& y) {
  FURL_UNROLL
  for (int row = 0; row < rows_per_tile; ++row) {
    float v[4];
    unpack_row<T>(y.word[row], v);
    FURL_UNROLL
    for (int k = 0; k < 4; ++k) v[k] = add(v[k], x.word[row][k]);
    FURL_UNROLL
    for (int w = 0; w < int(sizeof(T)); ++w) {
      if constexpr (sizeof(T) == 4) {
        y.word[row][w] = v[w];
      } else {
        y.word[row][w] = round_pair<T>(v[2 * w], v[2 * w + 1]);
      }
    }
  }
}

}  // namespace furl
