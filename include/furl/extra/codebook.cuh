// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Values to codes by a codebook, back to levels, and levels times gradients, in device memory
// (FORMAT.md, A9 and A13). extra/codebook.hpp has the same calls for host memory, and documents
// each in full. What compress.cuh says of streams, launches and errors holds here too.

#include "furl/config.hpp"
#include "furl/detail/checks.hpp"
#include "furl/detail/device/launch.cuh"
#include "furl/detail/extra/codebook.cuh"
#include "furl/detail/extra/scaled.cuh"
#include "furl/detail/extra/scaled.hpp"
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
  const kernel::grid_shape grid{kernel::blocks_of_few_tiles(p.num_tiles())};
  const i64 num_vector_tiles = kernel::num_vector_tiles(x, p.num_elements());
  if (book.rounding == rounding::stochastic)
    return kernel::launch(kernel::pack_stochastic<T, SearchBits, Architectures>, grid, stream,
                          p.num_elements(), num_vector_tiles, p.codec().bits, book, x, blob, key);
  return kernel::launch(kernel::pack_nearest<T, SearchBits, Architectures>, grid, stream,
                        p.num_elements(), num_vector_tiles, p.codec().bits, book, x, blob);
}

/// Likewise for groups with scales, with kernels for an even number of bits.
template <class Architectures, int SearchBits = 2, class T>
status launch_scaled(const plan& p, const codebook& book, const scale_source& source, const T* x,
                     u8* blob, const kernel::key_argument& key, cudaStream_t stream) {
  if constexpr (SearchBits < max_bits) {
    if (book.bits() > SearchBits)
      return launch_scaled<Architectures, SearchBits + 2>(p, book, source, x, blob, key, stream);
  }
  return kernel::launch(kernel::pack_scaled<T, SearchBits, Architectures>,
                        {kernel::blocks_of_few_tiles(p.num_tiles())}, stream, blob_layout(p), book,
                        source, x, blob, key);
}

template <class Architectures, class T>
status launch_pack(const plan& p, const codebook& book, const T* x, u8* blob,
                   const kernel::key_argument& key, cudaStream_t stream) {
  if (p.kind() == plan_kind::scaled)
    return launch_scaled<Architectures>(p, book, {nullptr, 0, largest_level(book)}, x, blob, key,
                                        stream);
  if (p.codec().bits > 1 || book.rounding == rounding::stochastic || book.of_magnitudes)
    return launch_search<Architectures>(p, book, x, blob, key, stream);
  const kernel::masked_arrays<T> arrays(p.num_elements(), x, nullptr, reinterpret_cast<u32*>(blob));
  return kernel::launch(kernel::pack_binary<T, Architectures>,
                        {kernel::blocks_of_few_tiles(p.num_tiles())}, stream, arrays,
                        book.threshold[0]);
}

template <class Architectures, class T>
status launch_unpack(const plan& p, const codebook& book, const u8* blob, T* y,
                     cudaStream_t stream) {
  const kernel::grid_shape grid{kernel::blocks_of_few_tiles(p.num_tiles())};
  if (p.kind() == plan_kind::scaled)
    return kernel::launch(kernel::unpack_scaled<T, Architectures>, grid, stream, blob_layout(p),
                          book, blob, y);
  return kernel::launch(kernel::unpack_levels<T, Architectures>, grid, stream, p.num_elements(),
                        p.codec().bits, book, blob, y);
}

template <class Architectures, class T>
status launch_multiply(const plan& p, const codebook& book, void* blob, const T* g, T* out,
                       cudaStream_t stream) {
  const kernel::grid_shape grid{kernel::blocks_of_few_tiles(p.num_tiles())};
  if (p.kind() == plan_kind::scaled)
    return kernel::launch(kernel::multiply_scaled<T, Architectures>, grid, stream, blob_layout(p),
                          book, static_cast<const u8*>(blob), g, out);
  if (p.codec().bits > 1 || !is_zero(book.level[0]) || is_zero(book.level[1]))
    return kernel::launch(kernel::multiply_levels<T, Architectures>, grid, stream, p.num_elements(),
                          p.codec().bits, book, static_cast<const u8*>(blob), g, out);
  const kernel::masked_arrays<T> arrays(p.num_elements(), g, out, static_cast<u32*>(blob));
  if constexpr (sizeof(T) == 2) {
    if (book.level[1] == 1.0f)
      return kernel::launch(kernel::multiply_binary<T, false, Architectures>, grid, stream, arrays,
                            1.0f);
  }
  return kernel::launch(kernel::multiply_binary<T, true, Architectures>, grid, stream, arrays,
                        book.level[1]);
}

/// What both forms of pack check.
inline status check_pack(const plan& p, const_values x, const codebook& book, bytes blob,
                         const options& o) {
  if (const status s = check_holds_levels(p); !s) return s;
  if (const status s = check_coded_values(p, x, "x", blob); !s) return s;
  if (const status s = check_device_alignment(p, blob, {{x, "x"}}); !s) return s;
  if (const status s = check_codebook(book, p); !s) return s;
  return check_options_without_ranges(p, o, {bytes_of(p, blob)});
}

}  // namespace detail

/// Codes the values of x by a codebook, on a stream. As furl::host::pack, with the same bytes.
/// x    : device, plan.num_elements() elements of any dtype, aligned to one element; to four, it is
///        fast.
/// book : in host memory; the call copies it.
/// blob : device, plan.size_bytes() bytes or more, aligned to 16 bytes, disjoint from x.
/// key  : of the random stream; options.device_key takes its place.
/// Options for tiles, ranges and statistics are refused. Errors: see status; nothing is launched
/// for a bad argument.
template <class Architectures = kernel::architectures>
status pack(const plan& p, const_values x, const codebook& book, bytes blob, random_key key,
            cudaStream_t stream, const options& o = {}) {
  if (const status s = detail::check_pack(p, x, book, blob, o); !s) return s;
  if (p.num_elements() == 0) return {};
  return kernel::run_on(stream, o.check_pointers,
                        {{x.data, "x"}, {blob.data, "blob"}, {o.device_key, "options.device_key"}},
                        [&] {
                          return with_type(x.type, [&](auto element) {
                            return detail::launch_pack<Architectures>(
                                p, book, static_cast<const decltype(element)*>(x.data),
                                static_cast<u8*>(blob.data), {key, o.device_key}, stream);
                          });
                        });
}

/// The same with scales that are given, as furl::host::pack with them. In device memory they cannot
/// be checked: one that is negative, an infinity or NaN turns its groups into NaN.
/// scales : device, one f32, or one for each group.
template <class Architectures = kernel::architectures>
status pack(const plan& p, const_values x, const codebook& book, span<const float> scales,
            bytes blob, random_key key, cudaStream_t stream, const options& o = {}) {
  if (const status s = detail::check_scales(p, scales, blob); !s) return s;
  if (const status s = detail::check_pack(p, x, book, blob, o); !s) return s;
  if (p.num_elements() == 0) return {};
  const scale_source source{scales.data, scales.size, detail::largest_level(book)};
  return kernel::run_on(stream, o.check_pointers,
                        {{x.data, "x"},
                         {scales.data, "scales"},
                         {blob.data, "blob"},
                         {o.device_key, "options.device_key"}},
                        [&] {
                          return with_type(x.type, [&](auto element) {
                            return detail::launch_scaled<Architectures>(
                                p, book, source, static_cast<const decltype(element)*>(x.data),
                                static_cast<u8*>(blob.data), {key, o.device_key}, stream);
                          });
                        });
}

/// Writes the level of each code of a blob, on a stream. As furl::host::unpack, with the same
/// values.
/// blob : device, the plan.size_bytes() bytes that pack wrote, aligned to 16 bytes.
/// book : in host memory; the call copies it.
/// y    : device, plan.num_elements() elements of any dtype, aligned to one element; to four, it is
///        fast. All of them are written; disjoint from the blob.
/// Options for tiles, ranges and statistics are refused. Errors: see status; nothing is launched
/// for a bad argument.
template <class Architectures = kernel::architectures>
status unpack(const plan& p, const_bytes blob, const codebook& book, values y, cudaStream_t stream,
              const options& o = {}) {
  if (const status s = detail::check_holds_levels(p); !s) return s;
  if (const status s = detail::check_coded_values(p, y, "y", blob); !s) return s;
  if (const status s = detail::check_device_alignment(p, blob, {{y, "y"}}); !s) return s;
  if (const status s = detail::check_codebook(book, p); !s) return s;
  if (const status s = detail::check_options_without_ranges(p, o, {detail::bytes_of(y, "y")}); !s)
    return s;
  if (p.num_elements() == 0) return {};
  return kernel::run_on(stream, o.check_pointers, {{y.data, "y"}, {blob.data, "blob"}}, [&] {
    return with_type(y.type, [&](auto element) {
      return detail::launch_unpack<Architectures>(p, book, static_cast<const u8*>(blob.data),
                                                  static_cast<decltype(element)*>(y.data), stream);
    });
  });
}

/// Multiplies each element of g by the level of its code, on a stream. As
/// furl::host::unpack_multiply, with the same values: a level of 0 gives +0, whatever g is.
/// blob : device, the plan.size_bytes() bytes that pack wrote, aligned to 16 bytes.
/// book : in host memory; the call copies it.
/// g    : device, plan.num_elements() elements of any dtype, aligned to one element; to four, it is
///        fast.
/// out  : device, as many elements of g's dtype, aligned likewise: g itself, or disjoint from it.
///        Disjoint from the blob.
/// Options for tiles, ranges and statistics are refused. Errors: see status; nothing is launched
/// for a bad argument.
template <class Architectures = kernel::architectures>
status unpack_multiply(const plan& p, const_bytes blob, const codebook& book, const_values g,
                       values out, cudaStream_t stream, const options& o = {}) {
  if (const status s = detail::check_holds_levels(p); !s) return s;
  if (const status s = detail::check_coded_output(p, g, "g", out, "out", blob); !s) return s;
  if (const status s = detail::check_device_alignment(p, blob, {{g, "g"}, {out, "out"}}); !s)
    return s;
  if (const status s = detail::check_codebook(book, p); !s) return s;
  if (const status s = detail::check_options_without_ranges(p, o, {detail::bytes_of(out, "out")});
      !s)
    return s;
  if (p.num_elements() == 0) return {};
  return kernel::run_on(
      stream, o.check_pointers, {{g.data, "g"}, {blob.data, "blob"}, {out.data, "out"}}, [&] {
        return with_type(g.type, [&](auto element) {
          using type = decltype(element);
          return detail::launch_multiply<Architectures>(p, book, const_cast<void*>(blob.data),
                                                        static_cast<const type*>(g.data),
                                                        static_cast<type*>(out.data), stream);
        });
      });
}

}  // namespace furl

FURL_HIDDEN_END

#endif
