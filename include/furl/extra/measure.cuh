// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE WARP. How far values are from the elements of a tile, group by group. The order of the sums
// is that of host/measure.hpp.
//
// ONE GRID. What a blob has kept of x: sums over groups, one warp a tile, and over arrays of sums.
// The order of every sum is that of host/measure.hpp.
//
// How far what a blob decodes to is from what was compressed, in device memory.

#include "furl/block/decompress.cuh"
#include "furl/block/layout.cuh"
#include "furl/block/min_max.cuh"
#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/detail/cell_index.hpp"
#include "furl/detail/device/intrinsics.cuh"
#include "furl/detail/device/launch.cuh"
#include "furl/detail/device/means_warp.cuh"
#include "furl/detail/extra/checks.hpp"
#include "furl/extra/measure.hpp"
#include "furl/plan.hpp"
#include "furl/types.hpp"

namespace furl {

/// The sums of the lane whose index differs in the bits of `lanes`.
__device__ __forceinline__ quality shuffle_xor(const quality& q, int lanes) {
  return {shuffle_xor(q.sum_error, lanes), shuffle_xor(q.sum_squared_error, lanes),
          shuffle_xor(q.sum_squares, lanes)};
}

/// Sums over the lane's group.
/// Threads : one warp, all lanes. Shared : none. Sync : within the warp.
/// Shapes  : x, a : tiles of which `count` elements are present; `group` of them share a result.
/// Result  : in every lane for its group (group_of_lane).
template <class T>
__device__ __forceinline__ quality measure_groups(const tile_fragment<T>& x,
                                                  const tile_fragment<float>& a, int count,
                                                  int group) {
  const int lane = lane_index();
  double error[rows_per_tile];
  double squared_error[rows_per_tile];
  double squares[rows_per_tile];
  FURL_UNROLL
  for (int row = 0; row < rows_per_tile; ++row) {
    float v[4];
    unpack_row<T>(x.word[row], v);
    float w[4] = {a.word[row][0], a.word[row][1], a.word[row][2], a.word[row][3]};
    if (count < tile_elements) {  // what is absent adds +0
      FURL_UNROLL
      for (int k = 0; k < 4; ++k)
        if (row_begin(row, lane) + k >= count) v[k] = w[k] = 0.0f;
    }
    const quality sum = quality_of(v, w);
    error[row] = sum.sum_error;
    squared_error[row] = sum.sum_squared_error;
    squares[row] = sum.sum_squares;
  }
  const auto sum = [](double left, double right) { return add_rn(left, right); };
  quality mine{reduce_rows(error, lane, sum), reduce_rows(squared_error, lane, sum),
               reduce_rows(squares, lane, sum)};
  for_each_distance(group,
                    [&](int distance) { mine = combine(mine, shuffle_xor(mine, distance)); });
  return mine;
}

}  // namespace furl

FURL_HIDDEN_BEGIN

namespace furl::kernel {

inline constexpr int sum_threads = 1024;  // of sum_qualities

/// Measures the groups of all tiles.
/// Lfc: whether the blob has an LFC part; the locator is not used otherwise.
template <class T, bool Lfc>
__global__ void __launch_bounds__(block_threads)
    measure(blob_layout layout, cell_locator locator, const T* x, const u8* blob, quality* groups) {
  const lane_group mine = group_of_lane(lane_index(), layout.group);
  for (i64 tile = first_tile(); tile < layout.num_tiles; tile += tile_stride()) {
    const int count = elements_in_tile(layout.num_elements, tile);
    const tile_place place = layout.place_of(tile);
    if (place.bits == 0) continue;
    tile_fragment<T> elements;
    load_tile(x + tile * tile_elements, count, elements);
    tile_fragment<float> values;
    dequantize_tile(blob + place.offset, blob + layout.meta_offset, tile, count,
                    layout.codec_of(place), values);
    if constexpr (Lfc) {
      __shared__ lfc_table table_of_warp[warps_per_block];
      lfc_table& table = table_of_warp[warp_index()];
      look_up_lfc(blob + layout.lfc_offset, locator, tile, count, layout.meta, table);
      for_each_row(table, locator,
                   [&](int row, float4 mean) { add_to_row(values.word[row], mean); });
      __syncwarp();  // the table is used again
    }
    const quality sum = measure_groups(elements, values, count, layout.group);
    if (mine.is_first && mine.begin < count) groups[mine.index(tile)] = canonical(sum);
  }
}

/// Sums every 1024 terms, one block each.
template <int Threads = sum_threads>
__global__ void __launch_bounds__(Threads)
    sum_qualities(const quality* terms, i64 count, quality* sums) {
  static_assert(Threads == warp_threads * warp_threads, "a warp for the sums of the warps");
  __shared__ double of_warp[3][warp_threads];  // not qualities, which have initial values
  const i64 i = i64(blockIdx.x) * Threads + threadIdx.x;
  quality sum = i < count ? terms[i] : quality{};
  FURL_UNROLL
  for (int distance = 1; distance < warp_threads; distance *= 2)
    sum = combine(sum, shuffle_xor(sum, distance));
  if (lane_index() == 0) {
    const int warp = int(threadIdx.x) / warp_threads;
    of_warp[0][warp] = sum.sum_error;
    of_warp[1][warp] = sum.sum_squared_error;
    of_warp[2][warp] = sum.sum_squares;
  }
  __syncthreads();
  if (threadIdx.x >= warp_threads) return;
  sum = {of_warp[0][threadIdx.x], of_warp[1][threadIdx.x], of_warp[2][threadIdx.x]};
  FURL_UNROLL
  for (int distance = 1; distance < warp_threads; distance *= 2)
    sum = combine(sum, shuffle_xor(sum, distance));
  if (threadIdx.x == 0) sums[blockIdx.x] = canonical(sum);
}

}  // namespace furl::kernel

FURL_HIDDEN_END

#if !defined(__CUDACC_RTC__)

FURL_HIDDEN_BEGIN

namespace furl {

namespace detail {

/// Sums that one level of sums of 1024 makes of `count` terms.
constexpr i64 count_sums(i64 count) {
  return ceil_div(count, kernel::sum_threads);
}

/// All sums of `count` terms but the last, level after level.
constexpr i64 count_partial_sums(i64 count) {
  i64 all = 0;
  for (i64 level = count_sums(count); level > 1; level = count_sums(level)) all += level;
  return all;
}

/// Adds up groups, by way of a workspace for the partial sums.
template <class Architectures>
status launch_total(span<const quality> groups, quality* partial, quality* total,
                    cudaStream_t stream) {
  const quality* terms = groups.data;
  i64 count = groups.size;
  while (true) {
    const i64 sums = count_sums(count);
    quality* const out = sums == 1 ? total : partial;
    if (const status s = kernel::launch(kernel::sum_qualities<>, unsigned(sums),
                                        kernel::sum_threads, stream, terms, count, out);
        !s || sums == 1)
      return s;
    terms = partial;
    partial += sums;
    count = sums;
  }
}

}  // namespace detail

/// Bytes of workspace that measure needs.
constexpr u64 measure_workspace_bytes(const plan& p) {
  return workspace_bytes(p) + u64(detail::count_partial_sums(p.num_groups())) * sizeof(quality);
}

/// Measures what a blob has kept of x: sums over every group and over all of x, in one read of both
/// and without decompressing to memory. As host::measure, with the same results to the bit.
/// x      : device, the plan.num_elements() elements that were compressed, aligned to one element;
///          to four, it is fast.
/// blob   : device, the plan.size_bytes() bytes that compress wrote; aligned to 16 bytes.
/// groups : device, plan.num_groups() sums; apart from the others.
/// total  : device, one sum, of all groups; apart from the others.
/// stream : as for compress.
/// options: its workspace must have measure_workspace_bytes(plan) bytes, aligned to 8.
/// Errors: see status; nothing is launched for a bad argument. Allocates nothing and waits for
/// nothing.
template <class Architectures = kernel::architectures>
status measure(const plan& p, const_values x, const_bytes blob, span<quality> groups,
               quality* total, cudaStream_t stream, const options& o = {}) {
  if (const status s = detail::check_call(p, x, "x", blob, o); !s) return s;
  if (const status s = detail::check_quality(p, x, blob, groups, total); !s) return s;
  if (measure_workspace_bytes(p) > 0) {
    if (const status s =
            detail::check_workspace(o.workspace, measure_workspace_bytes(p), "options.workspace",
                                    "must have at least measure_workspace_bytes(plan) bytes");
        !s)
      return s;
  }
  const kernel::stream_scope scope(stream);
  if (const status s = detail::check_reachable(scope, {{x.data, "x"},
                                                       {blob.data, "blob"},
                                                       {groups.data, "groups"},
                                                       {total, "total"},
                                                       {o.tile_bits.data, "options.tile_bits"},
                                                       {o.workspace.data, "options.workspace"}});
      !s)
    return s;
  if (p.num_elements() == 0)
    return kernel::cuda_status(cudaMemsetAsync(total, 0, sizeof *total, stream), "stream");
  blob_layout layout;
  if (const status s = detail::launch_layout<Architectures>(p, o, stream, layout); !s) return s;
  const cell_locator locator = p.has_lfc() ? cell_locator(p.grid()) : cell_locator();
  const status s = with_type(x.type, [&](auto element) {
    using type = decltype(element);
    const auto function = p.has_lfc() ? kernel::measure<type, true> : kernel::measure<type, false>;
    return kernel::launch(function, kernel::blocks_for(layout.num_tiles), kernel::block_threads,
                          stream, layout, locator, static_cast<const type*>(x.data),
                          static_cast<const u8*>(blob.data), groups.data);
  });
  if (!s) return s;
  auto* const partial =
      reinterpret_cast<quality*>(static_cast<u8*>(o.workspace.data) + workspace_bytes(p));
  return detail::launch_total<Architectures>({groups.data, groups.size}, partial, total, stream);
}

}  // namespace furl

FURL_HIDDEN_END

#endif
