// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// furl's block functions inside kernels of one's own: an element is read once, and what becomes of
// it happens in registers. One warp a tile of 1024 elements.

#include "furl/block/layout.cuh"
#include "furl/block/codes.cuh"
#include "furl/block/compress.cuh"
#include "furl/block/tile.cuh"
#include "furl/block/decompress.cuh"

namespace fuse {

/// Forward: y = max(x, 0). Keeps y folded, for the layer behind, and the exact sign of x as a mask
/// of one bit, for the gradient of the ReLU itself.
/// x, y       : n elements; may be the same array.
/// folded     : a blob of the plan that `layout` is of, without an LFC.
/// mask       : a blob of furl::plan::make_codes(1, ...).
/// Threads    : one-dimensional blocks of whole warps.
__global__ void relu_compress(furl::blob_layout layout, const float* x, float* y,
                              furl::random_key key, unsigned char* folded, unsigned char* mask) {
  using namespace furl;
  for (i64 tile = first_tile(); tile < layout.num_tiles; tile += tile_stride()) {
    const int count = elements_in_tile(layout.num_elements, tile);
    tile_fragment<float> values;
    load_tile(x + tile * tile_elements, count, values);
    u32 positive[rows_per_tile] = {};
    for (int row = 0; row < rows_per_tile; ++row) {
      for (int k = 0; k < 4; ++k) {
        float& value = values.word[row][k];
        if (value > 0.0f) positive[row] |= 1u << (8 * k);
        value = value > 0.0f ? value : 0.0f;
      }
    }
    store_tile(y + tile * tile_elements, count, values);
    if (count < tile_elements) clear_absent(positive, count);
    store_codes(positive, 1, mask + tile * row_elements);
    const tile_place place = layout.place_of(tile);
    compress_tile(values, count, tile, layout.codec_of(place), key, folded + place.offset,
                  folded + layout.meta_offset);
  }
}

/// Backward: unfolds y, and lets the gradient through where x was positive.
/// y                         : n elements, out.
/// grad_y                    : n elements, in; replaced by the gradient of x.
/// folded, mask, Threads     : as relu_compress.
__global__ void decompress_relu_backward(furl::blob_layout layout, const unsigned char* folded,
                                         const unsigned char* mask, float* y, float* grad_y) {
  using namespace furl;
  for (i64 tile = first_tile(); tile < layout.num_tiles; tile += tile_stride()) {
    const int count = elements_in_tile(layout.num_elements, tile);
    tile_fragment<float> gradient;
    load_tile(grad_y + tile * tile_elements, count, gradient);
    u32 positive[rows_per_tile];
    load_codes(mask + tile * row_elements, 1, positive);
    for (int row = 0; row < rows_per_tile; ++row)
      for (int k = 0; k < 4; ++k)
        if ((positive[row] >> (8 * k) & 1u) == 0) gradient.word[row][k] = 0.0f;
    store_tile(grad_y + tile * tile_elements, count, gradient);
    const tile_place place = layout.place_of(tile);
    tile_fragment<float> values;
    dequantize_tile(folded + place.offset, folded + layout.meta_offset, tile, count,
                    layout.codec_of(place), values);
    store_tile(y + tile * tile_elements, count, values);
  }
}

}  // namespace fuse
