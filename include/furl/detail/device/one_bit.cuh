// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE WARP. Codes of one bit (FORMAT.md, A9): masks, signs and what is multiplied by them, with the
// operations on single elements that codebooks and dropout need too, in as few instructions as
// there can be, which compilers do not find by themselves.
//
// ONE GRID. The walk of kernels that do little more than to move elements and one bit for each:
// addresses and checks would cost as much as the work if every tile had its own.

#include "furl/block/codes.cuh"
#include "furl/block/layout.cuh"
#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/detail/device/intrinsics.cuh"
#include "furl/detail/device/launch.cuh"
#include "furl/detail/device/pairs.cuh"
#include "furl/detail/device/vectors.cuh"
#include "furl/detail/number.hpp"

#if !defined(__CUDACC_RTC__)
#include <cstdint>
#endif

FURL_HIDDEN_BEGIN

namespace furl {

/// a * Factor + c. Written in PTX since compilers make two operations of it.
template <int Factor>
__device__ __forceinline__ int multiply_add(int a, int c) {
  int r;
  asm("mad.lo.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "n"(Factor), "r"(c));
  return r;
}

/// (a & Mask) | c
template <u32 Mask>
__device__ __forceinline__ u32 and_or(u32 a, u32 c) {
  u32 r;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(r) : "r"(a), "n"(Mask), "r"(c));
  return r;
}

/// Bits of b where the mask is set, of a where it is not.
__device__ __forceinline__ u32 choose_bits(u32 mask, u32 a, u32 b) {
  u32 r;
  asm("lop3.b32 %0, %1, %2, %3, 0xac;" : "=r"(r) : "r"(mask), "r"(a), "r"(b));
  return r;
}

/// x where all bits of the mask are set, +0 where none is.
__device__ __forceinline__ float keep_by_mask(float x, u32 mask) {
  float r;
  asm("and.b32 %0, %1, %2;" : "=f"(r) : "f"(x), "r"(mask));
  return r;
}

/// Of four bytes that nibbles of Selector name, 8 for the lowest of the word: ff where the byte's
/// highest bit is set, else 0.
template <u32 Selector>
__device__ __forceinline__ u32 replicate_signs(u32 word) {
  u32 r;
  asm("prmt.b32 %0, %1, 0, %2;" : "=r"(r) : "r"(word), "n"(Selector));
  return r;
}

/// x where bit Index of a word is set, else +0.
template <int Index>
__device__ __forceinline__ float keep_by_bit(float x, u32 word) {
  float r;
  asm("{\n\t.reg .b32 mask;\n\t"
      "bfe.s32 mask, %2, %3, 1;\n\t"
      "and.b32 %0, %1, mask;\n\t}"
      : "=f"(r)
      : "f"(x), "r"(word), "n"(Index));
  return r;
}

/// product where factor is not 0, else +0.
__device__ __forceinline__ float keep_by_factor(float product, float factor) {
  float r;
  asm("{\n\t.reg .pred kept;\n\t"
      "setp.neu.f32 kept, %2, 0f00000000;\n\t"
      "selp.f32 %0, %1, 0f00000000, kept;\n\t}"
      : "=f"(r)
      : "f"(product), "f"(factor));
  return r;
}

/// x, or what it exceeds of lo..hi; lo for NaN.
__device__ __forceinline__ float clamp_to_range(float x, float lo, float hi) {
  float r;
  asm("max.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(lo));
  asm("min.f32 %0, %0, %1;" : "+f"(r) : "f"(hi));
  return r;
}

namespace detail {

/// Rows from Row on, behind those in `word`.
template <int Row, class T>
__device__ __forceinline__ u32 encode_binary_rows(const tile_fragment<T>& x, u32 threshold,
                                                  u32 word) {
  if constexpr (sizeof(T) == 4) {
    const float least = float_of(threshold);
    const u32 first = u32(minus_at_least(x.word[Row][0], least));
    word = Row == 0 ? first & 1u : and_or<0x00000001u << Row>(first, word);
    word = and_or<0x00000100u << Row>(u32(minus_at_least(x.word[Row][1], least)), word);
    word = and_or<0x00010000u << Row>(u32(minus_at_least(x.word[Row][2], least)), word);
    word = and_or<0x01000000u << Row>(u32(minus_at_least(x.word[Row][3], least)), word);
  } else {
    const u32 row = select_bytes(at_least_pair<T>(x.word[Row][0], threshold),
                                 at_least_pair<T>(x.word[Row][1], threshold), 0x6420);
    word = Row == 0 ? row & 0x01010101u : and_or<0x01010101u << Row>(row, word);
  }
  if constexpr (Row + 1 < rows_per_tile) {
    return encode_binary_rows<Row + 1>(x, threshold, word);
  } else {
    return word;
  }
}

template <int Row, bool Scales, class T>
__device__ __forceinline__ void scale_binary_rows(u32 word, float level, tile_fragment<T>& x) {
  if constexpr (Row < rows_per_tile) {
    auto& row = x.word[Row];
    if constexpr (sizeof(T) == 4) {
      row[0] = keep_by_bit<Row>(mul_rn(row[0], level), word);
      row[1] = keep_by_bit<Row + 8>(mul_rn(row[1], level), word);
      row[2] = keep_by_bit<Row + 16>(mul_rn(row[2], level), word);
      row[3] = keep_by_bit<Row + 24>(mul_rn(row[3], level), word);
    } else {
      if constexpr (Scales) {
        float v[4];
        unpack_row<T>(row, v);
        for (float& element : v) element = mul_rn(element, level);
        pack_row<T>(v, row);
      } else {
        for (u32& pair : row)
          pair = max_nan_pair<T>(pair, minus_infinities<T>);  // NaN is made 7fff
      }
      const u32 signs = word << (rows_per_tile - 1 - Row);
      row[0] &= replicate_signs<0x9988>(signs);
      row[1] &= replicate_signs<0xbbaa>(signs);
    }
    scale_binary_rows<Row + 1, Scales>(word, level, x);
  }
}

}  // namespace detail

/// Codes of one bit of a tile, 1 where x is at least the threshold, 0 also for NaN.
/// Threads : one warp, all lanes; x is each lane's own, of which `count` elements are present.
/// Shapes  : threshold : as threshold_word has it.
/// Shared  : none. Sync : none.
/// Result  : bit r of byte k of the word is that of row r and column 4 * lane + k, as in the blob.
template <class T>
__device__ __forceinline__ u32 encode_binary(const tile_fragment<T>& x, int count, u32 threshold) {
  const u32 word = detail::encode_binary_rows<0>(x, threshold, 0);
  return count < tile_elements ? word & present_bits(count) : word;
}

/// Makes of a tile what a ReLU makes of it: NaN where it is NaN, +0 where it is not above 0.
/// Threads : one warp, all lanes; x is each lane's own, of which `count` elements are present.
/// Shapes  : threshold : threshold_word of the smallest positive number.
/// Shared  : none. Sync : none.
/// Result  : x, replaced; and the mask of what was above 0, as encode_binary has it.
template <class T>
__device__ __forceinline__ u32 relu_tile(tile_fragment<T>& x, int count, u32 threshold) {
  const u32 mask = encode_binary(x, count, threshold);
  FURL_UNROLL
  for (auto& row : x.word) {
    FURL_UNROLL
    for (auto& element : row) {
      if constexpr (sizeof(T) == 4) {
        element = max_nan_zero(element);
      } else {
        element = max_nan_pair<T>(element, 0u);
      }
    }
  }
  return mask;
}

/// Multiplies by 0 or `level`, as the one-bit codes of a lane say. What is multiplied by 0 becomes
/// +0, whatever it was.
/// Threads : one warp, all lanes; word and x are each lane's own, the word as encode_binary has it.
/// Pre     : level is not 0; if not Scales, it is 1, which takes 16-bit types fewer instructions.
template <bool Scales, class T>
__device__ __forceinline__ void scale_binary(u32 word, float level, tile_fragment<T>& x) {
  detail::scale_binary_rows<0, Scales>(word, level, x);
}

namespace kernel {

/// Blocks whose warps have a few tiles each, which share the cost of tables and addresses.
FURL_HD constexpr unsigned blocks_of_few_tiles(i64 num_tiles) {
  return blocks_for((num_tiles - 1) / 4 + 1);
}

#if !defined(__CUDACC_RTC__)
/// Tiles that are whole, if the array is aligned to four elements, else 0.
template <class T>
i64 num_vector_tiles(const T* x, i64 num_elements) {
  return reinterpret_cast<::std::uintptr_t>(x) % (4 * sizeof(T)) == 0 ? num_elements / tile_elements
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
        num_vector_tiles(kernel::num_vector_tiles(in, count)),
        x(in),
        y(out),
        mask(codes) {
    if (kernel::num_vector_tiles(out, count) == 0) num_vector_tiles = 0;
  }
#endif
};

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

}  // namespace kernel
}  // namespace furl

FURL_HIDDEN_END
