// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Compression in device memory, for callers: start here. compress.hpp has the same calls for host
// memory, and documents each in full. detail/device/kernels.cuh and the headers beside
// it whose names end in kernels.cuh have what is launched.
//
// All calls work on the stream that they are given, which may be one that is being captured, and
// wait for nothing. Only a stash allocates memory, from its allocator. Arguments are checked before
// the first launch: a call that is refused has written nothing. Where the runtime refuses a launch
// (error::cuda), launches before it may have written. The stream's device need not be the current
// one if toolkit and driver are of CUDA 12.8 or later; before that it must be.

#include "furl/config.hpp"
#include "furl/detail/checks.hpp"
#include "furl/detail/device/decompress_kernels.cuh"
#include "furl/detail/device/kernels.cuh"
#include "furl/detail/device/launch.cuh"
#include "furl/detail/device/lines_kernels.cuh"
#include "furl/detail/device/positives_kernels.cuh"
#include "furl/detail/device/rotated_kernels.cuh"
#include "furl/detail/device/statistics_kernels.cuh"
#include "furl/detail/number.hpp"
#include "furl/detail/statistics.hpp"
#include "furl/plan.hpp"
#include "furl/types.hpp"

#if !defined(__CUDACC_RTC__)

namespace furl {

FURL_HIDDEN_BEGIN

namespace detail {

template <class Architectures, kernel::output Output>
status decompress_to(const plan& p, const_bytes blob, values y, random_key key, cudaStream_t stream,
                     const options& o) {
  if (const status s = check_coded(p, y, "y", blob); !s) return s;
  if (const status s = check_device_alignment(p, blob, {{y, "y"}}); !s) return s;
  if (const status s = check_no_ranges(o.ranges); !s) return s;
  if (const status s = check_statistics(p, o.statistics, o.ranges, bytes_of(y, "y")); !s) return s;
  if (const status s = check_options(p, o, bytes_of(y, "y")); !s) return s;
  if (p.num_elements() == 0) return {};
  return kernel::run_on(stream, o.check_pointers,
                        {{y.data, "y"},
                         {blob.data, "blob"},
                         {o.device_key, "options.device_key"},
                         {o.statistics.mean, "options.statistics.mean"},
                         {o.statistics.inverse_deviation, "options.statistics.inverse_deviation"},
                         {o.tile_bits.data, "options.tile_bits"},
                         {o.tile_index.data, "options.tile_index"}},
                        [&] {
                          return with_type(y.type, [&](auto element) {
                            const auto* const in = static_cast<const u8*>(blob.data);
                            auto* const out = static_cast<decltype(element)*>(y.data);
                            if (p.fills_lines())
                              return kernel::launch_decompress_lines<Architectures, Output>(
                                  p, o, in, out, key, stream);
                            if (o.statistics.are_given())
                              return kernel::launch_decompress_normalised<Architectures, Output>(
                                  p, o, in, out, key, stream);
                            if (p.has_mask())
                              return kernel::launch_decompress_positives<Architectures, Output>(
                                  p, o, in, out, key, stream);
                            if (p.is_rotated())
                              return kernel::launch_decompress_rotated<Architectures, Output>(
                                  p, o, in, out, key, stream);
                            return kernel::launch_decompress<Architectures, Output>(p, o, in, out,
                                                                                    key, stream);
                          });
                        });
}

}  // namespace detail

/// Compresses x into blob, on a stream. As furl::host::compress, with the same bytes.
/// x    : device, plan.num_elements() elements of any dtype, aligned to one element; to four, it is
///        fast.
/// blob : device, plan.size_bytes() bytes or more, of which the first plan.size_bytes() are
///        written, padding included; aligned to 16 bytes; disjoint from x.
/// key  : of the random stream; each compression needs a new one. Nearest rounding does not use it.
/// Errors: see status; nothing is launched for a bad argument.
template <class Architectures = kernel::architectures>
status compress(const plan& p, const_values x, bytes blob, random_key key, cudaStream_t stream,
                const options& o = {}) {
  if (const status s = detail::check_coded(p, x, "x", blob); !s) return s;
  if (const status s = detail::check_device_alignment(p, blob, {{x, "x"}}); !s) return s;
  if (const status s = detail::check_given_ranges(p, o.ranges); !s) return s;
  const detail::named_bytes output = detail::bytes_of(p, blob);
  if (const status s = detail::check_statistics(p, o.statistics, o.ranges, output); !s) return s;
  if (const status s = detail::check_options(p, o, output); !s) return s;
  if (p.num_elements() == 0) return {};
  return kernel::run_on(
      stream, o.check_pointers,
      {{x.data, "x"},
       {blob.data, "blob"},
       {o.device_key, "options.device_key"},
       {o.ranges.pairs, "options.ranges"},
       {o.statistics.mean, "options.statistics.mean"},
       {o.statistics.inverse_deviation, "options.statistics.inverse_deviation"},
       {o.tile_bits.data, "options.tile_bits"},
       {o.tile_index.data, "options.tile_index"}},
      [&] {
        return with_type(x.type, [&](auto element) {
          using type = decltype(element);
          const auto* const in = static_cast<const type*>(x.data);
          auto* const out = static_cast<u8*>(blob.data);
          if (p.fills_lines())
            return kernel::launch_compress_lines<Architectures>(p, o, in, out, key, stream);
          if (o.statistics.are_given())
            return kernel::launch_compress_normalised<Architectures>(p, o, in, out, key, stream);
          if (p.has_mask())
            return kernel::launch_compress_positives<Architectures>(
                p, o, in, static_cast<type*>(nullptr), out, key, stream);
          if (p.is_rotated())
            return kernel::launch_compress_rotated<Architectures>(p, o, in, out, key, stream);
          return kernel::launch_compress<Architectures>(p, o, in, out, key, stream);
        });
      });
}

/// Decompresses blob into y, on a stream. As furl::host::decompress, with the same values.
/// blob : device, the plan.size_bytes() bytes that compress wrote; aligned to 16 bytes.
/// y    : device, plan.num_elements() elements of any dtype, whatever x had, aligned to one
///        element; to four, it is fast. All of them are written; disjoint from the blob.
/// Errors: see status; nothing is launched for a bad argument.
template <class Architectures = kernel::architectures>
status decompress(const plan& p, const_bytes blob, values y, cudaStream_t stream,
                  const options& o = {}) {
  if (const status s = detail::check_needs_no_key(p); !s) return s;
  return detail::decompress_to<Architectures, kernel::output::replace>(p, blob, y, {}, stream, o);
}

/// The same for any plan: one with rotated or dithered codes needs the key that compress had.
/// options.device_key takes its place, as for compress.
template <class Architectures = kernel::architectures>
status decompress(const plan& p, const_bytes blob, values y, random_key key, cudaStream_t stream,
                  const options& o = {}) {
  return detail::decompress_to<Architectures, kernel::output::replace>(p, blob, y, key, stream, o);
}

/// Adds the decompressed values to y, on a stream, in f32, and rounds each sum once to y's type: an
/// overflow becomes infinity, for loss scalers to find. As furl::host::decompress_add.
/// blob, y : as for decompress. Errors: see status; nothing is launched for a bad argument.
template <class Architectures = kernel::architectures>
status decompress_add(const plan& p, const_bytes blob, values y, cudaStream_t stream,
                      const options& o = {}) {
  if (const status s = detail::check_needs_no_key(p); !s) return s;
  return detail::decompress_to<Architectures, kernel::output::accumulate>(p, blob, y, {}, stream,
                                                                          o);
}

/// The same for any plan, with the key that compress had, as for decompress.
template <class Architectures = kernel::architectures>
status decompress_add(const plan& p, const_bytes blob, values y, random_key key,
                      cudaStream_t stream, const options& o = {}) {
  return detail::decompress_to<Architectures, kernel::output::accumulate>(p, blob, y, key, stream,
                                                                          o);
}

/// Packs one code per byte into codes of the plan's bits, on a stream; higher bits of a byte are
/// dropped. As furl::host::pack.
/// p     : from plan::make_codes.
/// codes : device, plan.num_elements() bytes; aligned to 4, it is fast.
/// blob  : device, plan.size_bytes() bytes or more; aligned to 16 bytes; disjoint from codes.
/// Errors: see status; nothing is launched for a bad argument.
template <class Architectures = kernel::architectures>
status pack(const plan& p, const_bytes codes, bytes blob, cudaStream_t stream,
            const options& o = {}) {
  return kernel::run_codes(p, codes, blob, {blob.data, p.size_bytes(), "blob"}, stream, o, [&] {
    return kernel::launch(kernel::pack<Architectures>, {kernel::blocks_for(p.num_tiles())}, stream,
                          blob_layout(p), static_cast<const u8*>(codes.data),
                          static_cast<u8*>(blob.data));
  });
}

/// The inverse of pack: one code per byte, on a stream. As furl::host::unpack.
/// blob  : device, the plan.size_bytes() bytes that pack wrote; aligned to 16 bytes.
/// codes : device, plan.num_elements() bytes, all of them written; disjoint from the blob.
/// Errors: see status; nothing is launched for a bad argument.
template <class Architectures = kernel::architectures>
status unpack(const plan& p, const_bytes blob, bytes codes, cudaStream_t stream,
              const options& o = {}) {
  return kernel::run_codes(p, codes, blob, {codes.data, codes.size_bytes, "codes"}, stream, o, [&] {
    return kernel::launch(kernel::unpack<Architectures>, {kernel::blocks_for(p.num_tiles())},
                          stream, blob_layout(p), static_cast<const u8*>(blob.data),
                          static_cast<u8*>(codes.data));
  });
}

}  // namespace furl

FURL_HIDDEN_END

#include "furl/stash.cuh"

#endif
