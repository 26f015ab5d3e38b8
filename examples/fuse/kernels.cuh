// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Kernels that compress what they have in registers anyway, or use what they decompress there.

#include "furl/block.cuh"

namespace fuse {

// ---- Bias, GELU and compression ---------------------------------------------------------------

/// The activation of a convolution's output, in (batch, channel, plane) order.
template <class T>
struct bias_gelu {
  const T* bias;             // device, one per channel
  furl::divisor64 plane;     // elements of one
  furl::divisor64 channels;  // of them

  /// Of element `index` of the tensor.
  __device__ float operator()(float value, furl::i64 index) const {
    const furl::u64 image_channel = plane.divide(furl::u64(index));
    const furl::u64 image = channels.divide(image_channel);
    const float x = value + furl::element_to_f32(bias[image_channel - image * channels.value]);
    return 0.5f * x * (1.0f + erff(x * 0.70710678f));
  }
};

/// y = GELU(x + bias), and the blob of y. With lfc_path::table, pool_activation has run before.
/// Launched with the blocks, threads and shared memory that the layout says.
template <class T, furl::lfc_path Path>
__global__ void __launch_bounds__(furl::block_compress<Path>::max_threads)
    bias_gelu_compress(furl::block_layout layout, bias_gelu<T> activation, const T* x, T* y,
                       unsigned char* blob, furl::random_key key) {
  extern __shared__ float4 shared[];
  const furl::tile_run run(layout);
  const furl::block_compress<Path> block(layout, run, shared);
  furl::tile_fragment<float> values;
  block.load(furl::map_elements(x, activation), blob, values);
  if (run.count == 0) return;
  furl::store_tile_as(y + run.tile * furl::tile_elements, run.count, values);
  block.compress(values, key, blob);
}

/// The means of GELU(x + bias), for cells that no block can hold.
template <class T>
__global__ void pool_activation(furl::block_layout layout, furl::cell_list cells,
                                bias_gelu<T> activation, const T* x, unsigned char* blob) {
  furl::pool_cells(furl::map_elements(x, activation), cells, 0, cells.grid.num_cells(), layout.meta,
                   blob + layout.lfc_offset);
}

// ---- Layer norm that compresses its input -----------------------------------------------------

/// What a row is normalised with.
struct row_moments {
  float mean;
  float scale;  // one over the standard deviation
};

/// In all lanes of a warp: the moments of a row, in one read.
template <class T>
__device__ row_moments moments_of_row(const T* row, int length, float epsilon) {
  const float shift = furl::element_to_f32(row[0]);  // so that the squares cancel less
  float sum = 0.0f;
  float squares = 0.0f;
  for (int begin = 0; begin < length; begin += furl::tile_elements) {
    const int count = min(length - begin, furl::tile_elements);
    furl::tile_fragment<float> part;
    furl::load_tile_as_f32(row + begin, count, part);
    furl::for_each_element(part, [&](int index, float value) {
      const float deviation = index < count ? value - shift : 0.0f;
      sum += deviation;
      squares = fmaf(deviation, deviation, squares);
    });
  }
  for (int distance = furl::warp_threads / 2; distance > 0; distance /= 2) {
    sum += furl::shuffle_xor(sum, distance);
    squares += furl::shuffle_xor(squares, distance);
  }
  const float mean = sum / float(length);
  return {shift + mean, rsqrtf(fmaxf(squares / float(length) - mean * mean, 0.0f) + epsilon)};
}

/// y = gain * (x - mean) * scale + offset for each row of x, and the blob of x, for the backward
/// pass. A warp takes a row, whatever its length, and the tiles that begin in it. It reads them
/// once from memory, for the moments, and once from a cache.
template <class T>
__global__ void layer_norm_compress(furl::blob_layout layout, int row_length, const T* x,
                                    const T* gain, const T* offset, float epsilon, T* y,
                                    unsigned char* blob, furl::random_key key) {
  using namespace furl;
  const i64 num_rows = layout.num_elements / row_length;
  for (i64 row = first_tile(); row < num_rows; row += tile_stride()) {
    const i64 row_end = (row + 1) * row_length;
    const row_moments row_is = moments_of_row(x + row * row_length, row_length, epsilon);
    i64 next = 0;
    for (i64 begin = row * row_length; begin < row_end; begin = next) {
      // Up to the first tile that begins in the row, then by tiles, of which the last is loaded
      // whole even if only its first elements are of the row.
      const i64 tile = begin / tile_elements;
      next = (tile + 1) * tile_elements;
      const bool is_tile = begin % tile_elements == 0;
      const int in_row = int(min(next, row_end) - begin);
      const int count = is_tile ? elements_in_tile(layout.num_elements, tile) : in_row;
      tile_fragment<float> values;
      load_tile_as_f32(x + begin, count, values);
      if (is_tile) compress_tile(layout, tile, count, values, key, blob);
      for_each_element(values, [&](int index, float& value) {
        const i64 column = min(begin + index, row_end - 1) - row * row_length;
        value = fmaf((value - row_is.mean) * row_is.scale, element_to_f32(gain[column]),
                     element_to_f32(offset[column]));
      });
      store_tile_as(y + begin, in_row, values);
    }
  }
}

// ---- Backward ----------------------------------------------------------------------------------

/// sum += gradient * x, for the x that a blob has been made of: in f32, rounded once.
/// Launched with the blocks, threads and shared memory that the layout says.
template <class T, furl::lfc_path Path>
__global__ void __launch_bounds__(furl::block_decompress<Path>::max_threads)
    add_product(furl::block_layout layout, const unsigned char* blob, const T* gradient, T* sum) {
  extern __shared__ float4 shared[];
  const furl::tile_run run(layout);
  const furl::block_decompress<Path> block(layout, run, shared, blob);
  if (run.count == 0) return;
  const furl::i64 begin = run.tile * furl::tile_elements;
  furl::tile_fragment<T> factors;
  furl::tile_fragment<T> sums;
  furl::load_tile(gradient + begin, run.count, factors);
  furl::load_tile(sum + begin, run.count, sums);
  block.for_each_row([&](int row, const float(&x)[4]) {
    float factor[4];
    float total[4];
    furl::unpack_row<T>(factors.word[row], factor);
    furl::unpack_row<T>(sums.word[row], total);
    for (int k = 0; k < 4; ++k) total[k] = fmaf(factor[k], x[k], total[k]);
    furl::pack_row<T>(total, sums.word[row]);
  });
  furl::store_tile(sum + begin, run.count, sums);
}

}  // namespace fuse
