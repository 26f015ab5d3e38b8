// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE BLOCK. Means of two-dimensional cells while the elements stay in registers (FORMAT.md, A2):
// each warp holds a tile, and shared memory has one slot for every granule, the 4, 2 or 1 elements
// that lie in one row of one cell. It first carries the granule's sum, then the mean of its cell,
// so that a lane reads the mean of its elements where it put their sum.

#include "furl/block/average_pool.cuh"
#include "furl/block/codes.cuh"
#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/detail/cell_index.hpp"
#include "furl/detail/cells.hpp"
#include "furl/detail/device/cells_in_slots.cuh"
#include "furl/detail/device/intrinsics.cuh"
#include "furl/detail/device/lfc_source.cuh"
#include "furl/detail/number.hpp"

namespace furl {

namespace detail {

/// Sums of the granules of four elements.
template <int Granule>
__device__ __forceinline__ void store_sums(float* mine, const tile_fragment<float>& x) {
  FURL_UNROLL
  for (int row = 0; row < rows_per_tile; ++row) {
    const float(&v)[4] = x.word[row];
    float* const at = mine + row * (row_elements / Granule);
    if constexpr (Granule == 4) {
      *at = add_rn(add_rn(v[0], v[1]), add_rn(v[2], v[3]));
    } else if constexpr (Granule == 2) {
      *reinterpret_cast<float2*>(at) = {add_rn(v[0], v[1]), add_rn(v[2], v[3])};
    } else {
      *reinterpret_cast<float4*>(at) = {v[0], v[1], v[2], v[3]};
    }
  }
}

/// Calls function(row, means) with the slots of the lane's four elements of every row.
template <int Granule, class Function>
__device__ __forceinline__ void for_each_slot(const float* mine, const Function& function) {
  FURL_UNROLL
  for (int row = 0; row < rows_per_tile; ++row) {
    const float* const at = mine + row * (row_elements / Granule);
    if constexpr (Granule == 4) {
      function(row, float4{*at, *at, *at, *at});
    } else if constexpr (Granule == 2) {
      const float2 v = *reinterpret_cast<const float2*>(at);
      function(row, float4{v.x, v.x, v.y, v.y});
    } else {
      function(row, *reinterpret_cast<const float4*>(at));
    }
  }
}

/// Makes the slots of a tile's elements from `count` on repeat the last one before them.
template <int Granule>
__device__ __forceinline__ void repeat_last_slot(float* mine, int count) {
  float* const tile = mine - 4 * lane_index() / Granule;
  const int last = (count - 1) / Granule;
  for (int i = last + 1 + lane_index(); i < tile_elements / Granule; i += warp_threads)
    tile[i] = tile[last];
  __syncwarp();
}

/// Sums of granules that other blocks own: `head` elements before the run and `tail` behind it.
template <int Granule, class Source>
__device__ __forceinline__ void store_outer_sums(const lfc_slots& s, const Source& run_begin) {
  const Source first = run_begin.from(-i64(s.run.head));
  const bool vectors = Granule == 4 && first.is_vector_aligned();
  for (u32 at = threadIdx.x * Granule; at < s.run.head + s.run.tail; at += blockDim.x * Granule) {
    const u32 element = at < s.run.head ? at : at + s.num_elements;
    float sum;
    if (vectors) {
      sum = sum_vector(first.from(element));
    } else {
      float v[Granule];
      FURL_UNROLL
      for (int k = 0; k < Granule; ++k) v[k] = first.at(element + u32(k));
      if constexpr (Granule == 4) {
        sum = add_rn(add_rn(v[0], v[1]), add_rn(v[2], v[3]));
      } else if constexpr (Granule == 2) {
        sum = add_rn(v[0], v[1]);
      } else {
        sum = v[0];
      }
    }
    s.slot[(element + s.skew) / Granule] = sum;
  }
}

// What is done with a run, for every granule. These are not generic lambdas, since NVRTC takes
// those for host code.

/// Calls function.run<granule>().
template <class Function>
__device__ __forceinline__ void with_granule(const lfc_slots& s, const Function& function) {
  switch (s.layout.log2_granule) {
    case 2:
      return function.template run<4>();
    case 1:
      return function.template run<2>();
    default:
      return function.template run<1>();
  }
}

template <class Source>
struct pooling {
  const lfc_slots& s;
  const Source& run_begin;
  u8* lfc;
  dtype meta;
  const tile_fragment<float>& x;

  template <int Granule>
  __device__ __forceinline__ void run() const {
    if (!s.layout.is_whole) store_outer_sums<Granule>(s, run_begin);
    store_sums<Granule>(s.mine(), x);
    __syncthreads();
    for_each_cell<Granule>(s, *this);
  }
  template <class Cell>
  __device__ __forceinline__ void operator()(u32 index, bool is_owned, const Cell& cell) const {
    const float mean = lfc_value(cell.mean(), meta);
    if (is_owned) store_lfc(lfc, s.run.first_cell + index, meta, mean);
    cell.fill(mean);
  }
};

struct spreading {
  const lfc_slots& s;
  const u8* lfc;
  dtype meta;

  template <int Granule>
  __device__ __forceinline__ void run() const {
    for_each_cell<Granule>(s, *this);
  }
  template <class Cell>
  __device__ __forceinline__ void operator()(u32 index, bool, const Cell& cell) const {
    cell.fill(load_lfc(lfc, s.run.first_cell + index, meta));
  }
};

template <class Function>
struct reading {
  const lfc_slots& s;
  int count;
  const Function& function;

  template <int Granule>
  __device__ __forceinline__ void run() const {
    float* const mine = s.mine();
    if (count < tile_elements) repeat_last_slot<Granule>(mine, count);
    for_each_slot<Granule>(mine, function);
  }
};

}  // namespace detail

/// Turns the elements of a run into means in the slots, and writes the means that the run owns.
/// Threads : one block, all threads; each warp has the tile x of the run that its number says, or
///           anything if that is beyond the tensor.
/// Shapes  : run_begin : the elements from the first of the run on.
///           lfc       : global, the blob's LFC part.
/// Shared  : the slots. Sync : the block, at the end too; once more before they are used again.
template <class Source>
__device__ __forceinline__ void pool_lfc(const lfc_slots& s, const Source& run_begin, u8* lfc,
                                         dtype meta, const tile_fragment<float>& x) {
  detail::with_granule(s, detail::pooling<Source>{s, run_begin, lfc, meta, x});
  __syncthreads();
}

/// Spreads the means of the cells that a run touches over the slots.
/// Threads : one block, all threads.
/// Shapes  : lfc : global, the blob's LFC part.
/// Shared  : the slots. Sync : the block, at the end; once more before they are used again.
__device__ __forceinline__ void spread_lfc(const lfc_slots& s, const u8* lfc, dtype meta) {
  detail::with_granule(s, detail::spreading{s, lfc, meta});
  __syncthreads();
}

/// Calls function(row, means) for every row of the warp's tile, with the means of the lane's four
/// elements. `count` > 0 elements of the tile are present; others have the mean of the last one.
/// Threads : one warp, all lanes. Shared : the slots, from pool_lfc or spread_lfc.
/// Sync    : within the warp.
template <class Function>
__device__ __forceinline__ void for_each_row(const lfc_slots& s, int count,
                                             const Function& function) {
  detail::with_granule(s, detail::reading<Function>{s, count, function});
}

}  // namespace furl
