// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE GRID. Decompression, into an array or added to one: one warp a tile.

#include "furl/block/blob_layout.cuh"
#include "furl/block/lfc.cuh"
#include "furl/block/tile.cuh"
#include "furl/block/unpack_dequantize.cuh"
#include "furl/config.hpp"
#include "furl/element/cell_locator.hpp"
#include "furl/kernel/launch.cuh"

FURL_HIDDEN_BEGIN

namespace furl::kernel {

/// Whether values take the place of what is there, or are added to it.
enum class output : u8 { replace, accumulate };

/// Restores elements. Lfc: whether the blob has an LFC part; the locator is not used otherwise.
template <class T, output Output, bool Lfc>
__global__ void __launch_bounds__(block_threads)
    decompress(blob_layout layout, cell_locator locator, const u8* blob, T* y) {
  for (i64 tile = first_tile(); tile < layout.num_tiles; tile += tile_stride()) {
    const int count = elements_in_tile(layout.num_elements, tile);
    const tile_place place = layout.place_of(tile);
    if (place.bits == 0) continue;
    tile_fragment<T> out;
    if constexpr (Output == output::accumulate) load_tile(y + tile * tile_elements, count, out);
    tile_fragment<float> values;
    if constexpr (Lfc) {
      __shared__ lfc_slots slots_of_warp[warps_per_block];
      lfc_slots& slots = slots_of_warp[threadIdx.x / warp_threads];
      look_up_lfc(blob + layout.lfc_offset, locator, tile, count, layout.meta, slots);
      dequantize_tile(blob + place.offset, blob + layout.meta_offset, tile, count,
                      layout.codec_of(place), values);
      add_lfc(values, slots, locator);
      __syncwarp();  // slots are used again
    } else {
      dequantize_tile(blob + place.offset, blob + layout.meta_offset, tile, count,
                      layout.codec_of(place), values);
    }
    if constexpr (Output == output::accumulate) {
      add_tile(values, out);
    } else {
      saturate_tile(values, out);
    }
    store_tile(y + tile * tile_elements, count, out);
  }
}

}  // namespace furl::kernel

FURL_HIDDEN_END
