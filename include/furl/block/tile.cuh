// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE WARP. A tile of 1024 elements in the registers of a warp, and its way from and to memory.

#include "furl/config.hpp"
#include "furl/detail/device/intrinsics.cuh"
#include "furl/detail/device/pairs.cuh"
#include "furl/detail/device/vectors.cuh"
#include "furl/detail/number.hpp"
#include "furl/types.hpp"

// CUDA's own 16-bit types, so that pointers to them need no cast. Their headers are not included:
// they take long to compile.
struct __half;
struct __nv_bfloat16;

namespace furl {

/// dtype::f16
template <>
struct dtype_of<::__half> : dtype_of<f16> {};
/// dtype::bf16
template <>
struct dtype_of<::__nv_bfloat16> : dtype_of<bf16> {};

/// What one lane holds of a tile: in every row (of 128 elements) the four from 4 * lane on, packed
/// in sizeof(T) words as they lie in memory. So a row is one full line or more of memory, and the
/// codes of a row's four elements fill one word. T has 1, 2 or 4 bytes.
template <class T>
struct tile_fragment {
  u32 word[rows_per_tile][sizeof(T)];  // by row
};
/// As floats.
template <>
struct tile_fragment<float> {
  float word[rows_per_tile][4];  // by row
};

/// A row of it.
template <class T>
struct row_words_of {
  using type = u32[sizeof(T)];  // as in tile_fragment
};
/// As floats.
template <>
struct row_words_of<float> {
  using type = float[4];  // as in tile_fragment
};
/// The same, shorter.
template <class T>
using row_words = typename row_words_of<T>::type;

/// Unpacks the four elements of a row as f32.
template <class T>
__device__ __forceinline__ void unpack_row(const u32 (&word)[2], float (&x)[4]) {
  FURL_UNROLL
  for (int w = 0; w < 2; ++w) {
    const f32_pair pair = unpack_pair<T>(word[w]);
    x[2 * w] = pair.low;
    x[2 * w + 1] = pair.high;
  }
}
/// Copies four elements that are f32 already, for code that takes any type.
template <class T>
__device__ __forceinline__ void unpack_row(const float (&word)[4], float (&x)[4]) {
  FURL_UNROLL
  for (int k = 0; k < 4; ++k) x[k] = word[k];
}

/// x - v of each element.
__device__ __forceinline__ void subtract_from_row(float (&x)[4], float4 v) {
  x[0] = sub_rn(x[0], v.x);
  x[1] = sub_rn(x[1], v.y);
  x[2] = sub_rn(x[2], v.z);
  x[3] = sub_rn(x[3], v.w);
}
/// x + v of each element.
__device__ __forceinline__ void add_to_row(float (&x)[4], float4 v) {
  x[0] = add_rn(x[0], v.x);
  x[1] = add_rn(x[1], v.y);
  x[2] = add_rn(x[2], v.z);
  x[3] = add_rn(x[3], v.w);
}

/// @{
/// Packs four values as elements of a row, each rounded to nearest even; overflow gives infinity.
template <class T>
__device__ __forceinline__ void pack_row(const float (&x)[4], u32 (&word)[2]) {
  FURL_UNROLL
  for (int w = 0; w < 2; ++w) word[w] = round_pair<T>(x[2 * w], x[2 * w + 1]);
}
template <class T>
__device__ __forceinline__ void pack_row(const float (&x)[4], float (&word)[4]) {
  FURL_UNROLL
  for (int k = 0; k < 4; ++k) word[k] = x[k];
}
/// @}

/// Whether every row of a lane can be loaded and stored as one vector.
template <class T>
__device__ __forceinline__ bool is_vector_aligned(const T* x) {
  return (u64(x) & (4 * sizeof(T) - 1)) == 0;
}

/// Index in the tile of the first of a lane's four elements of a row.
__device__ __forceinline__ int row_begin(int row, int lane) {
  return row * row_elements + 4 * lane;
}

/// Calls function(index, value) for each of the lane's 32 elements of a tile of f32: with its index
/// in the tile, and with a reference, by which the function may change it. Absent elements of a
/// partial tile are among them.
template <class Fragment, class Function>
__device__ __forceinline__ void for_each_element(Fragment& x, const Function& function) {
  const int lane = lane_index();
  FURL_UNROLL
  for (int row = 0; row < rows_per_tile; ++row) {
    FURL_UNROLL
    for (int k = 0; k < 4; ++k) function(row_begin(row, lane) + k, x.word[row][k]);
  }
}

/// @{
/// Rows Row..7 of a lane whose elements of row 0 are at `at`.
template <int Row = 0, class T>
__device__ __forceinline__ void load_rows(u64 at, tile_fragment<T>& x) {
  if constexpr (Row < rows_per_tile) {
    load_vector<Row * row_elements* int(sizeof(T))>(at, x.word[Row]);
    load_rows<Row + 1>(at, x);
  }
}
template <int Row = 0, class T>
__device__ __forceinline__ void store_rows(u64 at, const tile_fragment<T>& x) {
  if constexpr (Row < rows_per_tile) {
    store_vector<Row * row_elements* int(sizeof(T))>(at, x.word[Row]);
    store_rows<Row + 1>(at, x);
  }
}

/// @}

// ---- Four elements one by one ----------------------------------------------------------------

/// An unsigned integer of the size of a 1- or 2-byte element.
template <class T, int Bytes = int(sizeof(T))>
struct raw_bits {
  using type = u8;  // for one byte
};
/// For two bytes.
template <class T>
struct raw_bits<T, 2> {
  using type = u16;  // for two bytes
};

/// Four elements from `first` on. Those at `count` or beyond repeat element count - 1.
template <class T>
__device__ __forceinline__ void load_elements(const T* tile, int first, int count,
                                              u32 (&word)[sizeof(T)]) {
  using raw = typename raw_bits<T>::type;
  const raw* const x = reinterpret_cast<const raw*>(tile);
  constexpr int per_word = 4 / int(sizeof(T));
  const u32 last = x[count - 1];
  FURL_UNROLL
  for (int w = 0; w < int(sizeof(T)); ++w) word[w] = 0;
  FURL_UNROLL
  for (int k = 0; k < 4; ++k) {
    const u32 element = first + k < count ? u32(x[first + k]) : last;
    word[k / per_word] |= element << (8 * int(sizeof(T)) * (k % per_word));
  }
}
/// The same of f32.
__device__ __forceinline__ void load_elements(const float* tile, int first, int count,
                                              float (&word)[4]) {
  const float last = tile[count - 1];
  FURL_UNROLL
  for (int k = 0; k < 4; ++k) word[k] = first + k < count ? tile[first + k] : last;
}

/// Four elements from `first` on, of which those before `count` are stored.
template <class T>
__device__ __forceinline__ void store_elements(T* tile, int first, int count,
                                               const u32 (&word)[sizeof(T)]) {
  using raw = typename raw_bits<T>::type;
  raw* const x = reinterpret_cast<raw*>(tile);
  constexpr int per_word = 4 / int(sizeof(T));
  FURL_UNROLL
  for (int k = 0; k < 4; ++k)
    if (first + k < count)
      x[first + k] = raw(word[k / per_word] >> (8 * int(sizeof(T)) * (k % per_word)));
}
/// The same of f32.
__device__ __forceinline__ void store_elements(float* tile, int first, int count,
                                               const float (&word)[4]) {
  FURL_UNROLL
  for (int k = 0; k < 4; ++k)
    if (first + k < count) tile[first + k] = word[k];
}

// ---- Tiles -----------------------------------------------------------------------------------

/// Loads a tile. Elements from `count` on repeat the last one, so that they widen no group.
/// Threads : one warp, all lanes with the same arguments.
/// Shapes  : tile : global, `count` elements, aligned to one element; to four, it is fast.
/// Shared  : none.
/// Sync    : none.
/// Result  : each lane's part of the tile.
/// Pre     : count is 1..1024.
/// @code
/// // x = max(x, 0) in place, a tile for each warp of any one-dimensional grid.
/// __global__ void relu_in_place(float* x, furl::i64 num_elements) {
///   using namespace furl;
///   for (i64 tile = first_tile(); tile * tile_elements < num_elements; tile += tile_stride()) {
///     const int count = elements_in_tile(num_elements, tile);
///     tile_fragment<float> values;
///     load_tile(x + tile * tile_elements, count, values);
///     for_each_element(values, [](int, float& value) { value = fmaxf(value, 0.0f); });
///     store_tile(x + tile * tile_elements, count, values);
///   }
/// }
/// @endcode
template <class T>
__device__ __forceinline__ void load_tile(const T* tile, int count, tile_fragment<T>& x) {
  const int lane = lane_index();
  if (count == tile_elements && is_vector_aligned(tile)) {
    load_rows(__cvta_generic_to_global(tile + 4 * lane), x);
  } else {
    FURL_UNROLL
    for (int row = 0; row < rows_per_tile; ++row)
      load_elements(tile, row_begin(row, lane), count, x.word[row]);
  }
}

/// Loads a tile of any type as f32. Everything else is as for load_tile.
template <class T>
__device__ __forceinline__ void load_tile_as_f32(const T* tile, int count,
                                                 tile_fragment<float>& x) {
  if constexpr (sizeof(T) == sizeof(float)) {
    load_tile(tile, count, x);
  } else {
    tile_fragment<T> loaded;
    load_tile(tile, count, loaded);
    FURL_UNROLL
    for (int row = 0; row < rows_per_tile; ++row) unpack_row<T>(loaded.word[row], x.word[row]);
  }
}

/// Stores the first `count` elements of a tile; load_tile has an example.
/// Threads : one warp, all lanes with the same arguments but x.
/// Shapes  : tile : global, `count` elements, aligned to one element; to four, it is fast.
/// Shared  : none.
/// Sync    : none.
/// Pre     : count is 1..1024.
/// Post    : tile[0] to tile[count - 1] are written, and nothing else.
template <class T>
__device__ __forceinline__ void store_tile(T* tile, int count, const tile_fragment<T>& x) {
  const int lane = lane_index();
  if (count == tile_elements && is_vector_aligned(tile)) {
    store_rows(__cvta_generic_to_global(tile + 4 * lane), x);
  } else {
    FURL_UNROLL
    for (int row = 0; row < rows_per_tile; ++row)
      store_elements(tile, row_begin(row, lane), count, x.word[row]);
  }
}

/// Stores the first `count` elements of a tile of f32 as any type, each rounded to nearest even;
/// an overflow gives infinity. Everything else is as for store_tile.
/// @code
/// // y = factor * x, computed in f32 and rounded once to bf16.
/// __global__ void scale(const furl::f16* x, float factor, furl::bf16* y, furl::i64 num_elements) {
///   using namespace furl;
///   for (i64 tile = first_tile(); tile * tile_elements < num_elements; tile += tile_stride()) {
///     const int count = elements_in_tile(num_elements, tile);
///     tile_fragment<float> values;
///     load_tile_as_f32(x + tile * tile_elements, count, values);
///     for_each_element(values, [factor](int, float& value) { value *= factor; });
///     store_tile_as(y + tile * tile_elements, count, values);
///   }
/// }
/// @endcode
template <class T>
__device__ __forceinline__ void store_tile_as(T* tile, int count, const tile_fragment<float>& x) {
  if constexpr (sizeof(T) == sizeof(float)) {
    store_tile(tile, count, x);
  } else {
    tile_fragment<T> rounded;
    FURL_UNROLL
    for (int row = 0; row < rows_per_tile; ++row) pack_row<T>(x.word[row], rounded.word[row]);
    store_tile(tile, count, rounded);
  }
}

}  // namespace furl
