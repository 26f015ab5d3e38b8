// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Widths for a mixed plan, in device memory: host/widths.hpp has the same calls, with the same
// results to the bit, and says what they compute.

#include "furl/config.hpp"
#include "furl/kernel/allocate_widths.cuh"
#include "furl/kernel/launch.cuh"
#include "furl/kernel/squared_ranges.cuh"
#include "furl/kernel/widths.cuh"
#include "furl/options.cuh"
#include "furl/plan.hpp"
#include "furl/status.hpp"
#include "furl/view.hpp"
#include "furl/width_arguments.hpp"

#if !defined(__CUDACC_RTC__)

#include <algorithm>
#include <cstddef>

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
  if (const status s = detail::check_widths_array(p, o.widths); !s) return s;
  if (p.num_elements() == 0) return {};
  const kernel::stream_scope scope(stream);
  if (const status s = detail::check_reachable(
          scope,
          {{blob.data, "blob"}, {squared.data, "squared"}, {o.widths.data, "options.widths"}});
      !s)
    return s;
  blob_layout layout(p);
  layout.widths = static_cast<const u8*>(o.widths.data);
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

/// Bytes of workspace that allocate_widths needs for a number of tiles, such as plan.num_tiles().
constexpr u64 allocation_workspace_bytes(i64 num_tiles) {
  return num_tiles < 1
             ? 0
             : sizeof(kernel::gain_counts) + u64(kernel::num_chunks(num_tiles)) * sizeof(u64);
}

/// The widths that make the most of sum_of_widths bits. As host::allocate_widths, which says what
/// that is, with arrays in device memory.
/// workspace : device, allocation_workspace_bytes(number of tiles) bytes or more, aligned to 8;
///             apart from the others. It serves one call at a time.
/// stream, errors : as for compress.
template <class Architectures = kernel::architectures>
status allocate_widths(u64 sum_of_widths, span<const float> sensitivity,
                       span<const double> squared_range, bytes widths, bytes workspace,
                       cudaStream_t stream) {
  if (const status s = detail::check_allocation(sum_of_widths, sensitivity, squared_range, widths);
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
      {sensitivity.data, squared_range.data, num_tiles, sum_of_widths - u64(num_tiles)},
      static_cast<u8*>(widths.data), workspace.data, stream);
}

}  // namespace furl

FURL_HIDDEN_END

#endif
