// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE WARP. Codes of a tile between registers and the blob (FORMAT.md). Their bits are an argument
// that all lanes share: a branch costs less than eight times the kernels. ONE THREAD. Numbers of
// the metadata type in the blob: (lo, step) pairs of groups, and LFC values
// (FORMAT.md). Both parts begin at a multiple of 16.

#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/detail/device/intrinsics.cuh"
#include "furl/detail/device/pairs.cuh"
#include "furl/detail/device/vectors.cuh"
#include "furl/detail/number.hpp"
#include "furl/detail/quantize.hpp"

namespace furl {

/// A lane's codes of a tile: byte k of word r is the code of column 4 * lane + k in row r.
using code_fragment = tile_fragment<u8>;

namespace detail {

// Words K.. of a lane, the first of which is at `at`: 128 bytes apart.
template <int K = 0, int Bits>
__device__ __forceinline__ void store_words(u64 at, const u32 (&packed)[Bits]) {
  if constexpr (K < Bits) {
    store_blob_word<K * row_elements>(at, packed[K]);
    store_words<K + 1>(at, packed);
  }
}
template <int K = 0, int Bits>
__device__ __forceinline__ void load_words(u64 at, u32 (&packed)[Bits]) {
  if constexpr (K < Bits) {
    packed[K] = load_blob_word<K * row_elements>(at);
    load_words<K + 1>(at, packed);
  }
}

template <int Bits>
__device__ __forceinline__ void store_packed(const u32 (&codes)[rows_per_tile], u32* out) {
  u32 packed[Bits];
  pack_columns<Bits>(codes, packed);
  store_words(u64(out), packed);
}

template <int Bits>
__device__ __forceinline__ void load_packed(const u32* in, u32 (&codes)[rows_per_tile]) {
  u32 packed[Bits];
  load_words(u64(in), packed);
  unpack_columns<Bits>(packed, codes);
}

}  // namespace detail

/// Packs a tile's codes and stores them.
/// Threads : one warp, all lanes with the same arguments but `codes`.
/// Shapes  : codes      : of the lane's elements: byte k of word r is that of row r and column
///                        4 * lane + k.
///           tile_codes : global, 128 * bits bytes, aligned to 4.
/// Shared  : none.
/// Sync    : none.
/// Pre     : bits is 1..8; every code is below 2^bits, and 0 for an absent element (clear_absent).
/// Post    : the tile's codes are written, one after another in their column: `bits` full lines of
///           128 bytes.
/// @code
/// // Packs the signs of x, with the layout of a plan from make_codes(1, shape).
/// __global__ void pack_signs(furl::blob_layout layout, const float* x, unsigned char* blob) {
///   using namespace furl;
///   for (i64 tile = first_tile(); tile < layout.num_tiles; tile += tile_stride()) {
///     const int count = elements_in_tile(layout.num_elements, tile);
///     tile_fragment<float> values;
///     load_tile(x + tile * tile_elements, count, values);
///     u32 codes[rows_per_tile] = {};
///     for (int row = 0; row < rows_per_tile; ++row)
///       for (int k = 0; k < 4; ++k)
///         if (values.word[row][k] < 0.0f) codes[row] |= 1u << (8 * k);
///     clear_absent(codes, count);
///     store_codes(codes, 1, blob + layout.place_of(tile).offset);
///   }
/// }
/// @endcode
__device__ __forceinline__ void store_codes(const u32 (&codes)[rows_per_tile], int bits,
                                            u8* tile_codes) {
  u32* const out = reinterpret_cast<u32*>(tile_codes) + lane_index();
  switch (bits) {
    case 1:
      return detail::store_packed<1>(codes, out);
    case 2:
      return detail::store_packed<2>(codes, out);
    case 3:
      return detail::store_packed<3>(codes, out);
    case 4:
      return detail::store_packed<4>(codes, out);
    case 5:
      return detail::store_packed<5>(codes, out);
    case 6:
      return detail::store_packed<6>(codes, out);
    case 7:
      return detail::store_packed<7>(codes, out);
    default:
      return detail::store_packed<8>(codes, out);
  }
}

/// Loads the codes that store_codes has stored, and unpacks them.
/// Threads : one warp, all lanes with the same arguments.
/// Shapes  : tile_codes : global, 128 * bits bytes, aligned to 4.
/// Shared  : none.
/// Sync    : none.
/// Result  : the codes of the lane's elements: byte k of word r is that of row r and column
///           4 * lane + k.
/// Pre     : bits is 1..8.
/// @code
/// // Negates the elements of y where the signs that pack_signs has packed are set.
/// __global__ void negate_by_signs(furl::blob_layout layout, const unsigned char* blob, float* y) {
///   using namespace furl;
///   for (i64 tile = first_tile(); tile < layout.num_tiles; tile += tile_stride()) {
///     const int count = elements_in_tile(layout.num_elements, tile);
///     tile_fragment<float> values;
///     load_tile(y + tile * tile_elements, count, values);
///     u32 codes[rows_per_tile];
///     load_codes(blob + layout.place_of(tile).offset, 1, codes);
///     for (int row = 0; row < rows_per_tile; ++row)
///       for (int k = 0; k < 4; ++k)
///         if ((codes[row] >> (8 * k) & 1u) != 0) values.word[row][k] = -values.word[row][k];
///     store_tile(y + tile * tile_elements, count, values);
///   }
/// }
/// @endcode
__device__ __forceinline__ void load_codes(const u8* tile_codes, int bits,
                                           u32 (&codes)[rows_per_tile]) {
  const u32* const in = reinterpret_cast<const u32*>(tile_codes) + lane_index();
  switch (bits) {
    case 1:
      return detail::load_packed<1>(in, codes);
    case 2:
      return detail::load_packed<2>(in, codes);
    case 3:
      return detail::load_packed<3>(in, codes);
    case 4:
      return detail::load_packed<4>(in, codes);
    case 5:
      return detail::load_packed<5>(in, codes);
    case 6:
      return detail::load_packed<6>(in, codes);
    case 7:
      return detail::load_packed<7>(in, codes);
    default:
      return detail::load_packed<8>(in, codes);
  }
}

/// Clears the codes of the elements that a partial last tile lacks.
/// Threads : any lane, for its own codes.
/// Shared  : none.
/// Sync    : none.
/// Pre     : count, the elements that are present, is 1..1024.
__device__ __forceinline__ void clear_absent(u32 (&codes)[rows_per_tile], int count) {
  const int lane = lane_index();
  FURL_UNROLL
  for (int row = 0; row < rows_per_tile; ++row) {
    const int present = count - row_begin(row, lane);
    codes[row] &= present >= 4 ? ~0u : present <= 0 ? 0u : (1u << (8 * present)) - 1u;
  }
}

/// Codes of one bit, as the blob has them: bit r of byte k of a lane's word is that of row r and
/// column 4 * lane + k. Those of the elements that a tile has are set.
/// Threads : any lane, for its own word.
/// Shared  : none.
/// Sync    : none.
/// Pre     : count, the elements that are present, is 1..1024.
__device__ __forceinline__ u32 present_bits(int count) {
  u32 codes[rows_per_tile];
  FURL_UNROLL
  for (int row = 0; row < rows_per_tile; ++row) codes[row] = in_each_byte(1);
  clear_absent(codes, count);
  u32 packed[1];
  pack_columns<1>(codes, packed);
  return packed[0];
}

namespace detail {

/// Stores lo and step of a group at an address in global memory, as a word in bf16 or as two.
__device__ __forceinline__ void store_pair(u64 at, bool is_bf16, float lo, float step) {
  if (is_bf16) {
    store_blob_word<0>(at, select_bytes(lo, step, 0x7632));
  } else {
    store_blob_word<0>(at, bits_of(lo));
    store_blob_word<4>(at, bits_of(step));
  }
}

}  // namespace detail

/// Stores lo and step of group `group` in the blob's metadata part.
__device__ __forceinline__ void store_group(u8* metadata, i64 group, dtype meta, float lo,
                                            float step) {
  if (meta == dtype::bf16) {
    detail::store_pair(u64(metadata + 4 * group), true, lo, step);
  } else {
    detail::store_pair(u64(metadata + 8 * group), false, lo, step);
  }
}

/// Loads lo and step of a group, as store_group has stored them.
__device__ __forceinline__ float2 load_group(const u8* metadata, i64 group, dtype meta) {
  if (meta == dtype::bf16) {
    const u32 pair = reinterpret_cast<const u32*>(metadata)[group];
    return {float_of(pair << 16), float_of(pair & 0xffff0000u)};
  }
  return reinterpret_cast<const float2*>(metadata)[group];
}

/// Writes the LFC of a cell to the blob's LFC part. The value must be exact in the type `meta`.
__device__ __forceinline__ void store_lfc(u8* lfc, i64 cell, dtype meta, float value) {
  if (meta == dtype::bf16) {
    reinterpret_cast<u16*>(lfc)[cell] = stored_bf16(value);
  } else {
    reinterpret_cast<float*>(lfc)[cell] = value;
  }
}

/// Loads the LFC of a cell, as store_lfc has written it.
__device__ __forceinline__ float load_lfc(const u8* lfc, i64 cell, dtype meta) {
  return meta == dtype::bf16 ? f32_from_bf16(reinterpret_cast<const u16*>(lfc)[cell])
                             : reinterpret_cast<const float*>(lfc)[cell];
}

/// Writes the LFC of four neighbouring cells, of which the first is a multiple of 4.
__device__ __forceinline__ void store_four_lfc(u8* lfc, i64 cell, dtype meta, float4 v) {
  if (meta == dtype::bf16) {
    reinterpret_cast<uint2*>(lfc)[cell / 4] = {select_bytes(v.x, v.y, 0x7632),
                                               select_bytes(v.z, v.w, 0x7632)};
  } else {
    reinterpret_cast<float4*>(lfc)[cell / 4] = v;
  }
}

/// Loads the LFC of four neighbouring cells, of which the first is a multiple of 4.
__device__ __forceinline__ float4 load_four_lfc(const u8* lfc, i64 cell, dtype meta) {
  if (meta != dtype::bf16) return reinterpret_cast<const float4*>(lfc)[cell / 4];
  const uint2 pairs = reinterpret_cast<const uint2*>(lfc)[cell / 4];
  const f32_pair low = unpack_pair<bf16>(pairs.x);
  const f32_pair high = unpack_pair<bf16>(pairs.y);
  return {low.low, low.high, high.low, high.high};
}

}  // namespace furl
