// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The elements that a kernel compresses: those of an array, or a function of them. Kernels take
// them from such a source, because a block works out means of cells that reach beyond its tiles.

#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/detail/device/intrinsics.cuh"
#include "furl/detail/device/pairs.cuh"
#include "furl/detail/device/vectors.cuh"

namespace furl {

/// The elements of an array in global memory, as a source for block_compress and pool_cells.
template <class T>
struct array_elements {
  const T* x;  // the first

  /// Those from element `begin` on.
  __device__ __forceinline__ array_elements from(i64 begin) const { return {x + begin}; }
  /// Element `i`, as f32.
  __device__ __forceinline__ float at(i64 i) const { return element_to_f32(x[i]); }
  /// Whether first_four may be called.
  __device__ __forceinline__ bool is_vector_aligned() const { return furl::is_vector_aligned(x); }
  /// The first four, in one load from a cache.
  __device__ __forceinline__ void first_four(float (&v)[4]) const {
    tile_fragment<T> loaded;
    load_cached_vector(x, loaded.word[0]);
    unpack_row<T>(loaded.word[0], v);
  }
  /// The first 1024 as a tile, of which `count` are present.
  __device__ __forceinline__ void load_tile(int count, tile_fragment<float>& v) const {
    load_tile_as_f32(x, count, v);
  }
};

/// The same with function(value, index) in place of each element, as f32 rounded to T, so that
/// what is compressed is what store_tile_as<T> would write. Every thread that needs an element
/// computes it again: the function must give the same each time.
template <class T, class Function>
struct mapped_elements {
  const T* x;         // the first
  i64 index;          // of that, in the tensor
  Function function;  // of the value as f32 and its index in the tensor

  /// Those from element `begin` on.
  __device__ __forceinline__ mapped_elements from(i64 begin) const {
    return {x + begin, index + begin, function};
  }
  /// Element `i`, as f32.
  __device__ __forceinline__ float at(i64 i) const {
    return round_element<T>(function(element_to_f32(x[i]), index + i));
  }
  /// Whether first_four may be called.
  __device__ __forceinline__ bool is_vector_aligned() const { return furl::is_vector_aligned(x); }
  /// The first four, in one load from a cache.
  __device__ __forceinline__ void first_four(float (&v)[4]) const {
    array_elements<T>{x}.first_four(v);
    FURL_UNROLL
    for (int k = 0; k < 4; ++k) v[k] = round_element<T>(function(v[k], index + k));
  }
  /// The first 1024 as a tile, of which `count` are present.
  __device__ __forceinline__ void load_tile(int count, tile_fragment<float>& v) const {
    load_tile_as_f32(x, count, v);
    for_each_element(v, [&](int i, float& value) {
      // What is absent repeats the last element, its index too.
      value = round_element<T>(function(value, index + min(i, count - 1)));
    });
  }
};

/// Makes mapped_elements of an array in global memory: a source for block_compress and pool_cells
/// in which function(value, index) takes the place of each element. The function gets the element
/// as f32 and its index in the tensor; it must give the same each time.
/// @code
/// // Compresses the squares of x, which are nowhere in memory.
/// __global__ void compress_squares(furl::block_layout layout, const float* x, unsigned char* blob,
///                                  furl::random_key key) {
///   extern __shared__ float4 shared[];
///   const furl::tile_run run(layout);
///   const furl::block_compress<furl::lfc_path::slots> block(layout, run, shared);
///   const auto square = [](float value, furl::i64 /*index*/) { return value * value; };
///   furl::tile_fragment<float> squares;
///   block.load(furl::map_elements(x, square), blob, squares);
///   if (run.count > 0) block.compress(squares, key, blob);
/// }
/// @endcode
template <class T, class Function>
__device__ __forceinline__ mapped_elements<T, Function> map_elements(const T* x,
                                                                     const Function& function) {
  return {x, 0, function};
}

}  // namespace furl
