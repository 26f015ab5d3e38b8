// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// SiLU that compresses its input, and its backward pass, which restores it: kernels to compile at
// run time, whose arguments are numbers and pointers. Launch any number of blocks of whole warps;
// a warp takes a tile of 1024 elements at a time.

#include "furl/block.cuh"

/// Where things are in a blob of codec{bits}, with groups of 256 and means in no window
/// (include/furl/FORMAT.md). silu.py has its size.
__device__ furl::blob_layout layout_of(long long num_elements, int bits) {
  furl::blob_layout layout;
  layout.num_elements = num_elements;
  layout.num_tiles = (num_elements + furl::tile_elements - 1) / furl::tile_elements;
  layout.bits = bits;
  layout.group = 256;
  layout.meta_offset = furl::u64(layout.num_tiles) * furl::u64(bits * furl::row_elements);
  layout.meta_end = layout.meta_offset + furl::u64((num_elements + 255) / 256) * 4;  // bf16 pairs
  layout.size_bytes = (layout.meta_end + 15) / 16 * 16;
  layout.lfc_offset = layout.lfc_end = layout.size_bytes;  // there is no such part
  return layout;
}

/// y = SiLU(x), and the blob of x.
extern "C" __global__ void silu_forward(long long num_elements, int bits, const float* x, float* y,
                                        unsigned char* blob, unsigned long long seed,
                                        unsigned long long offset) {
  using namespace furl;
  const blob_layout layout = layout_of(num_elements, bits);
  for (i64 tile = first_tile(); tile < layout.num_tiles; tile += tile_stride()) {
    const int count = elements_in_tile(num_elements, tile);
    tile_fragment<float> values;
    load_tile(x + tile * tile_elements, count, values);
    compress_tile(layout, tile, count, values, random_key{seed, offset}, blob);
    for_each_element(values, [](int, float& value) { value /= 1.0f + expf(-value); });
    store_tile(y + tile * tile_elements, count, values);
  }
}

/// gradient_x = gradient_y * SiLU'(x), for the x of a blob.
extern "C" __global__ void silu_backward(long long num_elements, int bits,
                                         const unsigned char* blob, const float* gradient_y,
                                         float* gradient_x) {
  using namespace furl;
  const blob_layout layout = layout_of(num_elements, bits);
  for (i64 tile = first_tile(); tile < layout.num_tiles; tile += tile_stride()) {
    const int count = elements_in_tile(num_elements, tile);
    coded_tile coded;
    if (!load_coded_tile(layout, tile, count, blob, coded)) continue;
    tile_fragment<float> gradient;
    load_tile(gradient_y + tile * tile_elements, count, gradient);
    for (int row = 0; row < rows_per_tile; ++row) {
      float x[4];
      dequantize_row(coded, row, x);
      for (int k = 0; k < 4; ++k) {
        const float sigmoid = 1.0f / (1.0f + expf(-x[k]));
        gradient.word[row][k] *= sigmoid * (1.0f + x[k] * (1.0f - sigmoid));
      }
    }
    store_tile(gradient_x + tile * tile_elements, count, gradient);
  }
}
