// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Max pooling that keeps the index of each maximum in its window, in as few bits as it needs, in
// device memory (README, A11).

#include "furl/config.hpp"
#include "furl/kernel/launch.cuh"
#include "furl/kernel/max_pool.cuh"
#include "furl/max_pool.hpp"
#include "furl/options.cuh"
#include "furl/status.hpp"
#include "furl/view.hpp"

#if !defined(__CUDACC_RTC__)

FURL_HIDDEN_BEGIN

namespace furl {

namespace detail {

inline status check_max_pool_memory(const void* x, const char* x_name, const void* y,
                                    const char* y_name, const void* blob, dtype type,
                                    const kernel::stream_scope& scope) {
  if (const status s = check_element_alignment(x, type, x_name); !s) return s;
  if (const status s = check_element_alignment(y, type, y_name); !s) return s;
  return check_reachable(scope, {{x, x_name}, {y, y_name}, {blob, "blob"}});
}

}  // namespace detail

/// y = the maximum of each window of x, and its index in the window, row-major, in the same pass.
/// Of equal elements the first is chosen, of several NaN the last; NaN is above all.
/// x      : device, p.num_inputs() elements of any dtype, aligned to one element.
/// y      : device, p.num_outputs() elements of x's dtype; apart from x.
/// blob   : device, p.codes().size_bytes() bytes or more; aligned to 16 bytes; apart from x and y.
/// stream : as for compress.
/// Errors: see status; nothing is launched for a bad argument. Allocates nothing and waits for
/// nothing.
template <class Architectures = kernel::architectures>
status max_pool(const max_pool_plan& p, const_values x, values y, bytes blob, cudaStream_t stream) {
  const const_values out{y.data, y.type, y.num_elements};
  if (const status s = detail::check_max_pool(p, x, "x", out, "y", {blob.data, blob.size_bytes});
      !s)
    return s;
  if (p.num_outputs() == 0) return {};
  const kernel::stream_scope scope(stream);
  if (const status s =
          detail::check_max_pool_memory(x.data, "x", y.data, "y", blob.data, x.type, scope);
      !s)
    return s;
  const pool_geometry& g = p.geometry();
  return with_type(x.type, [&](auto element) {
    using type = decltype(element);
    return kernel::launch(
        kernel::max_pool<type>, kernel::blocks_for(p.codes().num_tiles()), kernel::block_threads,
        stream, g, image_list(g.num_planes, g.rows.output, g.columns.output),
        static_cast<const type*>(x.data), static_cast<type*>(y.data), static_cast<u8*>(blob.data));
  });
}

/// The gradient of the input: at each maximum those of the windows that chose it, added in f32 in
/// the order of windows and rounded once; +0 elsewhere.
/// blob   : device, what max_pool wrote; aligned to 16 bytes. Indices beyond the window are
/// ignored. g      : device, p.num_outputs() elements of any dtype, aligned to one element; the
/// gradient of
///          y.
/// out    : device, p.num_inputs() elements of g's dtype; apart from g and the blob.
/// stream, errors: as for max_pool.
template <class Architectures = kernel::architectures>
status max_pool_backward(const max_pool_plan& p, const_bytes blob, const_values g, values out,
                         cudaStream_t stream) {
  const const_values inputs{out.data, out.type, out.num_elements};
  if (const status s = detail::check_max_pool(p, inputs, "out", g, "g", blob); !s) return s;
  if (p.num_inputs() == 0) return {};
  const kernel::stream_scope scope(stream);
  if (const status s =
          detail::check_max_pool_memory(out.data, "out", g.data, "g", blob.data, g.type, scope);
      !s)
    return s;
  const pool_geometry& geometry = p.geometry();
  const image_list strips(geometry.num_planes,
                          int(detail::ceil_div(geometry.rows.input, gathered_rows)),
                          geometry.columns.input);
  const i64 warps = detail::ceil_div(strips.num_elements, warp_threads);
  return with_type(g.type, [&](auto element) {
    using type = decltype(element);
    return kernel::launch(kernel::max_pool_backward<type>, kernel::blocks_for(warps),
                          kernel::block_threads, stream, geometry, strips,
                          static_cast<const u8*>(blob.data), static_cast<const type*>(g.data),
                          static_cast<type*>(out.data));
  });
}

}  // namespace furl

FURL_HIDDEN_END

#endif
