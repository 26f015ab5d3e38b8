// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE GRID. Compression with ranges that are given: one warp a tile, every element read once. With
// an LFC a second time from the cache, after kernel/pool.cuh.

#include "furl/block/blob_layout.cuh"
#include "furl/block/given_ranges.cuh"
#include "furl/block/lfc_table.cuh"
#include "furl/block/quantize_pack.cuh"
#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/element/cell_locator.hpp"
#include "furl/element/range_map.hpp"
#include "furl/kernel/compress.cuh"
#include "furl/kernel/launch.cuh"
#include "furl/kernel/lfc.cuh"

FURL_HIDDEN_BEGIN

namespace furl::kernel {

/// Compresses elements, or residuals, with ranges that are given.
/// Lfc: whether the codec has a window; the locator is not used otherwise.
/// Pre: the LFC part of the blob is written, as far as the tiles need it.
template <class T, bool Lfc>
__global__ void __launch_bounds__(block_threads, 6)
    compress_in_ranges(blob_layout layout, cell_locator locator, tile_range tiles, const T* x,
                       u8* blob, key_argument key_source, range_map given) {
  const random_key key = key_source.get();
  for (i64 tile = tiles.begin + first_tile(); tile < tiles.end; tile += tile_stride()) {
    const int count = elements_in_tile(layout.num_elements, tile);
    tile_fragment<float> elements;
    load_tile_as_f32(x + tile * tile_elements, count, elements);
    if constexpr (Lfc) {
      __shared__ lfc_table table_of_warp[warps_per_block];
      lfc_table& table = table_of_warp[warp_index()];
      look_up_lfc(blob + layout.lfc_offset, locator, tile, count, layout.meta, table);
      for_each_row(table, locator,
                   [&](int row, float4 mean) { subtract_from_row(elements.word[row], mean); });
      __syncwarp();  // the table is used again
    }
    if (tile == 0) clear_padding(layout, blob);
    const tile_place place = layout.place_of(tile);
    if (place.bits == 0) continue;
    const tile_codec codec = layout.codec_of(place);
    const min_max ends = saturate_tile(given, tile, count, codec.group, elements);
    compress_tile_in_range(elements, ends, count, tile, codec, key, blob + place.offset,
                           blob + layout.meta_offset);
  }
}

}  // namespace furl::kernel

FURL_HIDDEN_END
