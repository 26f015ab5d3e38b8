// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// How far what a blob decodes to is from what was compressed, in device memory. extra/measure.hpp
// has the same call for host memory, documented in full, and the order of the sums. What
// compress.cuh says of streams, launches and errors holds here too.

#include "furl/block/decompress.cuh"
#include "furl/block/layout.cuh"
#include "furl/block/min_max.cuh"
#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/detail/cell_index.hpp"
#include "furl/detail/checks.hpp"
#include "furl/detail/device/intrinsics.cuh"
#include "furl/detail/device/launch.cuh"
#include "furl/detail/device/means_warp.cuh"
#include "furl/extra/measure.hpp"
#include "furl/plan.hpp"
#include "furl/types.hpp"

FURL_HIDDEN_BEGIN

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

namespace kernel {

inline constexpr int sum_threads = 1024;  // of sum_qualities

/// Measures the groups of all tiles, one warp a tile.
/// Lfc: whether the blob has an LFC part; the locator is not used otherwise.
template <class T, bool Lfc, class Architectures>
__global__ void __launch_bounds__(block_threads, 4)  // without the number ptxas spills
    measure(blob_layout layout, cell_locator locator, const T* x, const u8* blob, quality* groups) {
  const lane_group mine = group_of_lane(lane_index(), layout.group);
  for (i64 tile = first_tile(); tile < layout.num_tiles; tile += tile_stride()) {
    const int count = elements_in_tile(layout.num_elements, tile);
    tile_fragment<T> elements;
    load_tile(x + tile * tile_elements, count, elements);
    coded_tile coded;
    if (!load_coded_tile(layout, tile, count, blob, coded)) continue;
    tile_fragment<float> values;
    FURL_UNROLL
    for (int row = 0; row < rows_per_tile; ++row) dequantize_row(coded, row, values.word[row]);
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

/// Adds up every 1024 terms, one block each.
template <class Architectures>
__global__ void __launch_bounds__(sum_threads)
    sum_qualities(const quality* terms, i64 count, quality* sums) {
  static_assert(sum_threads == warp_threads * warp_threads, "a warp for the sums of the warps");
  __shared__ double of_warp[3][warp_threads];  // not qualities, which have initial values
  const auto sum_of_lanes = [](quality sum) {
    FURL_UNROLL
    for (int distance = 1; distance < warp_threads; distance *= 2)
      sum = combine(sum, shuffle_xor(sum, distance));
    return sum;
  };
  const i64 i = i64(blockIdx.x) * sum_threads + threadIdx.x;
  quality sum = sum_of_lanes(i < count ? terms[i] : quality{});
  const int warp = int(threadIdx.x) / warp_threads;
  if (lane_index() == 0) {
    of_warp[0][warp] = sum.sum_error;
    of_warp[1][warp] = sum.sum_squared_error;
    of_warp[2][warp] = sum.sum_squares;
  }
  __syncthreads();
  if (warp > 0) return;
  const int lane = int(threadIdx.x);
  sum = sum_of_lanes({of_warp[0][lane], of_warp[1][lane], of_warp[2][lane]});
  if (lane == 0) sums[blockIdx.x] = canonical(sum);
}

}  // namespace kernel

#if !defined(__CUDACC_RTC__)

namespace detail {

/// All sums of 1024 terms that the sum of `count` terms takes but the last, level after level.
constexpr i64 count_partial_sums(i64 count) {
  i64 all = 0;
  while ((count = ceil_div(count, kernel::sum_threads)) > 1) all += count;
  return all;
}

/// Adds up groups, by way of a workspace for the partial sums.
template <class Architectures>
status launch_total(const quality* terms, i64 count, quality* partial, quality* total,
                    cudaStream_t stream) {
  while (true) {
    const i64 sums = ceil_div(count, kernel::sum_threads);
    const status s =
        kernel::launch(kernel::sum_qualities<Architectures>, {unsigned(sums), kernel::sum_threads},
                       stream, terms, count, sums == 1 ? total : partial);
    if (!s || sums == 1) return s;
    terms = partial;
    partial += sums;
    count = sums;
  }
}

}  // namespace detail

/// The bytes of workspace that measure needs for a plan.
constexpr u64 measure_workspace_bytes(const plan& p) {
  return u64(detail::count_partial_sums(p.num_groups())) * sizeof(quality);
}

/// Measures what a blob has kept of x, on a stream: sums over every group and over all of x. As
/// furl::host::measure, with the same results to the bit.
/// x         : device, the plan.num_elements() elements that were compressed, aligned to one
///             element; to four, it is fast.
/// blob      : device, the plan.size_bytes() bytes that compress wrote, aligned to 16 bytes.
/// groups    : device, plan.num_groups() sums, disjoint from the others.
/// total     : device, one sum, that of all groups, disjoint from the others.
/// workspace : device, measure_workspace_bytes(plan) bytes or more, aligned to 8, disjoint from the
///             others. It serves one call at a time.
/// o         : for a mixed plan the bits of tiles that the blob was made with, and their index.
/// Ranges are refused. Errors: see status; nothing is launched for a bad argument.
template <class Architectures = kernel::architectures>
status measure(const plan& p, const_values x, const_bytes blob, span<quality> groups,
               quality* total, bytes workspace, cudaStream_t stream, const options& o = {}) {
  if (const status s = detail::check_quality(p, x, blob, groups, total); !s) return s;
  if (const status s = detail::check_device_alignment(p, blob, {{x, "x"}}); !s) return s;
  const u64 needed = measure_workspace_bytes(p);
  if (const status s = detail::check_buffer(
          workspace, needed, "workspace", "must have at least measure_workspace_bytes(plan) bytes");
      !s)
    return s;
  const detail::named_bytes of_groups = detail::bytes_of(groups, "groups");
  const detail::named_bytes of_total = detail::total_bytes(total);
  const detail::named_bytes scratch{workspace.data, needed, "workspace"};
  if (const status s = detail::check_apart(
          scratch, {detail::bytes_of(x, "x"), detail::bytes_of(p, blob), of_groups, of_total},
          "must not overlap the workspace");
      !s)
    return s;
  if (const status s = detail::check_options_without_ranges(p, o, {of_groups, of_total, scratch});
      !s)
    return s;
  return kernel::run_on(
      stream, o.check_pointers,
      {{x.data, "x"},
       {blob.data, "blob"},
       {groups.data, "groups"},
       {total, "total"},
       {needed > 0 ? workspace.data : nullptr, "workspace"},
       {o.tile_bits.data, "options.tile_bits"},
       {o.tile_index.data, "options.tile_index"}},
      [&] {
        if (p.num_elements() == 0)
          return kernel::cuda_status(cudaMemsetAsync(total, 0, sizeof *total, stream), "stream");
        const status s = with_type(x.type, [&](auto element) {
          using type = decltype(element);
          const auto function = p.has_lfc() ? kernel::measure<type, true, Architectures>
                                            : kernel::measure<type, false, Architectures>;
          return kernel::launch(
              function, {kernel::blocks_for(p.num_tiles())}, stream, blob_layout(p, o),
              p.has_lfc() ? cell_locator(p.grid()) : cell_locator(),
              static_cast<const type*>(x.data), static_cast<const u8*>(blob.data), groups.data);
        });
        if (!s) return s;
        return detail::launch_total<Architectures>(
            groups.data, groups.size, static_cast<quality*>(workspace.data), total, stream);
      });
}

#endif

}  // namespace furl

FURL_HIDDEN_END
