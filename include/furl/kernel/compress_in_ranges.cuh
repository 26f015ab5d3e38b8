// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE GRID. Compression with ranges that are given, without an LFC: one warp a tile, every element
// read once. kernel/compress.cuh has that with an LFC.

#include "furl/block/blob_layout.cuh"
#include "furl/block/given_ranges.cuh"
#include "furl/block/quantize_pack.cuh"
#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/element/range_map.hpp"
#include "furl/kernel/compress.cuh"
#include "furl/kernel/launch.cuh"

FURL_HIDDEN_BEGIN

namespace furl::kernel {

/// Compresses elements with ranges that are given.
template <class T>
__global__ void __launch_bounds__(block_threads, 6)
    compress_in_ranges(blob_layout layout, const T* x, u8* blob, key_argument key_source,
                       range_map given) {
  const random_key key = key_source.get();
  for (i64 tile = first_tile(); tile < layout.num_tiles; tile += tile_stride()) {
    const int count = elements_in_tile(layout.num_elements, tile);
    tile_fragment<float> elements;
    load_tile_as_f32(x + tile * tile_elements, count, elements);
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
