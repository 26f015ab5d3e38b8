// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE GRID. Compression: one warp a tile. Without an LFC every element is read once; with one, a
// second time, after kernel/pool.cuh.

#include "furl/block/blob_layout.cuh"
#include "furl/block/lfc.cuh"
#include "furl/block/quantize_pack.cuh"
#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/element/cell_locator.hpp"
#include "furl/element/philox.hpp"
#include "furl/kernel/launch.cuh"

FURL_HIDDEN_BEGIN

namespace furl::kernel {

/// A random stream by value, or in global memory, read when the kernel runs.
struct key_argument {
  random_key value;                    // used if the pointer is null
  const random_key* device = nullptr;  // global

  /// In the kernel.
  __device__ __forceinline__ random_key get() const { return device != nullptr ? *device : value; }
};

/// Zeroes what the parts of the blob are padded with.
/// Threads : one warp, all lanes.
__device__ __forceinline__ void clear_padding(const blob_layout& layout, u8* blob) {
  const int lane = lane_index();
  const u64 end = lane < blob_alignment ? layout.lfc_offset : layout.size_bytes;
  const u64 begin = lane < blob_alignment ? layout.meta_end : layout.lfc_end;
  const u64 at = begin + u64(lane % blob_alignment);
  if (at < end) blob[at] = 0;
}

/// Compresses elements, without an LFC.
template <class T>
__global__ void __launch_bounds__(block_threads, 7)
    compress(blob_layout layout, const T* x, u8* blob, key_argument key_source) {
  const random_key key = key_source.get();
  for (i64 tile = first_tile(); tile < layout.num_tiles; tile += tile_stride()) {
    const int count = elements_in_tile(layout.num_elements, tile);
    tile_fragment<T> elements;
    load_tile(x + tile * tile_elements, count, elements);
    if (tile == 0) clear_padding(layout, blob);
    const tile_place place = layout.place_of(tile);
    if (place.bits == 0) continue;
    compress_tile(elements, count, tile, layout.codec_of(place), key, blob + place.offset,
                  blob + layout.meta_offset);
  }
}

/// Compresses what the LFC leaves. Pre: the LFC part of the blob is written.
template <class T>
__global__ void __launch_bounds__(block_threads, 6)
    compress_residuals(blob_layout layout, cell_locator locator, const T* x, u8* blob,
                       key_argument key_source) {
  __shared__ lfc_slots slots_of_warp[warps_per_block];
  lfc_slots& slots = slots_of_warp[threadIdx.x / warp_threads];
  const random_key key = key_source.get();
  for (i64 tile = first_tile(); tile < layout.num_tiles; tile += tile_stride()) {
    const int count = elements_in_tile(layout.num_elements, tile);
    tile_fragment<T> elements;
    load_tile(x + tile * tile_elements, count, elements);
    look_up_lfc(blob + layout.lfc_offset, locator, tile, count, layout.meta, slots);
    tile_fragment<float> residuals;
    subtract_lfc(elements, slots, locator, residuals);
    __syncwarp();  // slots are used again
    if (tile == 0) clear_padding(layout, blob);
    const tile_place place = layout.place_of(tile);
    if (place.bits == 0) continue;
    compress_tile(residuals, count, tile, layout.codec_of(place), key, blob + place.offset,
                  blob + layout.meta_offset);
  }
}

}  // namespace furl::kernel

FURL_HIDDEN_END
