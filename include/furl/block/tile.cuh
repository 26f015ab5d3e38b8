// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE WARP. A tile of 1024 elements in the registers of a warp, and its way from and to memory.

#include "furl/config.hpp"
#include "furl/detail/device/intrinsics.cuh"
#include "furl/detail/device/pairs.cuh"
#include "furl/detail/number.hpp"

namespace furl {

/// How a tile is coded, the same in all lanes.
struct tile_codec {
  int bits;         // 1..8
  int group;        // 32, 64, 128, 256, 512 or 1024
  dtype meta;       // bf16 or f32
  bool stochastic;  // otherwise to nearest
};

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

/// The four elements of a row, as f32.
template <class T>
__device__ __forceinline__ void unpack_row(const u32 (&word)[2], float (&x)[4]) {
  FURL_UNROLL
  for (int w = 0; w < 2; ++w) {
    const f32_pair pair = unpack_pair<T>(word[w]);
    x[2 * w] = pair.low;
    x[2 * w + 1] = pair.high;
  }
}
/// The same of f32, for code that takes any type.
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
/// Four values as elements of a row, each rounded to nearest even; overflow gives infinity.
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

/// Elements of a tile that a tensor of n elements has: 1..1024.
__device__ __forceinline__ int elements_in_tile(i64 num_elements, i64 tile) {
  const i64 left = num_elements - tile * tile_elements;
  return left < tile_elements ? int(left) : tile_elements;
}

/// Whether every row of a lane can be loaded and stored as one vector.
template <class T>
__device__ __forceinline__ bool is_vector_aligned(const T* x) {
  return (u64(x) & (4 * sizeof(T) - 1)) == 0;
}

/// Index in the tile of the first of a lane's four elements of a row.
__device__ __forceinline__ int row_begin(int row, int lane) {
  return row * row_elements + 4 * lane;
}

// ---- Vectors of four elements ----------------------------------------------------------------

/// @{
/// With streaming hints: a tile passes once. `at` is an address in global memory, Offset bytes
/// before the vector; as a constant of the instruction it costs nothing.
template <int Offset>
__device__ __forceinline__ void load_vector(u64 at, u32 (&word)[1]) {
  asm volatile("ld.global.cs.b32 %0, [%1 + %2];" : "=r"(word[0]) : "l"(at), "n"(Offset) : "memory");
}
template <int Offset>
__device__ __forceinline__ void load_vector(u64 at, u32 (&word)[2]) {
  asm volatile("ld.global.cs.v2.b32 {%0, %1}, [%2 + %3];"
               : "=r"(word[0]), "=r"(word[1])
               : "l"(at), "n"(Offset)
               : "memory");
}
template <int Offset>
__device__ __forceinline__ void load_vector(u64 at, float (&word)[4]) {
  asm volatile("ld.global.cs.v4.f32 {%0, %1, %2, %3}, [%4 + %5];"
               : "=f"(word[0]), "=f"(word[1]), "=f"(word[2]), "=f"(word[3])
               : "l"(at), "n"(Offset)
               : "memory");
}
template <int Offset>
__device__ __forceinline__ void store_vector(u64 at, const u32 (&word)[1]) {
  asm volatile("st.global.cs.b32 [%1 + %2], %0;" : : "r"(word[0]), "l"(at), "n"(Offset) : "memory");
}
template <int Offset>
__device__ __forceinline__ void store_vector(u64 at, const u32 (&word)[2]) {
  asm volatile("st.global.cs.v2.b32 [%2 + %3], {%0, %1};"
               :
               : "r"(word[0]), "r"(word[1]), "l"(at), "n"(Offset)
               : "memory");
}
template <int Offset>
__device__ __forceinline__ void store_vector(u64 at, const float (&word)[4]) {
  asm volatile("st.global.cs.v4.f32 [%4 + %5], {%0, %1, %2, %3};"
               :
               : "f"(word[0]), "f"(word[1]), "f"(word[2]), "f"(word[3]), "l"(at), "n"(Offset)
               : "memory");
}

/// @}

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

/// @{
/// Without a hint, for what is read again.
__device__ __forceinline__ void load_cached_vector(const void* from, u32 (&word)[2]) {
  const uint2 v = *static_cast<const uint2*>(from);
  word[0] = v.x;
  word[1] = v.y;
}
__device__ __forceinline__ void load_cached_vector(const void* from, float (&word)[4]) {
  const float4 v = *static_cast<const float4*>(from);
  word[0] = v.x;
  word[1] = v.y;
  word[2] = v.z;
  word[3] = v.w;
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

/// Four elements from `first` on; in place of those from `count` on the last one before.
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

/// Loads a tile. Elements from `count` on repeat the last one: they widen no group.
/// Threads : one warp, all lanes with the same arguments.
/// Shapes  : tile : global, `count` elements at any element alignment; four at a time if it is
///           aligned to four.
/// Shared  : none. Sync : none.
/// Result  : every lane holds its part of the tile.
/// Pre     : 1 <= count <= 1024.
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

/// The same, as f32.
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

/// Stores the first `count` elements of a tile.
/// Threads, Shapes, Shared, Sync, Pre : as load_tile.
/// Post    : tile[0..count - 1] is written, nothing else.
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

}  // namespace furl
