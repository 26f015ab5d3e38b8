// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Values to codes by a codebook, and back to levels, in device memory (FORMAT.md, A9).

#include "furl/compress.cuh"
#include "furl/config.hpp"
#include "furl/detail/device/launch.cuh"
#include "furl/detail/extra/checks.hpp"
#include "furl/detail/extra/codebook.cuh"
#include "furl/extra/codebook.hpp"
#include "furl/plan.hpp"
#include "furl/types.hpp"

#if !defined(__CUDACC_RTC__)

FURL_HIDDEN_BEGIN

namespace furl {

namespace detail {

/// Launches the kernel for codebooks of SearchBits bits or more that has as many as the book.
template <class Architectures, int SearchBits = 1, class T>
status launch_search(const plan& p, const codebook& book, const T* x, u8* blob,
                     const kernel::key_argument& key, cudaStream_t stream) {
  if constexpr (SearchBits < max_bits) {
    if (book.bits() > SearchBits)
      return launch_search<Architectures, SearchBits + 1>(p, book, x, blob, key, stream);
  }
  const unsigned blocks = kernel::blocks_of_few_tiles(p.num_tiles());
  if (book.rounding == rounding::stochastic)
    return kernel::launch(kernel::pack_stochastic<T, SearchBits>, blocks, kernel::block_threads,
                          stream, p.num_elements(), kernel::num_vector_tiles(x, p.num_elements()),
                          p.codec().bits, book, x, blob, key);
  return kernel::launch(kernel::pack_nearest<T, SearchBits>, blocks, kernel::block_threads, stream,
                        p.num_elements(), kernel::num_vector_tiles(x, p.num_elements()),
                        p.codec().bits, book, x, blob);
}

template <class Architectures, class T>
status launch_pack(const plan& p, const codebook& book, const T* x, u8* blob,
                   const kernel::key_argument& key, cudaStream_t stream) {
  if (p.codec().bits > 1 || book.rounding == rounding::stochastic || book.of_magnitudes)
    return launch_search<Architectures>(p, book, x, blob, key, stream);
  const kernel::masked_arrays<T> arrays(p.num_elements(), x, nullptr, reinterpret_cast<u32*>(blob));
  return kernel::launch(kernel::pack_binary<T>, kernel::blocks_of_few_tiles(p.num_tiles()),
                        kernel::block_threads, stream, arrays, book.threshold[0]);
}

template <class Architectures, class T>
status launch_multiply(const plan& p, const codebook& book, u8* blob, const T* g, T* out,
                       cudaStream_t stream) {
  const unsigned blocks = kernel::blocks_of_few_tiles(p.num_tiles());
  if (p.codec().bits > 1 || !is_zero(book.level[0]) || is_zero(book.level[1]))
    return kernel::launch(kernel::multiply_levels<T>, blocks, kernel::block_threads, stream,
                          p.num_elements(), p.codec().bits, book, blob, g, out);
  const kernel::masked_arrays<T> arrays(p.num_elements(), g, out, reinterpret_cast<u32*>(blob));
  if constexpr (sizeof(T) == 2) {
    if (book.level[1] == 1.0f)
      return kernel::launch(kernel::multiply_binary<T, false>, blocks, kernel::block_threads,
                            stream, arrays, 1.0f);
  }
  return kernel::launch(kernel::multiply_binary<T, true>, blocks, kernel::block_threads, stream,
                        arrays, book.level[1]);
}

}  // namespace detail

/// Codes the values of x by a codebook, on a stream.
/// x      : device, plan.num_elements() elements of any dtype, aligned to one element; to four, it
///          is fast.
/// book   : at most 2^bits levels for a plan of `bits` bits; copied by the call.
/// blob   : device, plan.size_bytes() bytes or more; aligned to 16 bytes; apart from x.
/// key    : of the random stream; each call takes another. Not used by nearest rounding.
/// stream : as for compress; options.device_key too.
/// Errors: see status; nothing is launched for a bad argument. The plan must come from
/// plan::make_codes. Allocates nothing and waits for nothing.
template <class Architectures = kernel::architectures>
status pack(const plan& p, const_values x, const codebook& book, bytes blob, random_key key,
            cudaStream_t stream, const options& o = {}) {
  const const_bytes out{blob.data, blob.size_bytes};
  if (const status s = detail::check_coded_values(p, x, "x", out); !s) return s;
  if (const status s = detail::check_element_alignment(x.data, x.type, "x"); !s) return s;
  if (const status s = detail::check_codebook(book, p.codec().bits); !s) return s;
  if (const status s = detail::check_device_key(o.device_key); !s) return s;
  if (const status s = detail::check_options(p, o); !s) return s;
  if (p.num_elements() == 0) return {};
  const kernel::stream_scope scope(stream);
  if (const status s = detail::check_reachable(
          scope, {{x.data, "x"}, {blob.data, "blob"}, {o.device_key, "options.device_key"}});
      !s)
    return s;
  return with_type(x.type, [&](auto element) {
    return detail::launch_pack<Architectures>(
        p, book, static_cast<const decltype(element)*>(x.data), static_cast<u8*>(blob.data),
        kernel::key_argument{key, o.device_key}, stream);
  });
}

/// Writes the levels of packed codes, a code that names no level as 0. Values beyond the largest
/// finite f16 or bf16 become that one.
/// blob : device, the plan.size_bytes() bytes that pack wrote; aligned to 16 bytes.
/// y    : device, plan.num_elements() elements of any dtype, aligned to one element; to four, it is
///        fast. All of them are written; apart from the blob.
/// book, stream, errors: as for pack.
template <class Architectures = kernel::architectures>
status unpack(const plan& p, const_bytes blob, const codebook& book, values y,
              cudaStream_t stream) {
  const const_values out{y.data, y.type, y.num_elements};
  if (const status s = detail::check_coded_values(p, out, "y", blob); !s) return s;
  if (const status s = detail::check_element_alignment(y.data, y.type, "y"); !s) return s;
  if (const status s = detail::check_codebook(book, p.codec().bits); !s) return s;
  if (p.num_elements() == 0) return {};
  const kernel::stream_scope scope(stream);
  if (const status s = detail::check_reachable(scope, {{y.data, "y"}, {blob.data, "blob"}}); !s)
    return s;
  return with_type(y.type, [&](auto element) {
    using type = decltype(element);
    return kernel::launch(kernel::unpack_levels<type>, kernel::blocks_of_few_tiles(p.num_tiles()),
                          kernel::block_threads, stream, p.num_elements(), p.codec().bits, book,
                          static_cast<const u8*>(blob.data), static_cast<type*>(y.data));
  });
}

/// Multiplies each element of g by the level of its code, in f32, and rounds the product once to
/// g's dtype. A level of 0 gives +0, whatever g is: an infinity or NaN too. This is the backward
/// pass of everything that multiplies gradients by a few numbers: ReLU, dropout, few-bit
/// activations.
/// g   : device, plan.num_elements() elements of any dtype, aligned to one element; to four, it is
///       fast; apart from the blob.
/// out : likewise, of g's dtype; g itself, or apart from it.
/// blob, book, stream, errors: as for unpack.
template <class Architectures = kernel::architectures>
status unpack_multiply(const plan& p, const_bytes blob, const codebook& book, const_values g,
                       values out, cudaStream_t stream) {
  if (const status s = detail::check_coded_output(p, g, "g", out, "out", blob); !s) return s;
  if (const status s = detail::check_element_alignment(g.data, g.type, "g"); !s) return s;
  if (const status s = detail::check_element_alignment(out.data, out.type, "out"); !s) return s;
  if (const status s = detail::check_codebook(book, p.codec().bits); !s) return s;
  if (p.num_elements() == 0) return {};
  const kernel::stream_scope scope(stream);
  if (const status s =
          detail::check_reachable(scope, {{g.data, "g"}, {blob.data, "blob"}, {out.data, "out"}});
      !s)
    return s;
  return with_type(g.type, [&](auto element) {
    using type = decltype(element);
    return detail::launch_multiply<Architectures>(
        p, book, static_cast<u8*>(const_cast<void*>(blob.data)), static_cast<const type*>(g.data),
        static_cast<type*>(out.data), stream);
  });
}

}  // namespace furl

FURL_HIDDEN_END

#endif
