// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE GRID. Max pooling with its window indices, one warp a tile of outputs; and its backward pass,
// one thread a few inputs of a column, which needs no atomics.

#include "furl/block/blob_layout.cuh"
#include "furl/block/codes.cuh"
#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/dtype.hpp"
#include "furl/element/max_pool.hpp"
#include "furl/kernel/launch.cuh"

FURL_HIDDEN_BEGIN

namespace furl::kernel {

/// The maximum of each window and its index, as packed codes.
/// Neighbouring lanes take neighbouring outputs, so that their reads share lines. The codes then
/// change lanes through shared memory.
template <class T>
__global__ void __launch_bounds__(block_threads)
    max_pool(pool_geometry g, image_list outputs, const T* x, T* y, u8* blob) {
  __shared__ u32 codes_of_warp[warps_per_block][rows_per_tile * words_per_row];
  u32* const words = codes_of_warp[threadIdx.x / warp_threads];
  u8* const bytes = reinterpret_cast<u8*>(words);
  const int lane = lane_index();
  const i64 plane_inputs = i64(g.rows.input) * g.columns.input;
  const i64 stride = tile_stride();
  for (i64 tile = first_tile(); tile * tile_elements < outputs.num_elements; tile += stride) {
    const int count = elements_in_tile(outputs.num_elements, tile);
    for (int i = lane; i < tile_elements; i += warp_threads) {
      window_max best{0.0f, 0};
      if (i < count) {
        const i64 output = tile * tile_elements + i;
        const image_list::place at = outputs.place_of(output);
        const T* const image = x + at.plane * plane_inputs;
        best = max_of_window(g, at.row, at.column, [&](int row, int column) {
          return to_f32(image[row * g.columns.input + column]);
        });
        y[output] = round_to<T>(best.value);
      }
      bytes[i] = u8(best.index);
    }
    __syncwarp();
    u32 codes[rows_per_tile];
    FURL_UNROLL
    for (int row = 0; row < rows_per_tile; ++row) codes[row] = words[row * words_per_row + lane];
    store_codes(codes, g.bits, blob + tile * (g.bits * row_elements));
    __syncwarp();  // the bytes are used again
  }
}

/// The gradient of the inputs.
/// strips : images of as many columns, and one row for every gathered_rows of the inputs.
/// (Four blocks at once are fewer than fit; without the number ptxas spills to have 32 registers.)
template <class T>
__global__ void __launch_bounds__(block_threads, 4)
    max_pool_backward(pool_geometry g, image_list strips, const u8* blob, const T* gradient,
                      T* out) {
  const i64 plane_outputs = i64(g.rows.output) * g.columns.output;
  const i64 plane_inputs = i64(g.rows.input) * g.columns.input;
  const i64 stride = i64(gridDim.x) * blockDim.x;
  for (i64 strip = i64(blockIdx.x) * blockDim.x + threadIdx.x; strip < strips.num_elements;
       strip += stride) {
    const image_list::place at = strips.place_of(strip);
    const int row = at.row * gathered_rows;
    const i64 first_output = at.plane * plane_outputs;
    const T* const gradients = gradient + first_output;
    float sum[gathered_rows];
    gather_gradients(
        g, row, at.column, [&](int output) { return code_at(blob, first_output + output, g.bits); },
        [&](int output) { return to_f32(gradients[output]); }, sum);
    T* const column = out + at.plane * plane_inputs + (row * g.columns.input + at.column);
    FURL_UNROLL
    for (int k = 0; k < gathered_rows; ++k)
      if (row + k < g.rows.input) column[k * g.columns.input] = round_to<T>(sum[k]);
  }
}

}  // namespace furl::kernel

FURL_HIDDEN_END
