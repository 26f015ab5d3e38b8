// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Dropout in device memory (README, A10): with one bit per element for its backward pass, or with
// nothing kept but p and the key.

#include "furl/codebook.cuh"
#include "furl/config.hpp"
#include "furl/dropout.hpp"
#include "furl/kernel/dropout.cuh"
#include "furl/kernel/launch.cuh"
#include "furl/options.cuh"
#include "furl/plan.hpp"
#include "furl/status.hpp"
#include "furl/view.hpp"

#if !defined(__CUDACC_RTC__)

FURL_HIDDEN_BEGIN

namespace furl {

namespace detail {

/// What both kinds of dropout do once their arrays are checked. mask: null if there is none.
template <class Architectures>
status launch_dropout(const_values x, double p, values y, void* mask, random_key key,
                      cudaStream_t stream, const options& o) {
  const auto rate = make_dropout_rate(p);
  if (!rate) return rate.status();
  if (const status s = check_element_alignment(x.data, x.type, "x"); !s) return s;
  if (const status s = check_element_alignment(y.data, y.type, "y"); !s) return s;
  if (const status s = check_device_key(o.device_key); !s) return s;
  if (const status s = check_options(plan{}, o); !s) return s;
  if (x.num_elements == 0) return {};
  const kernel::stream_scope scope(stream);
  if (const status s = check_reachable(
          scope,
          {{x.data, "x"}, {mask, "blob"}, {o.device_key, "options.device_key"}, {y.data, "y"}});
      !s)
    return s;
  return with_type(x.type, [&](auto element) {
    using type = decltype(element);
    const kernel::masked_arrays<type> arrays(x.num_elements, static_cast<const type*>(x.data),
                                             static_cast<type*>(y.data), static_cast<u32*>(mask));
    const auto function =
        mask != nullptr ? kernel::dropout<type, true> : kernel::dropout<type, false>;
    return kernel::launch(
        function, kernel::blocks_of_few_tiles(ceil_div(x.num_elements, tile_elements)),
        kernel::block_threads, stream, arrays, *rate, kernel::key_argument{key, o.device_key});
  });
}

}  // namespace detail

/// Each element becomes +0 with probability p, whatever it is, else itself times 1 / (1 - p),
/// rounded once to its dtype. Nothing is kept: the backward pass is the same call with the same p
/// and key on the gradient.
/// x      : device, any number of elements of any dtype, aligned to one; to four, it is fast.
/// p      : rounded to a multiple of 2^-16, in the scale too; at least 0 and below 1 - 2^-17.
/// y      : device, of x's dtype and size; x itself, or apart from it.
/// key    : of the random stream; each dropout takes another.
/// stream : as for compress; options.device_key too.
/// Errors: see status; nothing is launched for a bad argument. Allocates nothing and waits for
/// nothing.
template <class Architectures = kernel::architectures>
status dropout(const_values x, double p, values y, random_key key, cudaStream_t stream,
               const options& o = {}) {
  if (const status s = detail::check_dropout(x, y); !s) return s;
  return detail::launch_dropout<Architectures>(x, p, y, nullptr, key, stream, o);
}

/// The same, and the mask of what is kept. The backward pass is unpack_multiply with
/// dropout_codebook(p).
/// codes : from plan::make_codes with 1 bit, of as many elements as x and y.
/// blob  : device, codes.size_bytes() bytes or more; aligned to 16 bytes; apart from x and y.
template <class Architectures = kernel::architectures>
status dropout(const plan& codes, const_values x, double p, values y, bytes blob, random_key key,
               cudaStream_t stream, const options& o = {}) {
  if (const status s = detail::check_masked(codes, x, y, {blob.data, blob.size_bytes}); !s)
    return s;
  return detail::launch_dropout<Architectures>(x, p, y, blob.data, key, stream, o);
}

}  // namespace furl

FURL_HIDDEN_END

#endif
