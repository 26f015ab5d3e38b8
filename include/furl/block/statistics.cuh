// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE WARP. Elements of a tile in registers are normalised by the statistics of a norm layer, or
// taken back to what they were (FORMAT.md, A14).

#include "furl/block/min_max.cuh"
#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/detail/device/intrinsics.cuh"
#include "furl/detail/statistics.hpp"

namespace furl {

namespace detail {

/// Calls apply(value, mean, factor) for every element of a tile, with the mean and what `factor`
/// makes of the inverse deviation. Absent elements have those of the last one. Sync: the warp.
template <class Factor, class Apply>
__device__ __forceinline__ void apply_statistics(const statistics_map& given, i64 tile, int count,
                                                 tile_fragment<float>& x, const Factor& factor,
                                                 const Apply& apply) {
  const statistics_origin at = given.origin(tile * tile_elements);
  const auto load = [&](int element) -> float2 {
    const u32 index = given.index(at, u32(min(element, count - 1)));
    return {given.mean_at(index), factor(given.inverse_deviation[index])};
  };
  if (given.are_of_32() || given.run_length(at, 0) >= u32(count)) {
    const float2 mine = load(group_of_lane(lane_index(), 32).begin);
    FURL_UNROLL
    for (int row = 0; row < rows_per_tile; ++row) {
      const float mean = shuffle_in_eight(mine.x, row);
      const float shared = shuffle_in_eight(mine.y, row);
      FURL_UNROLL
      for (int k = 0; k < 4; ++k) apply(x.word[row][k], mean, shared);
    }
  } else {
    FURL_UNROLL
    for (int row = 0; row < rows_per_tile; ++row) {
      __syncwarp();  // statistics of one row at a time: those of all take too many registers
      FURL_UNROLL
      for (int k = 0; k < 4; ++k) {
        const float2 own = load(row_begin(row, lane_index()) + k);
        apply(x.word[row][k], own.x, own.y);
      }
    }
  }
}

}  // namespace detail

/// Normalises a tile: (x - mean) * inverse_deviation.
/// Threads : one warp, all lanes with the same arguments but x.
/// Shapes  : given : of statistics in global memory, made on the host.
///           tile  : the tile's index in the tensor; `count` of its elements are present.
///           x     : the tile as load_tile leaves it, and after that: absent elements repeat the
///                   last one.
/// Shared  : none.
/// Sync    : within the warp.
/// Pre     : given.inverse_deviation is not null; count is 1..1024.
/// @code
/// // Compresses x as layer norm normalises it, a tile for each warp of any one-dimensional grid:
/// // furl::statistics_map given({mean, inverse_deviation, tokens, width}).
/// __global__ void compress_normalised(furl::blob_layout layout, furl::statistics_map given,
///                                     const float* x, unsigned char* blob, furl::random_key key) {
///   using namespace furl;
///   for (i64 tile = first_tile(); tile < layout.num_tiles; tile += tile_stride()) {
///     const int count = elements_in_tile(layout.num_elements, tile);
///     tile_fragment<float> values;
///     load_tile(x + tile * tile_elements, count, values);
///     normalise_tile(given, tile, count, values);
///     compress_tile(layout, tile, count, values, key, blob);
///   }
/// }
/// @endcode
__device__ __forceinline__ void normalise_tile(const statistics_map& given, i64 tile, int count,
                                               tile_fragment<float>& x) {
  detail::apply_statistics(
      given, tile, count, x, [](float inverse_deviation) { return inverse_deviation; },
      [](float& value, float mean, float factor) { value = normalise(value, mean, factor); });
}

/// The inverse of normalise_tile, but for roundings: v * deviation + mean. Everything else is as
/// there.
/// @code
/// // Restores what compress_normalised has compressed.
/// __global__ void restore_normalised(furl::blob_layout layout, furl::statistics_map given,
///                                    const unsigned char* blob, float* y) {
///   using namespace furl;
///   for (i64 tile = first_tile(); tile < layout.num_tiles; tile += tile_stride()) {
///     const int count = elements_in_tile(layout.num_elements, tile);
///     coded_tile coded;
///     if (!load_coded_tile(layout, tile, count, blob, coded)) continue;
///     tile_fragment<float> values;
///     for (int row = 0; row < rows_per_tile; ++row) dequantize_row(coded, row, values.word[row]);
///     denormalise_tile(given, tile, count, values);
///     store_tile(y + tile * tile_elements, count, values);
///   }
/// }
/// @endcode
__device__ __forceinline__ void denormalise_tile(const statistics_map& given, i64 tile, int count,
                                                 tile_fragment<float>& v) {
  detail::apply_statistics(
      given, tile, count, v,
      [](float inverse_deviation) { return deviation_of(inverse_deviation); },
      [](float& value, float mean, float deviation) {
        value = denormalise(value, mean, deviation);
      });
}

}  // namespace furl
