// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE GRID. Masks and small integers (README, A8): one byte per element in, `bits` bits out, and
// back. One warp a tile.

#include "furl/block/blob_layout.cuh"
#include "furl/block/codes.cuh"
#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/kernel/launch.cuh"

FURL_HIDDEN_BEGIN

namespace furl::kernel {

// Templates, so that a program of several translation units has one definition.

/// Keeps the low bits of one code per byte.
template <int Threads = block_threads>
__global__ void __launch_bounds__(Threads) pack(blob_layout layout, const u8* codes, u8* blob) {
  for (i64 tile = first_tile(); tile < layout.num_tiles; tile += tile_stride()) {
    const int count = elements_in_tile(layout.num_elements, tile);
    code_fragment loaded;
    load_tile(codes + tile * tile_elements, count, loaded);
    const u32 mask = in_each_byte(low_bits(layout.bits));
    u32 kept[rows_per_tile];
    FURL_UNROLL
    for (int row = 0; row < rows_per_tile; ++row) kept[row] = loaded.word[row][0] & mask;
    if (count < tile_elements) clear_absent(kept, count);
    store_codes(kept, layout.bits, blob + layout.place_of(tile).offset);
  }
}

/// The inverse of pack.
template <int Threads = block_threads>
__global__ void __launch_bounds__(Threads) unpack(blob_layout layout, const u8* blob, u8* codes) {
  for (i64 tile = first_tile(); tile < layout.num_tiles; tile += tile_stride()) {
    u32 loaded[rows_per_tile];
    load_codes(blob + layout.place_of(tile).offset, layout.bits, loaded);
    code_fragment out;
    FURL_UNROLL
    for (int row = 0; row < rows_per_tile; ++row) out.word[row][0] = loaded[row];
    store_tile(codes + tile * tile_elements, elements_in_tile(layout.num_elements, tile), out);
  }
}

}  // namespace furl::kernel

FURL_HIDDEN_END
