// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Many tensors in one call, such as the small ones that a step of a transformer saves: each becomes
// the blob that compress would make of it alone. Calls for host memory; extra/batch.cuh has them
// for device memory, where they spare launches.

#include "furl/config.hpp"
#include "furl/types.hpp"

#if !defined(__CUDACC_RTC__)
#include <algorithm>
#include <string>
#include <type_traits>

#include "furl/detail/checks.hpp"
#include "furl/detail/host/compress.hpp"
#include "furl/detail/host/decompress.hpp"
#include "furl/detail/host/work.hpp"
#include "furl/plan.hpp"
#include "furl/thread_pool.hpp"

namespace furl {
inline namespace v0_2 {

/// A tensor that compress_batch compresses. In device memory its blob is aligned to 16 bytes.
struct compress_entry {
  /// In host memory, and may be that of other entries too: made by plan::make without a window, for
  /// fewer than 2^41 elements; not for coding::positives, nor where codec.by_lines fills lines.
  const furl::plan* plan = nullptr;
  const_values x;      // plan->num_elements() elements of any dtype
  bytes blob;          // plan->size_bytes() bytes or more, disjoint from all else
  u64 key_offset = 0;  // added to the offset of the key: each entry needs one of its own
};

/// A tensor that decompress_batch restores.
struct decompress_entry {
  const furl::plan* plan = nullptr;  // what the compression had, in host memory
  const_bytes blob;                  // the plan->size_bytes() bytes that it wrote
  values y;            // plan->num_elements() elements of any dtype; disjoint from all else
  u64 key_offset = 0;  // what the compression had; only plan->needs_key() uses it
};

/// The outcome of a call for a batch: a status, and the entry that it is about.
struct [[nodiscard]] batch_status : status {
  i64 entry = -1;  // index in the batch; -1 without an error, or where it is of no entry alone
};

}  // namespace v0_2

/// One line, e.g. "entry 17: blob: must not be null". (A template, so that braces make a
/// status, as they do without this header.)
template <class Made, class = ::std::enable_if_t<::std::is_same_v<Made, batch_status>>>
FURL_HIDDEN ::std::string to_string(const Made& s) {
  const ::std::string line = to_string(static_cast<const status&>(s));
  return s.entry < 0 ? line : "entry " + ::std::to_string(s.entry) + ": " + line;
}

}  // namespace furl

FURL_HIDDEN_BEGIN

namespace furl::detail {

inline constexpr i64 max_batched_elements = i64(1) << 41;

/// The elements of an entry.
inline named_values elements_of(const compress_entry& e) {
  return {e.x, "x"};
}
inline named_values elements_of(const decompress_entry& e) {
  return {e.y, "y"};
}

template <class Entry>
status check_entry(const Entry& e) {
  if (const status s = check_not_null(e.plan, true, "plan"); !s) return s;
  const plan& p = *e.plan;
  if (p.kind() != plan_kind::uniform || p.has_lfc() || p.has_mask() || p.fills_lines())
    return {error::wrong_plan, "plan", 0,
            "must come from plan::make, without a window, positives or filled lines"};
  if (p.num_elements() >= max_batched_elements)
    return {error::out_of_range, "plan", p.num_elements(), "must have fewer than 2^41 elements"};
  return check_coded(p, elements_of(e).array, elements_of(e).name, e.blob);
}

/// All checks of a batch: also(entry) makes those that depend on the memory.
template <class Entry, class Check>
batch_status check_batch(span<const Entry> batch, const Check& also) {
  if (batch.size < 0) return {{error::wrong_size, "batch", batch.size, "must not be negative"}};
  if (const status s = check_not_null(batch.data, batch.size > 0, "batch"); !s) return {s};
  for (i64 i = 0; i < batch.size; ++i) {
    if (const status s = check_entry(batch.data[i]); !s) return {s, i};
    if (const status s = also(batch.data[i]); !s) return {s, i};
  }
  return {};
}

/// The key of an entry.
inline random_key key_of_entry(const random_key& key, u64 key_offset) {
  return {key.seed, key.offset + key_offset};
}

}  // namespace furl::detail

namespace furl::host {
namespace detail {

struct no_scratch {};

/// Calls function(entry, first, last, scratch) for tiles first..last - 1 of tensors, so that
/// together the threads have every tile of each. Each has scratch of its own.
template <class Scratch, class Entry, class Function>
void for_each_part(furl::span<const Entry> batch, thread_pool* pool, const Function& function) {
  i64 num_tiles = 0;
  for (i64 i = 0; i < batch.size; ++i) num_tiles += batch.data[i].plan->num_tiles();
  compute_shares(num_tiles, pool, [&](i64 first, i64 last) {
    Scratch scratch{};
    i64 begin = 0;  // of a tensor
    for (i64 i = 0; i < batch.size && begin < last; ++i) {
      const Entry& entry = batch.data[i];
      const i64 end = begin + entry.plan->num_tiles();
      const i64 from = (::std::max)(first, begin);
      const i64 to = (::std::min)(last, end);
      if (from < to) function(entry, from - begin, to - begin, scratch);
      begin = end;
    }
  });
}

template <class Entry>
batch_status check_batch(furl::span<const Entry> batch) {
  return furl::detail::check_batch(batch, [](const Entry&) -> status { return {}; });
}

}  // namespace detail

/// Compresses many tensors: each entry gets the bytes that compress writes for it with the key
/// {key.seed, key.offset + key_offset}. Shapes, dtypes and codecs may differ.
///
/// batch : the entries, with arrays in host memory, x at any alignment. What an entry writes must
///         not overlap another's arrays, which is not checked. None, and empty tensors, are fine.
/// key   : of the random streams. Give each call new ones: count its offset up by more than the
///         largest key_offset. Nearest rounding does not use it.
/// pool  : the threads, which share the tiles of all tensors, or null for the calling thread alone.
///
/// Returns success, or which entry and argument was refused and why; then nothing has been written.
inline batch_status compress_batch(span<const compress_entry> batch, random_key key,
                                   thread_pool* pool = nullptr) {
  if (const batch_status s = detail::check_batch<compress_entry>(batch); !s) return s;
  detail::for_each_part<detail::tile_scratch, compress_entry>(
      batch, pool,
      [&](const compress_entry& e, i64 first, i64 last, detail::tile_scratch& scratch) {
        const plan& p = *e.plan;
        detail::compressor tiles(p, e.x, e.blob, furl::detail::key_of_entry(key, e.key_offset), {},
                                 scratch);
        with_type(e.x.type, [&](auto element) {
          for (i64 tile = first; tile < last; ++tile) tiles.compress_tile<decltype(element)>(tile);
        });
        u8* const base = static_cast<u8*>(e.blob.data);
        if (first == 0) ::std::fill(base + p.meta_end(), base + p.size_bytes(), u8(0));
      });
  return {};
}

/// Decompresses many blobs: each entry gets the values that decompress writes for it, with the key
/// {key.seed, key.offset + key_offset} if its plan needs one.
///
/// batch : the entries, with arrays in host memory, y at any alignment. What an entry writes must
///         not overlap another's arrays, which is not checked. None, and empty tensors, are fine.
/// key   : what the compression had. Only plans with rotated or dithered codes use it.
/// pool  : the threads, which share the tiles of all tensors, or null for the calling thread alone.
///
/// Returns success, or which entry and argument was refused and why; then nothing has been written.
inline batch_status decompress_batch(span<const decompress_entry> batch, random_key key,
                                     thread_pool* pool = nullptr) {
  if (const batch_status s = detail::check_batch<decompress_entry>(batch); !s) return s;
  detail::for_each_part<detail::no_scratch, decompress_entry>(
      batch, pool, [&](const decompress_entry& e, i64 first, i64 last, detail::no_scratch) {
        with_type(e.y.type, [&](auto element) {
          detail::decompressor<decltype(element), detail::output::replace> tiles(
              *e.plan, static_cast<const u8*>(e.blob.data), static_cast<u8*>(e.y.data),
              furl::detail::key_of_entry(key, e.key_offset), {});
          for (i64 tile = first; tile < last; ++tile) tiles.decompress_tile(tile);
        });
      });
  return {};
}

}  // namespace furl::host

FURL_HIDDEN_END

#endif
