// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Codes of positives (FORMAT.md, R9) on the host: the output of a ReLU as its mask, the mean of
// what is positive in every block, and rotated codes of the rest.

#include "furl/config.hpp"
#include "furl/detail/host/rotated.hpp"
#include "furl/detail/host/tile.hpp"
#include "furl/detail/host/work.hpp"
#include "furl/detail/number.hpp"
#include "furl/detail/rotated.hpp"
#include "furl/plan.hpp"
#include "furl/thread_pool.hpp"
#include "furl/types.hpp"

FURL_HIDDEN_BEGIN

namespace furl::host::detail {

/// Index of the mean of a block in the metadata, whose numbers are pairs of a scale and a mean.
inline i64 mean_index(i64 tile, int block) {
  return 2 * (tile * blocks_per_tile + block) + 1;
}

/// x, or +0 where x is not above 0, and which it is. NaN stays, and is not above 0.
inline void take_positives(float* __restrict x, u8* __restrict positive) {
  for (int i = 0; i < tile_elements; ++i) {
    positive[i] = u8(x[i] > 0.0f);
    x[i] = float_of(select_bits(x[i] <= 0.0f, 0, bits_of(x[i])));
  }
}

/// The sum over a block of what take_positives has left, in the order of R9.
inline float sum_of_positives(const float* z, int block) {
  float of_four[block_columns / 4];
  for (int l = 0; l < block_columns / 4; ++l) {
    float of_column[4];
    for (int k = 0; k < 4; ++k) {
      const float* const column = z + block * block_columns + 4 * l + k;
      of_column[k] = column[0];
      for (int row = 1; row < rows_per_tile; ++row)
        of_column[k] = add_rn(of_column[k], column[row * row_elements]);
    }
    of_four[l] = add_rn(add_rn(of_column[0], of_column[1]), add_rn(of_column[2], of_column[3]));
  }
  return tree_of_eight(of_four[0], of_four[1], of_four[2], of_four[3], of_four[4], of_four[5],
                       of_four[6], of_four[7]);
}

/// Subtracts a block's mean from its positives.
inline void subtract_mean(int block, float mean, const u8* __restrict positive,
                          float* __restrict z) {
  for (int row = 0; row < rows_per_tile; ++row) {
    const int first = row * row_elements + block * block_columns;
    for (int i = first; i < first + block_columns; ++i)
      z[i] = float_of(select_bits(positive[i] != 0, bits_of(sub_rn(z[i], mean)), bits_of(z[i])));
  }
}

/// Counts a block's positives.
inline int count_positives(const u8* positive, int block) {
  int count = 0;
  for (int row = 0; row < rows_per_tile; ++row)
    for (int c = 0; c < block_columns; ++c)
      count += positive[row * row_elements + block * block_columns + c];
  return count;
}

/// Compresses one tile; y: the ReLU's output, all elements of it, or null.
template <class T>
void compress_positives_tile(const plan& p, i64 tile, const_values x, u8* y, u8* blob,
                             rotated_compressor& rotated) {
  const i64 first = tile * tile_elements;
  const int count = elements_in_tile(p, tile);
  alignas(64) float z[tile_elements] = {};
  load_floats<T>(x.data, first, count, z);
  prefetch_elements<T>(x.data, p.num_elements(), first + tile_elements, tile_elements);
  tile_bytes mask;
  auto* const positive = reinterpret_cast<u8*>(mask.word);
  take_positives(z, positive);
  if (y != nullptr)
    for (int i = 0; i < count; ++i) store_at(y, first + i, round_to<T>(z[i]));
  u8* const metadata = blob + p.meta_offset();
  for (int block = 0; block < blocks_per_tile; ++block) {
    const u16 mean =
        mean_of_positives(sum_of_positives(z, block), count_positives(positive, block));
    store_at(metadata, mean_index(tile, block), mean);
    subtract_mean(block, f32_from_bf16(mean), positive, z);
  }
  rotated.compress_tile(tile, z, blob + tile * p.codec().bits * row_elements, metadata);
  store_codes(mask, 1, blob + p.mask_offset() + u64(tile) * row_elements);
}

/// Compresses x, and writes what a ReLU makes of it to y unless that is null. y may be x. No part
/// of the blob has padding.
inline void compress_positives(const plan& p, const_values x, void* y, bytes blob, random_key key,
                               thread_pool* pool) {
  with_type(x.type, [&](auto element) {
    compute_shares(p.num_tiles(), pool, [&](i64 first, i64 last) {
      rotation_scratch scratch;
      rotated_compressor rotated(key, p.codec().bits, 2, scratch);
      for (i64 tile = first; tile < last; ++tile)
        compress_positives_tile<decltype(element)>(p, tile, x, static_cast<u8*>(y),
                                                   static_cast<u8*>(blob.data), rotated);
    });
  });
}

/// Adds the means to a tile's positives, and makes all else +0.
inline void restore_positives(const plan& p, const u8* blob, i64 tile, tile_bytes& mask,
                              float* __restrict v) {
  load_codes(blob + p.mask_offset() + u64(tile) * row_elements, 1, mask);
  const auto* const positive = reinterpret_cast<const u8*>(mask.word);
  float mean[blocks_per_tile];
  for (int block = 0; block < blocks_per_tile; ++block)
    mean[block] = f32_from_bf16(load_at<u16>(blob + p.meta_offset(), mean_index(tile, block)));
  for (int first = 0; first < tile_elements; first += block_columns) {
    const float of_block = mean[first / block_columns % blocks_per_tile];
    for (int i = first; i < first + block_columns; ++i)
      v[i] = float_of(select_bits(positive[i] != 0, bits_of(canonical(add_rn(v[i], of_block))), 0));
  }
}

}  // namespace furl::host::detail

FURL_HIDDEN_END
