// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Masks and small integers in device memory (README, A8): ReLU and dropout masks, window indices of
// max pooling. Exact, one width for all.

#include "furl/config.hpp"
#include "furl/kernel/codes.cuh"
#include "furl/kernel/launch.cuh"
#include "furl/options.cuh"
#include "furl/plan.hpp"
#include "furl/status.hpp"
#include "furl/view.hpp"

#if !defined(__CUDACC_RTC__)

FURL_HIDDEN_BEGIN

namespace furl {

namespace detail {

inline status check_codes_memory(const void* codes, const void* blob,
                                 const kernel::stream_scope& scope) {
  return check_reachable(scope, {{codes, "codes"}, {blob, "blob"}});
}

}  // namespace detail

/// Packs one code per byte into codes of the plan's bits, on a stream; higher bits of a byte are
/// dropped.
/// codes  : device, plan.num_elements() bytes; aligned to 4, it is fast.
/// blob   : device, plan.size_bytes() bytes or more; aligned to 16 bytes; apart from codes.
/// stream : as for compress.
/// Errors: see status; nothing is launched for a bad argument. The plan must come from
/// plan::make_codes. Allocates nothing and waits for nothing.
template <class Architectures = kernel::architectures>
status pack(const plan& p, const_bytes codes, bytes blob, cudaStream_t stream) {
  if (const status s = detail::check_codes_call(p, codes, {blob.data, blob.size_bytes}); !s)
    return s;
  if (p.num_elements() == 0) return {};
  const kernel::stream_scope scope(stream);
  if (const status s = detail::check_codes_memory(codes.data, blob.data, scope); !s) return s;
  return kernel::launch(kernel::pack<>, kernel::blocks_for(p.num_tiles()), kernel::block_threads,
                        stream, blob_layout(p), static_cast<const u8*>(codes.data),
                        static_cast<u8*>(blob.data));
}

/// The inverse of pack: one code per byte.
template <class Architectures = kernel::architectures>
status unpack(const plan& p, const_bytes blob, bytes codes, cudaStream_t stream) {
  if (const status s = detail::check_codes_call(p, {codes.data, codes.size_bytes}, blob); !s)
    return s;
  if (p.num_elements() == 0) return {};
  const kernel::stream_scope scope(stream);
  if (const status s = detail::check_codes_memory(codes.data, blob.data, scope); !s) return s;
  return kernel::launch(kernel::unpack<>, kernel::blocks_for(p.num_tiles()), kernel::block_threads,
                        stream, blob_layout(p), static_cast<const u8*>(blob.data),
                        static_cast<u8*>(codes.data));
}

}  // namespace furl

FURL_HIDDEN_END

#endif
