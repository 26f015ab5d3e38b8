// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE GRID. ReLU and its mask in one pass: one warp a tile.

#include "furl/block/intrinsics.cuh"
#include "furl/block/one_bit.cuh"
#include "furl/block/pairs.cuh"
#include "furl/block/tile.cuh"
#include "furl/codebook.hpp"
#include "furl/config.hpp"
#include "furl/kernel/launch.cuh"
#include "furl/kernel/masked.cuh"

FURL_HIDDEN_BEGIN

namespace furl::kernel {

/// y and the mask of x > 0.
template <class T>
__global__ void __launch_bounds__(block_threads) relu(masked_arrays<T> a) {
  // In a register of its own: a constant would be loaded for every tile.
  const u32 threshold = forgotten(threshold_word<T>(smallest_positive));
  for_each_masked_tile<true>(a, [&](tile_fragment<T>& x, int count, i64, u32* word) {
    store_word(word, encode_binary(x, count, threshold));
    FURL_UNROLL
    for (auto& row : x.word) {
      FURL_UNROLL
      for (auto& element : row) {
        if constexpr (sizeof(T) == 4) {
          element = max_nan_zero(element);
        } else {
          element = max_nan_pair<T>(element, 0u);
        }
      }
    }
  });
}

}  // namespace furl::kernel

FURL_HIDDEN_END
