// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE GRID. What widths are found from: the squared ranges of a tile's groups, summed, and the
// sensitivities of tiles.
//
// Widths for a mixed plan, in device memory: host/widths.hpp has the same calls, with the same
// results to the bit, and says what they compute.

#include "furl/block/codes.cuh"
#include "furl/block/layout.cuh"
#include "furl/block/min_max.cuh"
#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/detail/cells.hpp"
#include "furl/detail/device/exclusive_sum.cuh"
#include "furl/detail/device/intrinsics.cuh"
#include "furl/detail/device/launch.cuh"
#include "furl/detail/extra/allocate_bits.cuh"
#include "furl/detail/extra/bit_gain.hpp"
#include "furl/detail/extra/checks.hpp"
#include "furl/plan.hpp"
#include "furl/types.hpp"

#if !defined(__CUDACC_RTC__)
#include <algorithm>
#include <cstddef>
#endif

FURL_HIDDEN_BEGIN

namespace furl::kernel {

/// Sum of the squared ranges of a tile's groups, as a pairwise tree, neighbours first.
/// Threads : one warp, all lanes; range is that of the group that the lane looks after.
/// Result  : in every lane.
__device__ __forceinline__ double sum_squared_ranges(float range, const lane_group& place,
                                                     int count) {
  double sum = place.is_first && place.begin < count ? squared_range(range) : 0.0;
  for_each_distance(tile_elements,
                    [&](int distance) { sum = add_rn(sum, shuffle_xor(sum, distance)); });
  return sum;
}

/// From the elements. One warp a tile.
template <class T>
__global__ void __launch_bounds__(block_threads)
    squared_ranges(blob_layout layout, const T* x, double* squared) {
  const lane_group place = group_of_lane(lane_index(), layout.group);
  for (i64 tile = first_tile(); tile < layout.num_tiles; tile += tile_stride()) {
    const int count = elements_in_tile(layout.num_elements, tile);
    tile_fragment<T> elements;
    load_tile(x + tile * tile_elements, count, elements);
    const min_max range = tile_min_max(elements, layout.group);
    const double sum = sum_squared_ranges(sub_rn(range.hi, range.lo), place, count);
    if (lane_index() == 0) squared[tile] = sum;
  }
}

/// From the metadata of a blob. One warp a tile.
template <int Threads = block_threads>
__global__ void __launch_bounds__(Threads)
    squared_coded_ranges(blob_layout layout, const u8* blob, double* squared) {
  const lane_group place = group_of_lane(lane_index(), layout.group);
  for (i64 tile = first_tile(); tile < layout.num_tiles; tile += tile_stride()) {
    const int count = elements_in_tile(layout.num_elements, tile);
    const int bits = layout.widths == nullptr ? layout.bits : layout.widths[tile];
    float step = 0.0f;
    if (place.is_first && place.begin < count)
      step = load_group(blob + layout.meta_offset, place.index(tile), layout.meta).y;
    const double sum = sum_squared_ranges(coded_range(step, bits), place, count);
    if (lane_index() == 0) squared[tile] = sum;
  }
}

/// One thread a tile. part : divides an element's index by the elements of a part.
template <int Threads = block_threads>
__global__ void __launch_bounds__(Threads)
    expand_sensitivity(const float* of_parts, i64 num_elements, divisor64 part, float* of_tiles,
                       i64 num_tiles) {
  const i64 stride = i64(gridDim.x) * Threads;
  for (i64 tile = i64(blockIdx.x) * Threads + threadIdx.x; tile < num_tiles; tile += stride) {
    const i64 first = tile * tile_elements;
    const i64 last = first + elements_in_tile(num_elements, tile) - 1;
    of_tiles[tile] =
        largest_sensitivity(of_parts, i64(part.divide(u64(first))), i64(part.divide(u64(last))));
  }
}

}  // namespace furl::kernel

FURL_HIDDEN_END

#if !defined(__CUDACC_RTC__)

FURL_HIDDEN_BEGIN

namespace furl {

namespace detail {

template <class Architectures>
status launch_allocation(const kernel::gain_request& request, u8* widths, void* workspace,
                         cudaStream_t stream) {
  if (request.raises == 0) {  // nothing to select
    const auto size = static_cast<std::size_t>(request.num_tiles);
    return kernel::cuda_status(cudaMemsetAsync(widths, 1, size, stream), "stream");
  }
  auto* const counts = static_cast<kernel::gain_counts*>(workspace);
  auto* const ties = reinterpret_cast<u64*>(counts + 1);
  const i64 chunks = kernel::num_chunks(request.num_tiles);
  const auto blocks = unsigned(
      (std::min)(kernel::max_gain_blocks, ceil_div(request.num_tiles, kernel::gain_digits)));
  status s = kernel::cuda_status(
      cudaMemsetAsync(counts->of_digit, 0, sizeof counts->of_digit, stream), "stream");
  for (int round = 0; round < kernel::gain_rounds && s; ++round)
    s = kernel::launch(kernel::count_gains<>, blocks, kernel::gain_digits, stream, request, round,
                       counts);
  if (s)
    s = kernel::launch(kernel::count_ties<>, blocks, kernel::gain_digits, stream, request, counts,
                       ties);
  if (s) s = kernel::launch(kernel::scan_sums<>, 1, kernel::scan_threads, stream, ties, chunks);
  if (s)
    s = kernel::launch(kernel::grant_gains<>, kernel::blocks_for(chunks), kernel::block_threads,
                       stream, request, counts, ties, widths);
  return s;
}

}  // namespace detail

/// The summed squared ranges of the groups of each tile of x, in one read. As host::squared_ranges.
/// x       : device, plan.num_elements() elements of any dtype, aligned to one element.
/// squared : device, plan.num_tiles() numbers.
/// stream  : as for compress.
/// Errors: see status; nothing is launched for a bad argument. Allocates nothing and waits for
/// nothing.
template <class Architectures = kernel::architectures>
status squared_ranges(const plan& p, const_values x, span<double> squared, cudaStream_t stream) {
  if (const status s = detail::check_ranges_call(p, x, squared); !s) return s;
  if (const status s = detail::check_element_alignment(x.data, x.type, "x"); !s) return s;
  if (p.num_elements() == 0) return {};
  const kernel::stream_scope scope(stream);
  if (const status s = detail::check_reachable(scope, {{x.data, "x"}, {squared.data, "squared"}});
      !s)
    return s;
  return with_type(x.type, [&](auto element) {
    using type = decltype(element);
    return kernel::launch(kernel::squared_ranges<type>, kernel::blocks_for(p.num_tiles()),
                          kernel::block_threads, stream, blob_layout(p),
                          static_cast<const type*>(x.data), squared.data);
  });
}

/// The same from a blob, such as that of the last step, without a look at x. With a window they are
/// those of the residuals. As host::squared_ranges.
/// blob    : device, what compress wrote for the plan; aligned to 16 bytes.
/// squared, stream, errors : as above.
/// options : for a mixed plan, the widths that the blob was made with; no workspace is needed.
template <class Architectures = kernel::architectures>
status squared_ranges(const plan& p, const_bytes blob, span<double> squared, cudaStream_t stream,
                      const options& o = {}) {
  if (const status s = detail::check_ranges_call(p, blob, squared); !s) return s;
  if (const status s = detail::check_tile_bits(p, o.tile_bits); !s) return s;
  if (p.num_elements() == 0) return {};
  const kernel::stream_scope scope(stream);
  if (const status s = detail::check_reachable(scope, {{blob.data, "blob"},
                                                       {squared.data, "squared"},
                                                       {o.tile_bits.data, "options.tile_bits"}});
      !s)
    return s;
  blob_layout layout(p);
  layout.widths = static_cast<const u8*>(o.tile_bits.data);
  return kernel::launch(kernel::squared_coded_ranges<>, kernel::blocks_for(p.num_tiles()),
                        kernel::block_threads, stream, layout, static_cast<const u8*>(blob.data),
                        squared.data);
}

/// Sensitivities of tiles from those of equal parts of the tensor. As host::expand_sensitivity,
/// with arrays in device memory; stream and errors as for compress.
template <class Architectures = kernel::architectures>
status expand_sensitivity(const plan& p, span<const float> of_parts, span<float> of_tiles,
                          cudaStream_t stream) {
  if (const status s = detail::check_expand_call(p, of_parts, of_tiles); !s) return s;
  if (p.num_elements() == 0) return {};
  const kernel::stream_scope scope(stream);
  if (const status s = detail::check_reachable(
          scope, {{of_parts.data, "of_parts"}, {of_tiles.data, "of_tiles"}});
      !s)
    return s;
  const divisor64 part(u64(p.num_elements() / of_parts.size));
  return kernel::launch(kernel::expand_sensitivity<>,
                        kernel::blocks_for(detail::ceil_div(p.num_tiles(), warp_threads)),
                        kernel::block_threads, stream, of_parts.data, p.num_elements(), part,
                        of_tiles.data, p.num_tiles());
}

/// Bytes of workspace that allocate_bits needs for a number of tiles, such as plan.num_tiles().
constexpr u64 allocation_workspace_bytes(i64 num_tiles) {
  return num_tiles < 1
             ? 0
             : sizeof(kernel::gain_counts) + u64(kernel::num_chunks(num_tiles)) * sizeof(u64);
}

/// The widths that make the most of sum_of_bits bits. As host::allocate_bits, which says what
/// that is, with arrays in device memory.
/// workspace : device, allocation_workspace_bytes(number of tiles) bytes or more, aligned to 8;
///             apart from the others. It serves one call at a time.
/// stream, errors : as for compress.
template <class Architectures = kernel::architectures>
status allocate_bits(u64 sum_of_bits, span<const float> sensitivity,
                     span<const double> squared_range, bytes widths, bytes workspace,
                     cudaStream_t stream) {
  if (const status s = detail::check_allocation(sum_of_bits, sensitivity, squared_range, widths);
      !s)
    return s;
  const i64 num_tiles = i64(widths.size_bytes);
  if (num_tiles == 0) return {};
  if (const status s =
          detail::check_workspace(workspace, allocation_workspace_bytes(num_tiles), "workspace",
                                  "must have allocation_workspace_bytes(tiles) bytes");
      !s)
    return s;
  const kernel::stream_scope scope(stream);
  if (const status s = detail::check_reachable(scope, {{sensitivity.data, "sensitivity"},
                                                       {squared_range.data, "squared_range"},
                                                       {widths.data, "widths"},
                                                       {workspace.data, "workspace"}});
      !s)
    return s;
  return detail::launch_allocation<Architectures>(
      {sensitivity.data, squared_range.data, num_tiles, sum_of_bits - u64(num_tiles)},
      static_cast<u8*>(widths.data), workspace.data, stream);
}

}  // namespace furl

FURL_HIDDEN_END

#endif
