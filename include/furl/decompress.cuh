// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Decompression in device memory, into an array or added to one.

#include "furl/config.hpp"
#include "furl/kernel/decompress.cuh"
#include "furl/kernel/launch.cuh"
#include "furl/kernel/lfc.cuh"
#include "furl/options.cuh"
#include "furl/plan.hpp"
#include "furl/status.hpp"
#include "furl/view.hpp"

#if !defined(__CUDACC_RTC__)

FURL_HIDDEN_BEGIN

namespace furl {

namespace detail {

template <class Architectures, kernel::output Output>
status decompress_to(const plan& p, const_bytes blob, values y, cudaStream_t stream,
                     const options& o) {
  if (const status s = check_call(p, {y.data, y.type, y.num_elements}, "y", blob, o); !s) return s;
  if (p.num_elements() == 0) return {};
  const kernel::stream_scope scope(stream);
  if (const status s = kernel::cuda_status(scope.error(), "stream"); !s) return s;
  if (const status s = check_memory(p, y.data, "y", blob.data, o, scope.device()); !s) return s;
  blob_layout layout;
  if (const status s = launch_layout<Architectures>(p, o, stream, layout); !s) return s;
  return with_type(y.type, [&](auto element) {
    using type = decltype(element);
    const auto* const from = static_cast<const u8*>(blob.data);
    auto* const to = static_cast<type*>(y.data);
    if (!p.has_lfc())
      return kernel::launch(kernel::decompress<type, Output>, kernel::blocks_for(layout.num_tiles),
                            kernel::block_threads, stream, layout, from, to);
    const kernel::lfc_source source = kernel::choose_lfc_source(p.grid());
    return kernel::with_path(source.path, [&](auto path) {
      return kernel::launch_blocks(kernel::decompress_with_lfc<type, Output, decltype(path)::value>,
                                   layout, source, {0, layout.num_tiles}, stream, from, to);
    });
  });
}

}  // namespace detail

/// Decompresses blob into y, on a stream. Values beyond the largest finite f16 or bf16 become that
/// one; f32 takes all values as they are.
/// blob   : device, the plan.size_bytes() bytes that compress wrote; aligned to 16 bytes.
/// y      : device, plan.num_elements() elements of any dtype, whatever x had, aligned to one
///          element; to four, it is fast. All of them are written; apart from the blob.
/// stream : as for compress.
/// Errors: see status; nothing is launched for a bad argument. Allocates nothing and waits for
/// nothing.
template <class Architectures = kernel::architectures>
status decompress(const plan& p, const_bytes blob, values y, cudaStream_t stream,
                  const options& o = {}) {
  return detail::decompress_to<Architectures, kernel::output::replace>(p, blob, y, stream, o);
}

/// Adds the decompressed values to y, in f32, and rounds each sum once to y's type: an overflow
/// becomes infinity, for loss scalers to find. Otherwise as decompress.
template <class Architectures = kernel::architectures>
status decompress_add(const plan& p, const_bytes blob, values y, cudaStream_t stream,
                      const options& o = {}) {
  return detail::decompress_to<Architectures, kernel::output::accumulate>(p, blob, y, stream, o);
}

}  // namespace furl

FURL_HIDDEN_END

#endif
