// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE BLOCK. The means of a run's elements (FORMAT.md, A2), by each path, under one
// interface:
//   load(source, lfc, v)      the warp's tile, and what the means take of the block's elements
//   subtract(lfc, v)          residuals of the warp's tile; the means that the run owns are written
//   spread(lfc)               in place of load, where the means are in the blob already
//   for_each_row(lfc, f)      calls f(row, means) for every row of the warp's tile
// load and spread take all threads of the block, subtract and for_each_row warps whose run.count is
// positive.

#include "furl/block/average_pool.cuh"
#include "furl/block/layout.cuh"
#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/detail/device/means_columns.cuh"
#include "furl/detail/device/means_slots.cuh"
#include "furl/detail/device/means_warp.cuh"

namespace furl::detail {

template <lfc_path Path>
class means_of;

template <>
class means_of<lfc_path::none> {
 public:
  __device__ __forceinline__ means_of(const block_layout&, const tile_run& run, void*)
      : run_(run) {}
  template <class Source>
  __device__ __forceinline__ void load(const Source& source, u8*, tile_fragment<float>& v) const {
    if (run_.count > 0) source.from(run_.tile * tile_elements).load_tile(run_.count, v);
  }
  __device__ __forceinline__ void subtract(u8*, tile_fragment<float>&) const {}
  __device__ __forceinline__ void spread(const u8*) const {}

 private:
  const tile_run& run_;
};

template <>
class means_of<lfc_path::lanes> {
 public:
  __device__ __forceinline__ means_of(const block_layout& layout, const tile_run& run, void*)
      : layout_(layout), run_(run) {}
  template <class Source>
  __device__ __forceinline__ void load(const Source& source, u8*, tile_fragment<float>& v) const {
    if (run_.count > 0) source.from(run_.tile * tile_elements).load_tile(run_.count, v);
  }
  __device__ __forceinline__ void subtract(u8* lfc, tile_fragment<float>& v) const {
    subtract_lfc_of_lanes(layout_.means.log2_cell, run_.tile, run_.count, lfc, layout_.meta, v);
  }
  __device__ __forceinline__ void spread(const u8*) const {}
  template <class Function>
  __device__ __forceinline__ void for_each_row(const u8* lfc, const Function& function) const {
    for_each_row_of_lanes(layout_.means.log2_cell, run_.tile, run_.count, lfc, layout_.meta,
                          function);
  }

 private:
  const block_layout& layout_;
  const tile_run& run_;
};

/// What slots and columns share: both keep the means of a block's run in shared memory.
template <class Means>
class means_of_run {
 public:
  __device__ __forceinline__ void subtract(u8*, tile_fragment<float>& v) const {
    furl::for_each_row(means_, run_.count,
                       [&](int row, float4 mean) { subtract_from_row(v.word[row], mean); });
  }
  __device__ __forceinline__ void spread(const u8* lfc) const {
    spread_lfc(means_, lfc, layout_.meta);
  }
  template <class Function>
  __device__ __forceinline__ void for_each_row(const u8*, const Function& function) const {
    furl::for_each_row(means_, run_.count, function);
  }

 protected:
  __device__ __forceinline__ means_of_run(const block_layout& layout, const tile_run& run,
                                          const Means& means)
      : layout_(layout), run_(run), means_(means) {}

  const block_layout& layout_;
  const tile_run& run_;
  const Means means_;
};

template <>
class means_of<lfc_path::slots> : public means_of_run<lfc_slots> {
 public:
  __device__ __forceinline__ means_of(const block_layout& layout, const tile_run& run, void* shared)
      : means_of_run(layout, run,
                     {static_cast<float4*>(shared), layout.means.slots, run.number, run.first,
                      run.num_elements}) {}
  template <class Source>
  __device__ __forceinline__ void load(const Source& source, u8* lfc,
                                       tile_fragment<float>& v) const {
    if (run_.count > 0) source.from(run_.tile * tile_elements).load_tile(run_.count, v);
    pool_lfc(means_, source.from(run_.first * tile_elements), lfc, layout_.meta, v);
  }
};

template <>
class means_of<lfc_path::columns> : public means_of_run<lfc_columns> {
 public:
  __device__ __forceinline__ means_of(const block_layout& layout, const tile_run& run, void* shared)
      : means_of_run(
            layout, run,
            {static_cast<float4*>(shared), layout.means.slots.plane, run.first, run.num_elements}) {
  }
  template <class Source>
  __device__ __forceinline__ void load(const Source& source, u8* lfc,
                                       tile_fragment<float>& v) const {
    pool_lfc(means_, source.from(run_.first * tile_elements), lfc, layout_.meta);
    const tile_run run = run_.located_anew(layout_);
    if (run.count > 0) source.from(run.tile * tile_elements).load_tile(run.count, v);
  }
};

template <>
class means_of<lfc_path::table> {
 public:
  __device__ __forceinline__ means_of(const block_layout& layout, const tile_run& run, void* shared)
      : layout_(layout), run_(run), table_(static_cast<lfc_table*>(shared)[warp_index()]) {}
  template <class Source>
  __device__ __forceinline__ void load(const Source& source, u8* lfc,
                                       tile_fragment<float>& v) const {
    spread(lfc);
    if (run_.count > 0) source.from(run_.tile * tile_elements).load_tile(run_.count, v);
  }
  __device__ __forceinline__ void subtract(u8*, tile_fragment<float>& v) const {
    furl::for_each_row(table_, layout_.means.locator,
                       [&](int row, float4 mean) { subtract_from_row(v.word[row], mean); });
  }
  __device__ __forceinline__ void spread(const u8* lfc) const {
    if (run_.count > 0)
      look_up_lfc(lfc, layout_.means.locator, run_.tile, run_.count, layout_.meta, table_);
  }
  template <class Function>
  __device__ __forceinline__ void for_each_row(const u8*, const Function& function) const {
    furl::for_each_row(table_, layout_.means.locator, function);
  }

 private:
  const block_layout& layout_;
  const tile_run& run_;
  lfc_table& table_;
};

}  // namespace furl::detail
