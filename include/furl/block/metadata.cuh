// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE THREAD. Numbers of the metadata type in the blob: (lo, step) pairs of groups, and LFC values
// (README, Format). Both parts begin at a multiple of 16.

#include "furl/block/intrinsics.cuh"
#include "furl/block/pairs.cuh"
#include "furl/config.hpp"
#include "furl/dtype.hpp"
#include "furl/element/quantize.hpp"

namespace furl {

/// Stores lo and step of group `group` as one word, or two.
__device__ __forceinline__ void store_group(u8* metadata, i64 group, dtype meta, float lo,
                                            float step) {
  if (meta == dtype::bf16) {
    reinterpret_cast<u32*>(metadata)[group] = u32(stored_bf16(lo)) | (bits_of(step) & 0xffff0000u);
  } else {
    reinterpret_cast<float2*>(metadata)[group] = float2{lo, step};
  }
}

/// lo and step of a group.
__device__ __forceinline__ float2 load_group(const u8* metadata, i64 group, dtype meta) {
  if (meta == dtype::bf16) {
    const u32 pair = reinterpret_cast<const u32*>(metadata)[group];
    return {float_of(pair << 16), float_of(pair & 0xffff0000u)};
  }
  return reinterpret_cast<const float2*>(metadata)[group];
}

/// Writes the LFC of a cell to the blob's LFC part. value : as it is stored, exact in meta.
__device__ __forceinline__ void store_lfc(u8* lfc, i64 cell, dtype meta, float value) {
  if (meta == dtype::bf16) {
    reinterpret_cast<u16*>(lfc)[cell] = stored_bf16(value);
  } else {
    reinterpret_cast<float*>(lfc)[cell] = value;
  }
}

/// What store_lfc wrote.
__device__ __forceinline__ float load_lfc(const u8* lfc, i64 cell, dtype meta) {
  return meta == dtype::bf16 ? f32_from_bf16(reinterpret_cast<const u16*>(lfc)[cell])
                             : reinterpret_cast<const float*>(lfc)[cell];
}

/// The same for four neighbouring cells, of which the first is a multiple of 4.
__device__ __forceinline__ void store_four_lfc(u8* lfc, i64 cell, dtype meta, float4 v) {
  if (meta == dtype::bf16) {
    reinterpret_cast<uint2*>(lfc)[cell / 4] = {select_bytes(v.x, v.y, 0x7632),
                                               select_bytes(v.z, v.w, 0x7632)};
  } else {
    reinterpret_cast<float4*>(lfc)[cell / 4] = v;
  }
}

/// What store_four_lfc wrote.
__device__ __forceinline__ float4 load_four_lfc(const u8* lfc, i64 cell, dtype meta) {
  if (meta != dtype::bf16) return reinterpret_cast<const float4*>(lfc)[cell / 4];
  const uint2 pairs = reinterpret_cast<const uint2*>(lfc)[cell / 4];
  const f32_pair low = unpack_pair<bf16>(pairs.x);
  const f32_pair high = unpack_pair<bf16>(pairs.y);
  return {low.low, low.high, high.low, high.high};
}

}  // namespace furl
