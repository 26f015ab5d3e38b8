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

/// The statistics of a tile's elements, as a mean and what `factor` makes of the inverse deviation.
/// Absent elements have those of the last one.
template <class Factor>
struct statistics_of_tile {
  const statistics_map& given;
  const statistics_origin at;  // of the tile
  const int count;             // of the elements that are present
  const Factor& factor;        // of an inverse deviation

  /// Of one element.
  __device__ __forceinline__ float2 of(int element) const {
    const u32 index = given.index(at, u32(min(element, count - 1)));
    return {given.mean_at(index), factor(given.inverse_deviation[index])};
  }
};

/// Calls apply(value, mean, factor) for every element, if any 32 from a multiple of 32 on share
/// theirs. Sync: the warp, as with those below.
template <class Tile, class Apply>
__device__ __forceinline__ void apply_shared(const Tile& tile, tile_fragment<float>& x,
                                             const Apply& apply) {
  const float2 mine = tile.of(group_of_lane(lane_index(), 32).begin);
  FURL_UNROLL
  for (int row = 0; row < rows_per_tile; ++row) {
    const float mean = shuffle_in_eight(mine.x, row);
    const float factor = shuffle_in_eight(mine.y, row);
    FURL_UNROLL
    for (int k = 0; k < 4; ++k) apply(x.word[row][k], mean, factor);
  }
}

/// The same if any 32 elements have at most two.
template <class Tile, class Apply>
__device__ __forceinline__ void apply_two(const Tile& tile, tile_fragment<float>& x,
                                          const Apply& apply) {
  const int begin = group_of_lane(lane_index(), 32).begin;
  const u32 border = u32(begin) + tile.given.run_length(tile.at, u32(begin));
  const float2 mine = tile.of(begin);
  const float2 next = tile.of(int(border));
  FURL_UNROLL
  for (int row = 0; row < rows_per_tile; ++row) {
    const float mean[2] = {shuffle_in_eight(mine.x, row), shuffle_in_eight(next.x, row)};
    const float factor[2] = {shuffle_in_eight(mine.y, row), shuffle_in_eight(next.y, row)};
    const int before = int(shuffle_in_eight(border, row)) - row_begin(row, lane_index());
    FURL_UNROLL
    for (int k = 0; k < 4; ++k)
      apply(x.word[row][k], k < before ? mean[0] : mean[1], k < before ? factor[0] : factor[1]);
  }
}

/// The same whatever elements share.
template <class Tile, class Apply>
__device__ __forceinline__ void apply_each(const Tile& tile, tile_fragment<float>& x,
                                           const Apply& apply) {
  FURL_UNROLL
  for (int row = 0; row < rows_per_tile; ++row) {
    __syncwarp();  // statistics of one row at a time: those of all take too many registers
    FURL_UNROLL
    for (int k = 0; k < 4; ++k) {
      const float2 own = tile.of(row_begin(row, lane_index()) + k);
      apply(x.word[row][k], own.x, own.y);
    }
  }
}

/// Whether a lane can load those of four elements as one vector.
__device__ __forceinline__ bool has_vectors(const statistics_map& given, int count) {
  return given.change_everywhere() && given.count() % 4 == 0 && count == tile_elements &&
         is_vector_aligned(given.mean) && is_vector_aligned(given.inverse_deviation);
}

/// The same if they can.
template <class Tile, class Apply>
__device__ __forceinline__ void apply_vectors(const Tile& tile, tile_fragment<float>& x,
                                              const Apply& apply) {
  FURL_UNROLL
  for (int row = 0; row < rows_per_tile; ++row) {
    __syncwarp();  // as in apply_each
    const u32 index = tile.given.index(tile.at, u32(row_begin(row, lane_index())));
    float mean[4] = {};
    float inverse_deviation[4];
    if (tile.given.mean != nullptr) load_cached_vector(tile.given.mean + index, mean);
    load_cached_vector(tile.given.inverse_deviation + index, inverse_deviation);
    FURL_UNROLL
    for (int k = 0; k < 4; ++k) apply(x.word[row][k], mean[k], tile.factor(inverse_deviation[k]));
  }
}

/// The same by the fastest way.
template <class Factor, class Apply>
__device__ __forceinline__ void apply_statistics(const statistics_map& given, i64 tile, int count,
                                                 tile_fragment<float>& x, const Factor& factor,
                                                 const Apply& apply) {
  const statistics_of_tile<Factor> of_tile{given, given.origin(tile * tile_elements), count,
                                           factor};
  if (given.are_of_32() || given.run_length(of_tile.at, 0) >= u32(count)) {
    apply_shared(of_tile, x, apply);
  } else if (given.are_of_many()) {
    apply_two(of_tile, x, apply);
  } else if (has_vectors(given, count)) {
    apply_vectors(of_tile, x, apply);
  } else {
    apply_each(of_tile, x, apply);
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
