// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// How far what a blob decodes to is from what was compressed, in device memory.

#include "furl/config.hpp"
#include "furl/element/cell_locator.hpp"
#include "furl/kernel/launch.cuh"
#include "furl/kernel/measure.cuh"
#include "furl/options.cuh"
#include "furl/plan.hpp"
#include "furl/quality.hpp"
#include "furl/quality_arguments.hpp"
#include "furl/status.hpp"
#include "furl/view.hpp"

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
                                                       {o.widths.data, "options.widths"},
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
