// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ReLU that keeps one bit per element for its backward pass, in device memory.

#include "furl/codebook.cuh"
#include "furl/config.hpp"
#include "furl/kernel/launch.cuh"
#include "furl/kernel/relu.cuh"
#include "furl/options.cuh"
#include "furl/plan.hpp"
#include "furl/status.hpp"
#include "furl/view.hpp"

#if !defined(__CUDACC_RTC__)

FURL_HIDDEN_BEGIN

namespace furl {

/// y = x where x > 0, NaN where x is NaN, else +0; and the mask of x > 0, which is false for NaN,
/// in the same pass. The backward pass is unpack_multiply with positive_codebook().
/// x      : device, plan.num_elements() elements of any dtype, aligned to one; to four, it is fast.
/// y      : likewise, of x's dtype; x itself, or apart from it.
/// blob   : device, the mask: plan.size_bytes() bytes or more; aligned to 16 bytes; apart from x
///          and y.
/// stream : as for compress.
/// Errors: see status; nothing is launched for a bad argument. The plan must come from
/// plan::make_codes with 1 bit. Allocates nothing and waits for nothing.
template <class Architectures = kernel::architectures>
status relu(const plan& p, const_values x, values y, bytes blob, cudaStream_t stream) {
  if (const status s = detail::check_masked(p, x, y, {blob.data, blob.size_bytes}); !s) return s;
  if (const status s = detail::check_element_alignment(x.data, x.type, "x"); !s) return s;
  if (const status s = detail::check_element_alignment(y.data, y.type, "y"); !s) return s;
  if (p.num_elements() == 0) return {};
  const kernel::stream_scope scope(stream);
  if (const status s =
          detail::check_reachable(scope, {{x.data, "x"}, {blob.data, "blob"}, {y.data, "y"}});
      !s)
    return s;
  return with_type(x.type, [&](auto element) {
    using type = decltype(element);
    return kernel::launch(
        kernel::relu<type>, kernel::blocks_of_few_tiles(p.num_tiles()), kernel::block_threads,
        stream,
        kernel::masked_arrays<type>(p.num_elements(), static_cast<const type*>(x.data),
                                    static_cast<type*>(y.data), static_cast<u32*>(blob.data)));
  });
}

}  // namespace furl

FURL_HIDDEN_END

#endif
