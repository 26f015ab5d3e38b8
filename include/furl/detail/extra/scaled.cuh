// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE WARP. Tiles by a codebook with a scale for each group (FORMAT.md, A13).
// ONE GRID. The kernels, one warp a tile.

#include "furl/block/codes.cuh"
#include "furl/block/decompress.cuh"
#include "furl/block/layout.cuh"
#include "furl/block/min_max.cuh"
#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/detail/device/intrinsics.cuh"
#include "furl/detail/device/launch.cuh"
#include "furl/detail/device/one_bit.cuh"
#include "furl/detail/device/pairs.cuh"
#include "furl/detail/extra/codebook.cuh"
#include "furl/detail/extra/scaled.hpp"
#include "furl/detail/extra/threshold_search.cuh"
#include "furl/extra/codebook.hpp"

FURL_HIDDEN_BEGIN

namespace furl {

/// How the groups of a tensor get their scales.
struct scale_source {
  const float* given = nullptr;  // global; null: scales are measured
  i64 num_given = 0;             // 1, which is for all, or one for each group
  float largest_level = 0.0f;    // of the codebook
};

/// Finds the largest magnitude of each group of a tile, NaN if the group has a NaN.
/// Threads : one warp, all lanes with the same group.
/// Shared  : none. Sync : within the warp.
/// Result  : in every lane that of the group which it looks after (group_of_lane).
__device__ __forceinline__ float tile_largest(const tile_fragment<float>& x, int group) {
  const auto larger = [](float a, float b) { return max_nan(a, b); };
  float largest[rows_per_tile];
  FURL_UNROLL
  for (int row = 0; row < rows_per_tile; ++row) {
    float v[4];
    FURL_UNROLL
    for (int k = 0; k < 4; ++k) v[k] = keep_by_mask(x.word[row][k], 0x7fffffffu);
    largest[row] = max_nan(max_nan(v[0], v[1]), max_nan(v[2], v[3]));
  }
  float mine = reduce_rows(largest, lane_index(), larger);
  for_each_distance(group,
                    [&](int distance) { mine = max_nan(mine, shuffle_xor(mine, distance)); });
  return mine;
}

/// Finds the same in a tile of f16 or bf16, two elements an operation.
template <class T>
__device__ __forceinline__ float tile_largest(const tile_fragment<T>& x, int group) {
  constexpr u32 magnitudes = 0x7fff7fffu;
  const auto larger = [](u32 a, u32 b) { return max_nan_pair<T>(a, b); };
  u32 largest[rows_per_tile];
  FURL_UNROLL
  for (int row = 0; row < rows_per_tile; ++row)
    largest[row] = larger(x.word[row][0] & magnitudes, x.word[row][1] & magnitudes);
  u32 mine = reduce_rows(largest, lane_index(), larger);
  for_each_distance(group, [&](int distance) { mine = larger(mine, shuffle_xor(mine, distance)); });
  const f32_pair result = unpack_pair<T>(mine);
  return max_nan(result.low, result.high);
}

/// Finds the scales of a tile's groups, and stores them.
/// Threads : one warp, all lanes with the same arguments but x.
/// Shapes  : x : the tile as load_tile leaves it; `count` of its elements are present.
/// Shared  : none. Sync : within the warp.
/// Result  : in every lane 1 over the scale of the group which it looks after (group_of_lane).
template <class T>
__device__ __forceinline__ float scale_groups(const blob_layout& layout, const scale_source& source,
                                              const tile_fragment<T>& x, i64 tile, int count,
                                              u8* blob) {
  const lane_group place = group_of_lane(lane_index(), layout.group);
  const i64 index = place.index(tile);
  const float* given = nullptr;
  // A group that begins beyond the tensor takes the first scale, and is not stored.
  if (source.given != nullptr)
    given = source.given + (source.num_given > 1 && place.begin < count ? index : 0);
  const group_scale mine =
      make_scale(tile_largest(x, layout.group), given, source.largest_level, layout.meta);
  if (place.is_first && place.begin < count)
    store_lfc(blob + layout.meta_offset, index, layout.meta, mine.scale);
  return mine.inverse;
}

/// The scale, in the blob, of the group that a lane looks after.
/// Threads : one warp, all lanes with the same arguments.
/// Shared  : none. Sync : none.
__device__ __forceinline__ float load_scale(const blob_layout& layout, const u8* blob, i64 tile,
                                            int count) {
  const lane_group place = group_of_lane(lane_index(), layout.group);
  if (place.begin >= count) return 0.0f;
  return load_lfc(blob + layout.meta_offset, place.index(tile), layout.meta);
}

/// Levels of a row's four codes, multiplied by the scales of their groups.
/// Threads : one warp, all lanes with the same row and table; scale is from load_scale.
/// Shared  : table. Sync : within the warp.
__device__ __forceinline__ void look_up_scaled_row(u32 codes, const level_table& table, float scale,
                                                   int row, float (&v)[4]) {
  const float of_row = shuffle_in_eight(scale, row);
  look_up_row(codes, table, v);
  FURL_UNROLL
  for (int k = 0; k < 4; ++k) v[k] = scale_level(v[k], of_row);
}

namespace kernel {

/// Codes of groups that are brought into the range of the levels.
/// SearchBits : at least book.bits().
template <class T, int SearchBits, class Architectures>
__global__ void __launch_bounds__(block_threads)
    pack_scaled(blob_layout layout, const FURL_GRID_CONSTANT codebook book, scale_source source,
                const T* x, u8* blob, key_argument key_source) {
  __shared__ threshold_tree<float> tree;
  __shared__ interval_table intervals;
  load_thresholds<SearchBits>(book, tree);
  if (book.rounding == rounding::stochastic) load_intervals(book, intervals);
  __syncthreads();
  const u32 stochastic = forgotten(book.rounding == rounding::stochastic);  // read once
  const u32 magnitudes = forgotten(book.of_magnitudes);                     // likewise
  const random_key key = key_source.get();
  const float first = book.level[0];
  const float last = book.level[book.num_levels - 1];
  for (i64 tile = first_tile(); tile < layout.num_tiles; tile += tile_stride()) {
    if (tile == 0) clear_padding(layout, blob);
    const int count = elements_in_tile(layout.num_elements, tile);
    tile_fragment<T> elements;
    load_tile(x + tile * tile_elements, count, elements);
    const float inverse = scale_groups(layout, source, elements, tile, count, blob);
    if (magnitudes != 0) take_magnitudes(elements);
    tile_fragment<float> scaled;
    FURL_UNROLL
    for (int row = 0; row < rows_per_tile; ++row) {
      const float of_row = shuffle_in_eight(inverse, row);
      unpack_row<T>(elements.word[row], scaled.word[row]);
      FURL_UNROLL
      for (int k = 0; k < 4; ++k) {
        float& v = scaled.word[row][k];
        v = mul_rn(v, of_row);
        if (stochastic != 0) v = clamp_to_range(v, first, last);
      }
    }
    u32 codes[rows_per_tile];
    encode_nearest<SearchBits>(scaled, tree, codes);
    if (stochastic != 0) round_between(scaled, intervals, tile, key, codes);
    if (count < tile_elements) clear_absent(codes, count);
    store_codes(codes, layout.bits, blob + codes_begin(tile, layout.bits));
  }
}

/// Levels of codes times scales.
template <class T, class Architectures>
__global__ void __launch_bounds__(block_threads)
    unpack_scaled(blob_layout layout, const FURL_GRID_CONSTANT codebook book, const u8* blob,
                  T* y) {
  __shared__ level_table table;
  load_levels(book, table);
  __syncthreads();
  for (i64 tile = first_tile(); tile < layout.num_tiles; tile += tile_stride()) {
    const int count = elements_in_tile(layout.num_elements, tile);
    u32 codes[rows_per_tile];
    load_codes(blob + codes_begin(tile, layout.bits), layout.bits, codes);
    const float scale = load_scale(layout, blob, tile, count);
    tile_fragment<T> out;
    FURL_UNROLL
    for (int row = 0; row < rows_per_tile; ++row) {
      float v[4];
      look_up_scaled_row(codes[row], table, scale, row, v);
      saturate_row<T>(v, out.word[row]);
    }
    store_tile(y + tile * tile_elements, count, out);
  }
}

/// Gradients times levels of codes times scales. out may be g.
template <class T, class Architectures>
__global__ void __launch_bounds__(block_threads)
    multiply_scaled(blob_layout layout, const FURL_GRID_CONSTANT codebook book, const u8* blob,
                    const T* g, T* out) {
  __shared__ level_table table;
  load_levels(book, table);
  __syncthreads();
  for (i64 tile = first_tile(); tile < layout.num_tiles; tile += tile_stride()) {
    const int count = elements_in_tile(layout.num_elements, tile);
    tile_fragment<T> gradient;
    load_tile(g + tile * tile_elements, count, gradient);
    u32 codes[rows_per_tile];
    load_codes(blob + codes_begin(tile, layout.bits), layout.bits, codes);
    const float scale = load_scale(layout, blob, tile, count);
    FURL_UNROLL
    for (int row = 0; row < rows_per_tile; ++row) {
      float v[4];
      float factor[4];
      unpack_row<T>(gradient.word[row], v);
      look_up_scaled_row(codes[row], table, scale, row, factor);
      FURL_UNROLL
      for (int k = 0; k < 4; ++k) v[k] = keep_by_factor(mul_rn(v[k], factor[k]), factor[k]);
      pack_row<T>(v, gradient.word[row]);
    }
    store_tile(out + tile * tile_elements, count, gradient);
  }
}

}  // namespace kernel
}  // namespace furl

FURL_HIDDEN_END
