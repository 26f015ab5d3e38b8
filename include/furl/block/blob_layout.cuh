// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a kernel needs to know of a plan, as a small plain value to be passed to it.

#include "furl/block/intrinsics.cuh"
#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/dtype.hpp"

#if !defined(__CUDACC_RTC__)
#include "furl/plan.hpp"
#endif

namespace furl {

/// Tiles whose widths one lane each can add up.
inline constexpr int tiles_per_chunk = warp_threads;

/// Where the codes of a tile are.
struct tile_place {
  int bits;    // of a code; 0 where the widths do not fit the plan
  u64 offset;  // bytes from the blob's base
};

/// What a kernel needs of a plan: where the parts of the blob are, and how they are coded.
struct blob_layout {
  i64 num_elements = 0;             // of the tensor
  i64 num_tiles = 0;                // of it
  u64 meta_offset = 0;              // bytes from the blob's base, as those that follow
  u64 meta_end = 0;                 // where padding begins
  u64 lfc_offset = 0;               // where the LFC begins
  u64 lfc_end = 0;                  // where its padding begins
  u64 size_bytes = 0;               // of the blob
  int bits = 0;                     // of every code; 0: see widths
  int group = 0;                    // elements of a group
  dtype meta = dtype::bf16;         // type of metadata and LFC
  bool stochastic = true;           // otherwise to nearest
  const u8* widths = nullptr;       // for a mixed plan, global: of each tile
  const u64* chunk_sums = nullptr;  // likewise: of the widths before each chunk of 32 tiles

  blob_layout() = default;
#if !defined(__CUDACC_RTC__)
  /// For a mixed plan, widths and chunk_sums are yet to be set.
  FURL_HIDDEN explicit constexpr blob_layout(const plan& p)
      : num_elements(p.num_elements()),
        num_tiles(p.num_tiles()),
        meta_offset(p.meta_offset()),
        meta_end(meta_offset + u64(p.num_groups()) * 2 * u64(furl::size_bytes(p.codec().meta))),
        lfc_offset(p.lfc_offset()),
        lfc_end(lfc_offset + u64(p.num_cells()) * u64(furl::size_bytes(p.codec().meta))),
        size_bytes(p.size_bytes()),
        bits(p.codec().bits),
        group(p.codec().group),
        meta(p.codec().meta),
        stochastic(p.codec().rounding == rounding::stochastic) {}
#endif

  /// Threads : one warp, all lanes with the same tile.
  /// Shared  : none. Sync : within the warp.
  /// Result  : in every lane. bits is 0 if the tile's codes would reach beyond the codes part, as
  ///           they may where widths break their precondition: the tile has no place then.
  __device__ __forceinline__ tile_place place_of(i64 tile) const {
    if (bits != 0) return {bits, u64(tile) * u64(bits * row_elements)};
    const u32 in_chunk = u32(tile) % tiles_per_chunk;
    const u32 lane = u32(lane_index());
    const u8* const chunk = widths + (tile - in_chunk);
    const u32 mine = lane <= in_chunk ? chunk[lane] : 0u;
    const u32 through = warp_sum(mine);  // this tile
    const int width = int(shuffle(mine, int(in_chunk)));
    const u64 offset =
        (chunk_sums[u64(tile) / tiles_per_chunk] + (through - u32(width))) * row_elements;
    const bool fits =
        u32(width - 1) < u32(max_bits) && offset + u64(u32(width) * row_elements) <= meta_offset;
    return {fits ? width : 0, offset};
  }

  /// Of the tile at a place.
  __device__ __forceinline__ tile_codec codec_of(const tile_place& place) const {
    return {place.bits, group, meta, stochastic};
  }
};

/// @{
/// First tile of a warp and distance to its next, for a grid of one-dimensional blocks of whole
/// warps.
__device__ __forceinline__ i64 first_tile() {
  return (i64(blockIdx.x) * i64(blockDim.x) + threadIdx.x) / warp_threads;
}
__device__ __forceinline__ i64 tile_stride() {
  return i64(gridDim.x) * i64(blockDim.x / warp_threads);
}
/// @}

}  // namespace furl
