// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// FOR CALLERS. Compression in host memory, on the CPU: start here. compress and decompress code the
// elements of a tensor, pack and unpack take codes that exist already, and a stash owns what one of
// them has made. The threads of a pool work on tiles in parallel, with the same bytes for any
// number of threads. Calls for device memory are in compress.cuh.
//
// Only a stash allocates memory, from its allocator. Each call takes less than 64 KiB of stack in
// every thread.

#include <cstring>

#include "furl/config.hpp"
#include "furl/detail/checks.hpp"
#include "furl/detail/host/compress.hpp"
#include "furl/detail/host/decompress.hpp"
#include "furl/detail/host/tile.hpp"
#include "furl/detail/host/work.hpp"
#include "furl/detail/quantize.hpp"
#include "furl/detail/statistics.hpp"
#include "furl/plan.hpp"
#include "furl/thread_pool.hpp"
#include "furl/types.hpp"

FURL_HIDDEN_BEGIN

namespace furl::host {

/// Compresses the tensor x into a blob, as ActNN (Chen et al., ICML 2021): each group of
/// codec.group consecutive elements has its smallest value and a step, and each element a code of
/// codec.bits bits. With codec.window the means of cells are subtracted first and stored too, as
/// DIVISION (Wang et al., ICML 2023). With coding::rotated every 256 elements are rotated at random
/// first, after which they follow a normal law, and have codes of levels made for it and one scale,
/// as EDEN (Vargaftik et al., ICML 2022). The same arguments give the same bytes on every machine
/// and device.
///
/// plan : from plan::make or plan::make_mixed.
/// x    : in host memory: plan.num_elements() elements of f32, f16 or bf16, row-major, at any
///        alignment. It is not changed.
/// blob : in host memory, at any alignment: plan.size_bytes() bytes or more, of which the first
///        plan.size_bytes() are written, padding included. It must not overlap x.
/// key  : of the random stream that stochastic rounding and rotations draw from. Give each
///        compression a new seed or offset. Nearest rounding does not use it.
/// o    : the threads; for a mixed plan the bits of each tile; given ranges or statistics, if any.
///
/// Returns success, or which argument was refused and why; then nothing has been written. Values
/// are never errors: a group that holds a NaN or an infinity decompresses to NaN, and so does a
/// group of finite elements whose range is beyond the largest f32. (With coding::positives only
/// what is above 0 does: a NaN, which is not, becomes 0.)
inline status compress(const plan& plan, const_values x, bytes blob, random_key key,
                       const options& o = {}) {
  if (const status s = furl::detail::check_coded(plan, x, "x", blob); !s) return s;
  if (const status s =
          detail::check_bits_of_tiles(plan, o.tile_bits, {blob.data, plan.size_bytes(), "blob"});
      !s)
    return s;
  if (const status s = detail::check_ranges(plan, o.ranges, blob); !s) return s;
  if (const status s = furl::detail::check_statistics(plan, o.statistics, o.ranges,
                                                      furl::detail::bytes_of(plan, blob));
      !s)
    return s;
  if (plan.num_elements() > 0) detail::compress(plan, x, blob, key, o);
  return {};
}

/// Decompresses a blob into the tensor y. Values beyond the largest finite f16 or bf16 become that
/// one; an f32 takes every value as it is.
///
/// plan : the one that compress had, or an equal one. It must not need a key.
/// blob : in host memory, at any alignment: the plan.size_bytes() bytes that compress wrote, on
///        the host or on a device. Any other bytes give some values, but never touch other memory.
/// y    : in host memory: plan.num_elements() elements of f32, f16 or bf16, whatever type x had, at
///        any alignment. All of them are written. It must not overlap the blob.
/// o    : the threads; for a mixed plan the bits of each tile, as compress had them; with the
///        statistics that compress had, elements are restored, without them normalised ones. Given
///        ranges are refused: the blob has them in it.
///
/// Returns success, or which argument was refused and why; then nothing has been written.
inline status decompress(const plan& plan, const_bytes blob, values y, const options& o = {}) {
  if (const status s = furl::detail::check_needs_no_key(plan); !s) return s;
  return detail::decompress_to<detail::output::replace>(plan, blob, y, {}, o);
}

/// The same for any plan: one with rotated or dithered codes needs the key that compress had, and
/// the call without it refuses such a plan. Any other key gives values that have little to do with
/// what was compressed. Plans of other codecs do not use it.
inline status decompress(const plan& plan, const_bytes blob, values y, random_key key,
                         const options& o = {}) {
  return detail::decompress_to<detail::output::replace>(plan, blob, y, key, o);
}

/// Adds the decompressed values of a blob to the tensor y, as gradients are accumulated: each sum
/// is made in f32 and rounded once to y's type. An overflow becomes an infinity, for loss scalers
/// to find.
///
/// plan : the one that compress had, or an equal one. It must not need a key.
/// blob : in host memory, at any alignment: the plan.size_bytes() bytes that compress wrote.
/// y    : in host memory: plan.num_elements() elements of f32, f16 or bf16, at any alignment. All
///        of them are read and written. It must not overlap the blob.
/// o    : as for decompress.
///
/// Returns success, or which argument was refused and why; then nothing has been written.
inline status decompress_add(const plan& plan, const_bytes blob, values y, const options& o = {}) {
  if (const status s = furl::detail::check_needs_no_key(plan); !s) return s;
  return detail::decompress_to<detail::output::accumulate>(plan, blob, y, {}, o);
}

/// The same for any plan, with the key that compress had, as for decompress.
inline status decompress_add(const plan& plan, const_bytes blob, values y, random_key key,
                             const options& o = {}) {
  return detail::decompress_to<detail::output::accumulate>(plan, blob, y, key, o);
}

/// Packs masks or small integers, one per byte, into codes of the plan's bits. Exact; the higher
/// bits of a byte are dropped.
///
/// plan  : from plan::make_codes.
/// codes : in host memory: plan.num_elements() bytes. They are not changed.
/// blob  : in host memory, at any alignment: plan.size_bytes() bytes or more, of which the first
///         plan.size_bytes() are written. It must not overlap the codes.
/// pool  : the threads, or null for the calling thread alone.
///
/// Returns success, or which argument was refused and why; then nothing has been written.
inline status pack(const plan& plan, const_bytes codes, bytes blob, thread_pool* pool = nullptr) {
  if (const status s = furl::detail::check_codes_call(plan, codes, blob); !s) return s;
  detail::for_each_unit(plan.num_tiles(), pool, [&](i64 tile) {
    const int count = detail::elements_in_tile(plan, tile);
    detail::tile_bytes bytes_of_tile{};
    ::std::memcpy(bytes_of_tile.word, static_cast<const u8*>(codes.data) + tile * tile_elements,
                  static_cast<::std::size_t>(count));
    for (u32& word : bytes_of_tile.word) word &= in_each_byte(low_bits(plan.codec().bits));
    detail::store_tile(plan, tile, bytes_of_tile, blob);
  });
  return {};
}

/// Unpacks the codes that pack wrote, one per byte.
///
/// plan  : the one that pack had, or an equal one.
/// blob  : in host memory, at any alignment: plan.size_bytes() bytes, from pack on the host or
///         on a device, or from another call that writes codes.
/// codes : in host memory: plan.num_elements() bytes, all of which are written. They must not
///         overlap the blob.
/// pool  : the threads, or null for the calling thread alone.
///
/// Returns success, or which argument was refused and why; then nothing has been written.
inline status unpack(const plan& plan, const_bytes blob, bytes codes, thread_pool* pool = nullptr) {
  if (const status s = furl::detail::check_codes_call(plan, codes, blob); !s) return s;
  detail::for_each_unit(plan.num_tiles(), pool, [&](i64 tile) {
    detail::tile_bytes bytes_of_tile;
    detail::load_tile(plan, tile, blob, bytes_of_tile);
    ::std::memcpy(static_cast<u8*>(codes.data) + tile * tile_elements, bytes_of_tile.word,
                  static_cast<::std::size_t>(detail::elements_in_tile(plan, tile)));
  });
  return {};
}

}  // namespace furl::host

FURL_HIDDEN_END

#include "furl/stash.hpp"
