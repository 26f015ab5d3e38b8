// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE GRID. Compression: one warp a tile, every element read once.

#include "furl/block/blob_layout.cuh"
#include "furl/block/quantize_pack.cuh"
#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/element/philox.hpp"
#include "furl/kernel/launch.cuh"

namespace furl::kernel {

/// A random stream by value, or in global memory, read when the kernel runs.
struct key_argument {
  random_key value;
  const random_key* device = nullptr;

  __device__ __forceinline__ random_key get() const { return device != nullptr ? *device : value; }
};

template <class T>
__global__ void __launch_bounds__(block_threads)
    compress(blob_layout layout, const T* x, u8* blob, key_argument key_source) {
  const random_key key = key_source.get();
  for (i64 tile = first_tile(); tile < layout.num_tiles; tile += tile_stride()) {
    const int count = elements_in_tile(layout.num_elements, tile);
    tile_fragment<T> elements;
    load_tile(x + tile * tile_elements, count, elements);
    const tile_place place = layout.place_of(tile);
    if (place.bits == 0) continue;
    compress_tile(elements, count, tile,
                  {place.bits, layout.group, layout.meta, layout.stochastic}, key,
                  blob + place.offset, blob + layout.meta_offset);
  }
}

}  // namespace furl::kernel
