// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a kernel needs to know of a plan, made on the host and passed to it as a small plain value:
// where the parts of the blob are, how they are coded, and how the blocks of a grid get the means
// of cells (the LFC). It also says how to launch the grid.

#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/detail/device/intrinsics.cuh"
#include "furl/detail/device/lfc_source.cuh"
#include "furl/detail/device/rotation.cuh"
#include "furl/types.hpp"

#if !defined(__CUDACC_RTC__)
#include <cassert>
#include <type_traits>

#include "furl/plan.hpp"
#endif

namespace furl {

/// How a tile is coded, the same in all lanes.
struct tile_codec {
  int bits;         // 1..8
  int group;        // 32, 64, 128, 256, 512 or 1024
  dtype meta;       // bf16 or f32
  bool stochastic;  // otherwise to nearest
};

/// Where the codes of a tile are.
struct tile_place {
  int bits;    // of a code; 0 where the bits of tiles do not fit the plan
  u64 offset;  // bytes from the blob's base
};

/// What a kernel needs of a plan: where the parts of the blob are, and how they are coded.
struct blob_layout {
  i64 num_elements = 0;             // of the tensor
  i64 num_tiles = 0;                // of its codes
  u64 meta_offset = 0;              // bytes from the blob's base, as those that follow
  u64 meta_end = 0;                 // where padding begins
  u64 lfc_offset = 0;               // where the LFC begins
  u64 lfc_end = 0;                  // where its padding begins
  u64 size_bytes = 0;               // of the blob
  int bits = 0;                     // of every code; 0: see tile_bits
  int group = 0;                    // elements of a group
  dtype meta = dtype::bf16;         // type of metadata and LFC
  bool stochastic = true;           // otherwise to nearest
  const u8* tile_bits = nullptr;    // for a mixed plan, global: of each tile
  const u64* tile_index = nullptr;  // likewise: sum of the bits before each chunk of 32 tiles

  blob_layout() = default;
#if !defined(__CUDACC_RTC__)
  /// options: tile_bits and tile_index of a mixed plan.
  FURL_HIDDEN explicit constexpr blob_layout(const plan& p, const options& o = {})
      : num_elements(p.num_elements()),
        num_tiles(p.num_tiles()),
        meta_offset(p.meta_offset()),
        meta_end(p.meta_end()),
        lfc_offset(p.lfc_offset()),
        lfc_end(p.has_mask()
                    ? p.size_bytes()
                    : lfc_offset + u64(p.num_cells()) * u64(furl::size_bytes(p.codec().meta))),
        size_bytes(p.size_bytes()),
        bits(p.codec().bits),
        group(p.codec().group),
        meta(p.codec().meta),
        stochastic(p.codec().rounding != rounding::nearest),
        tile_bits(static_cast<const u8*>(o.tile_bits.data)),
        tile_index(static_cast<const u64*>(o.tile_index.data)) {}
#endif

  /// Where the mask of positives begins, in place of the LFC.
  FURL_HD constexpr u64 mask_offset() const {
    return lfc_offset;
  }

  /// Where the codes of a tile are.
  /// Threads : one warp, all lanes with the same tile.
  /// Shared  : none. Sync : within the warp.
  /// Result  : in every lane. bits is 0 if the tile's codes would reach beyond the codes part, as
  ///           they may where tile_bits break their precondition: the tile has no place then.
  __device__ __forceinline__ tile_place place_of(i64 tile) const {
    if (bits != 0) return {bits, u64(tile) * u64(bits * row_elements)};
    const u32 in_chunk = u32(tile) % tiles_per_chunk;
    const u32 lane = u32(lane_index());
    const u8* const chunk = tile_bits + (tile - in_chunk);
    const u32 mine = lane <= in_chunk ? chunk[lane] : 0u;
    const u32 through = warp_sum(mine);  // this tile
    const u32 own = shuffle(mine, int(in_chunk));
    const u64 before = tile_index[u64(tile) / tiles_per_chunk] + (through - own);
    const u64 offset = before * row_elements;
    const bool fits = own - 1 < u32(max_bits) && before < u64(1) << 56 &&
                      offset + u64(own * row_elements) <= meta_offset;
    return {fits ? int(own) : 0, offset};
  }

  /// Of the tile at a place.
  __device__ __forceinline__ tile_codec codec_of(const tile_place& place) const {
    return {place.bits, group, meta, stochastic};
  }
};

/// Elements of a tile that the tensor has: 1..1024.
__device__ __forceinline__ int elements_in_tile(i64 num_elements, i64 tile) {
  const i64 left = num_elements - tile * tile_elements;
  return left < tile_elements ? int(left) : tile_elements;
}

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

/// Writes the zeros that the parts of a blob are padded with.
/// Threads : one warp, all lanes.
/// Shapes  : blob : global, layout.size_bytes bytes, aligned to 16.
/// Shared  : none. Sync : none.
__device__ __forceinline__ void clear_padding(const blob_layout& layout, u8* blob) {
  const int lane = lane_index();
  const u64 end = lane < blob_alignment ? layout.lfc_offset : layout.size_bytes;
  const u64 begin = lane < blob_alignment ? layout.meta_end : layout.lfc_end;
  const u64 at = begin + u64(lane % blob_alignment);
  if (at < end) blob[at] = 0;
}

/// Tiles begin .. end - 1, to be processed by one grid.
struct tile_range {
  i64 begin;  // the first
  i64 end;    // behind the last
};

/// All that the kernels of a plan need: to be made on the host, once for a plan, and passed to the
/// kernel by value.
struct block_layout : blob_layout {
  lfc_source means;         // how blocks get the means
  bool is_rotated = false;  // whether the codes are

  /// Bytes of shared memory that the means take, before what the warps have for rotated codes.
  FURL_HD constexpr u32 rotation_offset() const { return (means.shared_bytes + 15) / 16 * 16; }

  block_layout() = default;
#if !defined(__CUDACC_RTC__)
  /// Of a plan that make or make_mixed has made, without filled lines (codec.by_lines) and not for
  /// positives, whose kernels take a blob_layout: without NDEBUG this is asserted. A mixed plan
  /// needs options with its tile_bits and tile_index, which the kernel reads: without NDEBUG, this
  /// is asserted.
  FURL_HIDDEN explicit constexpr block_layout(const plan& p, const options& o = {})
      : blob_layout(p, o) {
    assert(!p.fills_lines() && !p.has_mask());
    assert(bits != 0 || num_tiles == 0 || (tile_bits != nullptr && tile_index != nullptr));
    if (p.has_lfc() && p.num_elements() > 0) {
      means = choose_lfc_source(p.grid(), p.is_rotated() ? sizeof(small_rotation_storage) : 0);
    } else {
      means.path = lfc_path::none;
      means.tiles_per_block = 4;
      means.shared_bytes = 0;
    }
    is_rotated = p.is_rotated();
  }

  /// Blocks of the grid that processes all tiles, one run each; 0 for an empty tensor.
  constexpr unsigned num_blocks() const {
    return num_blocks({0, num_tiles});
  }
  /// The same for some of the tiles. lfc_path::slots, whose blocks share means, is for all of them
  /// only: without NDEBUG, this is asserted.
  constexpr unsigned num_blocks(const tile_range& tiles) const {
    assert(means.path != lfc_path::slots || tiles.end - tiles.begin == num_tiles);
    return unsigned((tiles.end - tiles.begin + means.tiles_per_block - 1) / means.tiles_per_block);
  }
  /// Threads of each block: a warp for each tile of a run.
  constexpr unsigned num_threads() const {
    return unsigned(means.tiles_per_block * warp_threads);
  }
  /// Bytes of dynamic shared memory of each block, at most 48 KB.
  constexpr unsigned shared_bytes() const {
    if (!is_rotated) return means.shared_bytes;
    return rotation_offset() + unsigned(means.tiles_per_block * sizeof(small_rotation_storage));
  }
#endif
};

/// The run of tiles that a block processes, one by each of its warps.
struct tile_run {
  i64 number;        // of the run in the grid
  i64 first;         // its first tile
  i64 tile;          // that of the calling warp
  int count;         // elements of that tile in the tensor, 0 where it is beyond
  u32 num_elements;  // of the tensor, in the run

  /// The run of the calling block, in a grid of layout.num_blocks() blocks.
  __device__ __forceinline__ explicit tile_run(const block_layout& layout)
      : tile_run(layout, {0, layout.num_tiles}) {}
  /// The same in a grid for some of the tiles. Not with lfc_path::slots.
  __device__ __forceinline__ tile_run(const block_layout& layout, const tile_range& tiles)
      : number(blockIdx.x),
        first(tiles.begin + i64(blockIdx.x) * layout.means.tiles_per_block),
        tile(first + warp_index()),
        count(tile < tiles.end ? elements_in_tile(layout.num_elements, tile) : 0),
        num_elements(0) {
    const i64 left = layout.num_elements - first * tile_elements;
    num_elements = left < layout.means.run_elements() ? u32(left) : layout.means.run_elements();
  }

  /// The same run. On devices where ptxas would spill the calling warp's tile, it is worked out
  /// anew. Pre: the tile is in the grid's range.
  __device__ __forceinline__ tile_run located_anew(const block_layout& layout) const {
    tile_run run = *this;
#if __CUDA_ARCH__ >= 1200
    run.tile = first + warp_index();
    run.count = elements_in_tile(layout.num_elements, run.tile);  // not positive beyond the tensor
#else
    (void)layout;
#endif
    return run;
  }
};

namespace detail {

/// What the calling warp exchanges for rotated codes, in a block's dynamic shared memory.
__device__ __forceinline__ small_rotation_storage& storage_of_warp(const block_layout& layout,
                                                                   void* shared) {
  u8* const first = static_cast<u8*>(shared) + layout.rotation_offset();
  return reinterpret_cast<small_rotation_storage*>(first)[warp_index()];
}

/// Says that a kernel's path is that of its layout, as with_path sees to.
struct known_path {};

/// The layout, of a kernel that is compiled for its path. Any other would write a wrong blob, so it
/// is ended by an error.
template <lfc_path Path>
__device__ __forceinline__ const block_layout& layout_of_path(const block_layout& layout) {
  if (layout.means.path != Path) __trap();
  return layout;
}

}  // namespace detail

#if !defined(__CUDACC_RTC__)

/// Calls function(path) with a layout's path as an integral constant, so that the function can
/// launch the kernel that is compiled for it.
template <class Function>
FURL_HIDDEN auto with_path(lfc_path path, const Function& function) {
  switch (path) {
    case lfc_path::none:
      return function(::std::integral_constant<lfc_path, lfc_path::none>{});
    case lfc_path::lanes:
      return function(::std::integral_constant<lfc_path, lfc_path::lanes>{});
    case lfc_path::slots:
      return function(::std::integral_constant<lfc_path, lfc_path::slots>{});
    case lfc_path::columns:
      return function(::std::integral_constant<lfc_path, lfc_path::columns>{});
    default:
      return function(::std::integral_constant<lfc_path, lfc_path::table>{});
  }
}

#endif

}  // namespace furl
