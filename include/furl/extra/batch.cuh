// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Many tensors in one call and few launches, such as the small ones that a step of a transformer
// saves. extra/batch.hpp has the entries, and the same calls for host memory.
//
// A launch takes up to 126 tensors of a kind: of one dtype, and with or without rotated codes; for
// decompression, with or without dithered ones too. So 100 tensors of one kind take one launch, and
// empty ones none. The kernels get the entries as parameters: calls need no memory of the device,
// can be captured, and the array of entries can be changed when they return.

#include "furl/config.hpp"
#include "furl/detail/device/launch.cuh"
#include "furl/detail/extra/batch.cuh"

#if !defined(__CUDACC_RTC__)
#include "furl/detail/checks.hpp"
#include "furl/detail/number.hpp"
#include "furl/extra/batch.hpp"
#include "furl/plan.hpp"
#include "furl/types.hpp"

FURL_HIDDEN_BEGIN

namespace furl {
namespace detail {

inline named_bytes output_of(const compress_entry& e) {
  return bytes_of(*e.plan, e.blob);
}
inline named_bytes output_of(const decompress_entry& e) {
  return bytes_of(e.y, "y");
}

/// Refuses arrays that the current device cannot reach, and says in `entry` whose.
template <class Entry>
status check_reachable(span<const Entry> batch, i64& entry) {
  int device = -1;
  if (const status s = kernel::cuda_status(cudaGetDevice(&device), "stream"); !s) return s;
  for (entry = 0; entry < batch.size; ++entry) {
    const Entry& e = batch.data[entry];
    if (e.plan->num_elements() == 0) continue;
    const named_values x = elements_of(e);
    for (const kernel::device_argument& argument :
         {kernel::device_argument{x.array.data, x.name}, {e.blob.data, "blob"}})
      if (const status s = kernel::check_reachable(argument, device); !s) return s;
  }
  entry = -1;
  return {};
}

/// Checks a batch, and makes its launches: launches(element) for every type of elements.
template <class Entry, class Launches>
batch_status run_batch(span<const Entry> batch, cudaStream_t stream, const options& o,
                       const Launches& launches) {
  if (const status s = check_options_without_ranges(plan{}, o, {named_bytes{}}); !s) return {s};
  bool is_empty = true;
  const batch_status checked = check_batch(batch, [&](const Entry& e) -> status {
    is_empty = is_empty && e.plan->num_elements() == 0;
    if (const status s = check_device_alignment(*e.plan, e.blob, {elements_of(e)}); !s) return s;
    return check_options(plan{}, o, output_of(e));
  });
  if (!checked || is_empty) return checked;
  i64 entry = -1;
  const status s = kernel::run_on(
      stream, o.check_pointers, {{o.device_key, "options.device_key"}}, [&]() -> status {
        if (o.check_pointers)
          if (const status reachable = check_reachable(batch, entry); !reachable) return reachable;
        for (const dtype type : {dtype::f32, dtype::f16, dtype::bf16})
          if (const status launched = with_type(type, launches); !launched) return launched;
        return {};
      });
  return {s, entry};
}

}  // namespace detail

/// Compresses many tensors, on a stream, in one launch for every 126 of a dtype, with or without
/// rotated codes. As furl::host::compress_batch, with the same bytes.
/// batch : the entries, in host memory, which the call copies. Their arrays are in device memory, x
///         aligned to one element; to four, it is fast. What an entry writes must not overlap
///         another's arrays, which is not checked. None, and empty tensors, are fine.
/// key   : of the random streams, to whose offset each key_offset is added. Give each call new
///         ones. options.device_key takes its place, as for compress.
/// Options for tiles, ranges and statistics are refused. Errors: see batch_status, which has the
/// index of the entry; nothing is launched for a bad argument.
template <class Architectures = kernel::architectures>
batch_status compress_batch(host::span<const compress_entry> batch, random_key key,
                            cudaStream_t stream, const options& o = {}) {
  return detail::run_batch<compress_entry>(batch, stream, o, [&](auto element) -> status {
    using type = decltype(element);
    const auto launch_kind = [&](auto kernel, bool rotated) -> status {
      return kernel::launch_batches<type, compress_entry>(
          batch, [rotated](const plan& p) { return p.is_rotated() == rotated; }, kernel,
          {key, o.device_key}, stream);
    };
    const status s = launch_kind(kernel::compress_batch<type, false, Architectures>, false);
    return s ? launch_kind(kernel::compress_batch<type, true, Architectures>, true) : s;
  });
}

/// Decompresses many blobs, on a stream, in one launch for every 126 of a dtype of y, with rotated,
/// dithered or other codes. As furl::host::decompress_batch, with the same values.
/// batch : the entries, in host memory, which the call copies. Their arrays are in device memory, y
///         aligned to one element; to four, it is fast. What an entry writes must not overlap
///         another's arrays, which is not checked. None, and empty tensors, are fine.
/// key   : what the compression had, for plans that need it. options.device_key takes its place.
/// Options for tiles, ranges and statistics are refused. Errors: see batch_status, which has the
/// index of the entry; nothing is launched for a bad argument.
template <class Architectures = kernel::architectures>
batch_status decompress_batch(host::span<const decompress_entry> batch, random_key key,
                              cudaStream_t stream, const options& o = {}) {
  return detail::run_batch<decompress_entry>(batch, stream, o, [&](auto element) -> status {
    using type = decltype(element);
    const auto launch_kind = [&](auto kernel, kernel::decoding how) -> status {
      return kernel::launch_batches<type, decompress_entry>(
          batch, [how](const plan& p) { return kernel::decoding_of(p) == how; }, kernel,
          {key, o.device_key}, stream);
    };
    using kernel::decoding;
    status s = launch_kind(kernel::decompress_batch<type, decoding::plain, Architectures>,
                           decoding::plain);
    if (s)
      s = launch_kind(kernel::decompress_batch<type, decoding::dithered, Architectures>,
                      decoding::dithered);
    if (s)
      s = launch_kind(kernel::decompress_batch<type, decoding::rotated, Architectures>,
                      decoding::rotated);
    return s;
  });
}

}  // namespace furl

FURL_HIDDEN_END

#endif
