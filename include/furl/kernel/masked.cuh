// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE GRID. The walk of kernels that do little more than to move elements and one bit for each:
// addresses and checks would cost as much as the work if every tile had its own.

#include "furl/block/blob_layout.cuh"
#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/kernel/launch.cuh"

#if !defined(__CUDACC_RTC__)
#include <algorithm>
#include <cstdint>
#endif

FURL_HIDDEN_BEGIN

namespace furl::kernel {

/// Blocks whose warps have a few tiles each, which share the cost of tables and addresses.
FURL_HD constexpr unsigned blocks_of_few_tiles(i64 num_tiles) {
  return blocks_for((num_tiles - 1) / 4 + 1);
}

#if !defined(__CUDACC_RTC__)
/// Tiles that are whole, if the array is aligned to four elements, else 0.
template <class T>
i64 num_vector_tiles(const T* x, i64 num_elements) {
  return reinterpret_cast<std::uintptr_t>(x) % (4 * sizeof(T)) == 0 ? num_elements / tile_elements
                                                                    : 0;
}
#endif

/// Elements, what becomes of them, and a blob of codes of one bit.
template <class T>
struct masked_arrays {
  i64 num_elements = 0;      // of x and y
  i64 num_vector_tiles = 0;  // whole tiles, if x and y are aligned to four elements, else 0
  const T* x = nullptr;      // read
  T* y = nullptr;            // written, if at all; may be x
  u32* mask = nullptr;       // codes: a word of each lane for each tile; or null

#if !defined(__CUDACC_RTC__)
  /// Of `count` elements.
  masked_arrays(i64 count, const T* in, T* out, u32* codes)
      : num_elements(count),
        num_vector_tiles(
            (std::min)(kernel::num_vector_tiles(in, count), kernel::num_vector_tiles(out, count))),
        x(in),
        y(out),
        mask(codes) {}
#endif
};

/// @{
/// One word of codes, with streaming hints. (A generic address that points to global memory is the
/// address in that space: the conversion, left out, would do nothing and yet be counted.)
__device__ __forceinline__ u32 load_word(const u32* at) {
  u32 word;
  asm("ld.global.cs.b32 %0, [%1];" : "=r"(word) : "l"(at));
  return word;
}
__device__ __forceinline__ void store_word(u32* at, u32 value) {
  asm volatile("st.global.cs.b32 [%0], %1;" : : "l"(at), "r"(value) : "memory");
}
/// @}

/// Calls function(elements, count, tile, word) for every tile: the lane's elements of x, of which
/// `count` of the tile are present, and the address of the lane's word of the mask. If Writes, the
/// elements are then stored to y.
/// Threads : a grid of one-dimensional blocks of whole warps, all threads.
template <bool Writes, class T, class Function>
__device__ __forceinline__ void for_each_masked_tile(const masked_arrays<T>& a,
                                                     const Function& function) {
  const int lane = lane_index();
  const i64 stride = tile_stride();
  const i64 lanes_element = first_tile() * tile_elements + 4 * lane;
  tile_fragment<T> elements;
  // Three addresses and nothing else are carried from tile to tile (the tile only if it is used).
  u64 from = __cvta_generic_to_global(a.x + lanes_element);
  u64 to = Writes ? __cvta_generic_to_global(a.y + lanes_element) : 0;
  const u64 end = __cvta_generic_to_global(a.x + a.num_vector_tiles * tile_elements);
  u32* word = a.mask + (i64(blockIdx.x) * i64(blockDim.x) + threadIdx.x);  // a word a lane
  for (i64 tile = first_tile(); from < end; tile += stride) {
    load_rows(from, elements);
    function(elements, tile_elements, tile, word);
    if constexpr (Writes) store_rows(to, elements);
    from += u64(stride) * tile_elements * sizeof(T);
    to += u64(stride) * tile_elements * sizeof(T);
    word += stride * words_per_row;
  }
  for (i64 tile = a.num_vector_tiles + first_tile(); tile * tile_elements < a.num_elements;
       tile += stride) {
    const int count = elements_in_tile(a.num_elements, tile);
    load_tile(a.x + tile * tile_elements, count, elements);
    function(elements, count, tile, a.mask + tile * words_per_row + lane);
    if constexpr (Writes) store_tile(a.y + tile * tile_elements, count, elements);
  }
}

}  // namespace furl::kernel

FURL_HIDDEN_END
