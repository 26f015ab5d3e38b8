// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The bits of each tile's codes for a mixed plan (ActNN, Chen et al., ICML 2021), in device memory.
// extra/allocate_bits.hpp has the same calls for host memory, and documents each in full.
// What compress.cuh says of streams, launches and errors holds here too. Of furl's headers this one
// alone includes CUB, which takes longer to compile than the rest.

#include "furl/block/codes.cuh"
#include "furl/block/layout.cuh"
#include "furl/block/min_max.cuh"
#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/detail/cells.hpp"
#include "furl/detail/checks.hpp"
#include "furl/detail/device/intrinsics.cuh"
#include "furl/detail/device/launch.cuh"
#include "furl/detail/extra/allocate_bits.cuh"
#include "furl/detail/extra/binary64.hpp"
#include "furl/extra/allocate_bits.hpp"
#include "furl/plan.hpp"
#include "furl/types.hpp"

FURL_HIDDEN_BEGIN

namespace furl {

namespace kernel {

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

/// Of the elements, one warp a tile.
template <class T, class Architectures>
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

/// From the metadata of a blob, one warp a tile.
template <class Architectures>
__global__ void __launch_bounds__(block_threads)
    squared_coded_ranges(blob_layout layout, const u8* blob, double* squared) {
  const lane_group place = group_of_lane(lane_index(), layout.group);
  for (i64 tile = first_tile(); tile < layout.num_tiles; tile += tile_stride()) {
    const int count = elements_in_tile(layout.num_elements, tile);
    const int bits = layout.tile_bits == nullptr ? layout.bits : layout.tile_bits[tile];
    float step = 0.0f;
    if (place.is_first && place.begin < count)
      step = load_group(blob + layout.meta_offset, place.index(tile), layout.meta).y;
    const double sum = sum_squared_ranges(coded_range(step, bits), place, count);
    if (lane_index() == 0) squared[tile] = sum;
  }
}

/// Of tiles from those of parts, one thread a tile. part : divides an element's index by the
/// elements of a part.
template <class Architectures>
__global__ void __launch_bounds__(block_threads)
    expand_sensitivity(const float* of_parts, i64 num_elements, divisor64 part, float* of_tiles,
                       i64 num_tiles) {
  const i64 stride = i64(gridDim.x) * block_threads;
  for (i64 tile = i64(blockIdx.x) * block_threads + threadIdx.x; tile < num_tiles; tile += stride) {
    const i64 first = tile * tile_elements;
    const i64 last = first + elements_in_tile(num_elements, tile) - 1;
    of_tiles[tile] =
        largest_sensitivity(of_parts, i64(part.divide(u64(first))), i64(part.divide(u64(last))));
  }
}

}  // namespace kernel

#if !defined(__CUDACC_RTC__)

namespace detail {

/// The bits of all tiles, disjoint from the index that is made of them.
inline status check_index_call(const plan& p, const_bytes tile_bits, bytes index) {
  if (p.kind() != plan_kind::mixed)
    return {error::wrong_plan, "plan", 0, "must come from plan::make_mixed"};
  if (tile_bits.size_bytes != u64(p.num_tiles()))
    return {error::wrong_size, "tile_bits", i64(tile_bits.size_bytes),
            "must have one byte per tile of 1024 elements"};
  const bool needed = tile_bits.size_bytes > 0;
  if (const status s = check_not_null(tile_bits.data, needed, "tile_bits"); !s) return s;
  if (index.size_bytes < tile_index_bytes(p))
    return {error::wrong_size, "index", i64(index.size_bytes),
            "must have at least tile_index_bytes(plan) bytes"};
  if (const status s = check_not_null(index.data, needed, "index"); !s) return s;
  if (const status s =
          check_alignment(index.data, sizeof(u64), "index", "must be aligned to 8 bytes");
      !s)
    return s;
  return check_apart({index.data, tile_index_bytes(p), "index"},
                     {{tile_bits.data, tile_bits.size_bytes, "tile_bits"}}, apart_from_outputs);
}

}  // namespace detail

/// Sums the squared ranges of the groups of each tile of x, in one read, on a stream. As
/// furl::host::squared_ranges, with the same results to the bit.
/// x       : device, plan.num_elements() elements of any dtype, aligned to one element; to four, it
///           is fast.
/// squared : device, plan.num_tiles() numbers, disjoint from x.
/// Options for tiles, ranges and statistics are refused. Errors: see status; nothing is launched
/// for a bad argument.
template <class Architectures = kernel::architectures>
status squared_ranges(const plan& p, const_values x, span<double> squared, cudaStream_t stream,
                      const options& o = {}) {
  if (const status s = detail::check_ranges_call(p, x, squared); !s) return s;
  if (const status s = detail::check_device_alignment(plan{}, {}, {{x, "x"}}); !s) return s;
  if (const status s =
          detail::check_options_without_ranges(plan{}, o, {detail::bytes_of(squared, "squared")});
      !s)
    return s;
  if (p.num_elements() == 0) return {};
  return kernel::run_on(stream, o.check_pointers, {{x.data, "x"}, {squared.data, "squared"}}, [&] {
    return with_type(x.type, [&](auto element) {
      using type = decltype(element);
      return kernel::launch(kernel::squared_ranges<type, Architectures>,
                            {kernel::blocks_for(p.num_tiles())}, stream, blob_layout(p),
                            static_cast<const type*>(x.data), squared.data);
    });
  });
}

/// Sums the squared ranges of the groups of each tile as a blob has them, such as that of the last
/// step, on a stream. As furl::host::squared_ranges of a blob, with the same results to the bit.
/// blob    : device, the plan.size_bytes() bytes that compress wrote, aligned to 16 bytes.
/// squared : device, plan.num_tiles() numbers, disjoint from the blob and the bits of tiles.
/// o       : for a mixed plan the bits of tiles that the blob was made with. Their index is not
///           needed.
/// Ranges are refused. Errors: see status; nothing is launched for a bad argument.
template <class Architectures = kernel::architectures>
status squared_ranges(const plan& p, const_bytes blob, span<double> squared, cudaStream_t stream,
                      const options& o = {}) {
  if (const status s = detail::check_ranges_call(p, blob, squared); !s) return s;
  if (const status s = detail::check_device_alignment(p, blob, {}); !s) return s;
  options without_index = o;
  if (p.kind() == plan_kind::mixed) {
    if (const status s = detail::check_tile_bits(p, o.tile_bits); !s) return s;
    if (const status s =
            detail::check_apart(detail::bytes_of(squared, "squared"),
                                {{o.tile_bits.data, o.tile_bits.size_bytes, "options.tile_bits"}},
                                detail::apart_from_outputs);
        !s)
      return s;
    without_index.tile_bits = without_index.tile_index = {};
  }
  if (const status s = detail::check_options_without_ranges(plan{}, without_index,
                                                            {detail::bytes_of(squared, "squared")});
      !s)
    return s;
  if (p.num_elements() == 0) return {};
  return kernel::run_on(
      stream, o.check_pointers,
      {{blob.data, "blob"}, {squared.data, "squared"}, {o.tile_bits.data, "options.tile_bits"}},
      [&] {
        return kernel::launch(kernel::squared_coded_ranges<Architectures>,
                              {kernel::blocks_for(p.num_tiles())}, stream, blob_layout(p, o),
                              static_cast<const u8*>(blob.data), squared.data);
      });
}

/// Makes sensitivities of tiles of those of equal parts of the tensor, on a stream. As
/// furl::host::expand_sensitivity, with the same results, and both arrays in device memory.
/// Options for tiles, ranges and statistics are refused. Errors: see status; nothing is launched
/// for a bad argument.
template <class Architectures = kernel::architectures>
status expand_sensitivity(const plan& p, span<const float> of_parts, span<float> of_tiles,
                          cudaStream_t stream, const options& o = {}) {
  if (const status s = detail::check_expand_call(p, of_parts, of_tiles); !s) return s;
  if (const status s =
          detail::check_options_without_ranges(plan{}, o, {detail::bytes_of(of_tiles, "of_tiles")});
      !s)
    return s;
  if (p.num_elements() == 0) return {};
  const divisor64 part(u64(p.num_elements() / of_parts.size));
  return kernel::run_on(
      stream, o.check_pointers, {{of_parts.data, "of_parts"}, {of_tiles.data, "of_tiles"}}, [&] {
        return kernel::launch(kernel::expand_sensitivity<Architectures>,
                              {kernel::blocks_for(detail::ceil_div(p.num_tiles(), warp_threads))},
                              stream, of_parts.data, p.num_elements(), part, of_tiles.data,
                              p.num_tiles());
      });
}

/// The bytes of workspace that allocate_bits needs for a number of tiles, such as plan.num_tiles().
constexpr u64 allocation_workspace_bytes(i64 num_tiles) {
  return kernel::gain_workspace_bytes(num_tiles);
}

/// Writes the bits of each tile that make the most of sum_of_bits, on a stream. As
/// furl::host::allocate_bits, which says what that is, with the same results.
/// sensitivity   : device, one per tile.
/// squared_range : device, one per tile.
/// tile_bits     : device, one byte per tile, disjoint from the others.
/// workspace     : device, allocation_workspace_bytes(number of tiles) bytes or more, aligned to 8,
///                 disjoint from the others. It serves one call at a time.
/// Options for tiles, ranges and statistics are refused. Errors: see status; nothing is launched
/// for a bad argument.
template <class Architectures = kernel::architectures>
status allocate_bits(u64 sum_of_bits, span<const float> sensitivity,
                     span<const double> squared_range, bytes tile_bits, bytes workspace,
                     cudaStream_t stream, const options& o = {}) {
  if (const status s = detail::check_allocation(sum_of_bits, sensitivity, squared_range, tile_bits);
      !s)
    return s;
  const i64 num_tiles = i64(tile_bits.size_bytes);
  const u64 needed = allocation_workspace_bytes(num_tiles);
  if (const status s = detail::check_buffer(workspace, needed, "workspace",
                                            "must have allocation_workspace_bytes(tiles) bytes");
      !s)
    return s;
  const detail::named_bytes output{tile_bits.data, tile_bits.size_bytes, "tile_bits"};
  const detail::named_bytes scratch{workspace.data, needed, "workspace"};
  if (const status s =
          detail::check_apart(scratch,
                              {detail::bytes_of(sensitivity, "sensitivity"),
                               detail::bytes_of(squared_range, "squared_range"), output},
                              "must not overlap the workspace");
      !s)
    return s;
  if (const status s = detail::check_options_without_ranges(plan{}, o, {output, scratch}); !s)
    return s;
  if (num_tiles == 0) return {};
  return kernel::run_on(
      stream, o.check_pointers,
      {{sensitivity.data, "sensitivity"},
       {squared_range.data, "squared_range"},
       {tile_bits.data, "tile_bits"},
       {workspace.data, "workspace"}},
      [&] {
        return kernel::launch_allocation<Architectures>(
            {sensitivity.data, squared_range.data, num_tiles, sum_of_bits - u64(num_tiles)},
            static_cast<u8*>(tile_bits.data), workspace.data, stream);
      });
}

/// Writes the index by which compress, decompress, decompress_add and measure find the tiles of a
/// mixed plan, on a stream: options.tile_index. It is made once for the bits that an allocation has
/// written, and again when they change. It has the sum of the bits of all tiles before every 32nd
/// tile, as 64-bit integers.
/// p         : from plan::make_mixed.
/// tile_bits : device, plan.num_tiles() bytes, each 1..8, which cannot be checked without waiting.
/// index     : device, tile_index_bytes(plan) bytes or more, aligned to 8, disjoint from tile_bits.
/// Options for tiles, ranges and statistics are refused. Errors: see status; nothing is launched
/// for a bad argument.
template <class Architectures = kernel::architectures>
status index_tiles(const plan& p, const_bytes tile_bits, bytes index, cudaStream_t stream,
                   const options& o = {}) {
  if (const status s = detail::check_index_call(p, tile_bits, index); !s) return s;
  if (const status s = detail::check_options_without_ranges(
          plan{}, o, {{index.data, tile_index_bytes(p), "index"}});
      !s)
    return s;
  if (p.num_elements() == 0) return {};
  return kernel::run_on(
      stream, o.check_pointers, {{tile_bits.data, "tile_bits"}, {index.data, "index"}}, [&] {
        return kernel::launch(kernel::index_tiles<Architectures>, {1, kernel::index_threads},
                              stream, static_cast<const u8*>(tile_bits.data), p.num_tiles(),
                              static_cast<u64*>(index.data));
      });
}

#endif

}  // namespace furl

FURL_HIDDEN_END
