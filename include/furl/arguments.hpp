// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checks that the entry points for host and for device memory share, made before anything is
// written or launched. They read no array.

#include "furl/config.hpp"
#include "furl/given_ranges.hpp"
#include "furl/plan.hpp"
#include "furl/status.hpp"
#include "furl/view.hpp"

#if !defined(__CUDACC_RTC__)
#include <cstdint>

FURL_HIDDEN_BEGIN

namespace furl::detail {

inline bool overlap(const void* a, u64 a_bytes, const void* b, u64 b_bytes) {
  const auto a_begin = reinterpret_cast<std::uintptr_t>(a);
  const auto b_begin = reinterpret_cast<std::uintptr_t>(b);
  return a_begin < b_begin + b_bytes && b_begin < a_begin + a_bytes;
}

inline status check_kind(const plan& p, bool codes) {
  if ((p.kind() == plan_kind::codes) == codes) return {};
  return {error::wrong_plan, "plan", 0,
          codes ? "must come from plan::make_codes" : "must not come from plan::make_codes"};
}

inline status check_elements(const plan& p, const void* data, i64 num_elements, dtype type,
                             const char* argument) {
  if (num_elements != p.num_elements())
    return {error::wrong_size, argument, num_elements,
            "must have as many elements as the plan's shape"};
  if (type != dtype::f32 && type != dtype::f16 && type != dtype::bf16)
    return {error::out_of_range, argument, i64(type), "dtype must be f32, f16 or bf16"};
  if (data == nullptr && num_elements > 0)
    return {error::null_pointer, argument, 0, "must not be null"};
  return {};
}

inline status check_blob(const plan& p, const void* data, u64 num_bytes) {
  if (p.size_bytes() == 0) return {};
  if (num_bytes < p.size_bytes())
    return {error::wrong_size, "blob", i64(num_bytes),
            "must have at least plan.size_bytes() bytes"};
  if (data == nullptr) return {error::null_pointer, "blob", 0, "must not be null"};
  if (reinterpret_cast<std::uintptr_t>(data) % blob_alignment != 0)
    return {error::misaligned, "blob", 0, "must be aligned to 16 bytes"};
  return {};
}

inline status check_apart(const plan& p, const void* blob, const void* other, u64 other_bytes,
                          const char* argument) {
  if (p.num_elements() > 0 && overlap(blob, p.size_bytes(), other, other_bytes))
    return {error::overlap, argument, 0, "must not overlap the blob"};
  return {};
}

/// An array of `count` elements, at their alignment.
template <class T>
status check_array(span<T> array, i64 count, const char* argument, const char* count_limit) {
  if (array.size != count) return {error::wrong_size, argument, array.size, count_limit};
  if (array.data == nullptr && count > 0)
    return {error::null_pointer, argument, 0, "must not be null"};
  if (reinterpret_cast<std::uintptr_t>(array.data) % alignof(T) != 0)
    return {error::misaligned, argument, 0, "must be aligned to its elements"};
  return {};
}

/// A width per tile goes with a mixed plan, and only with that.
inline status check_widths_array(const plan& p, const_bytes widths) {
  if (p.kind() != plan_kind::mixed) {
    if (widths.data == nullptr && widths.size_bytes == 0) return {};
    return {error::wrong_plan, "options.widths", 0, "go with a plan from plan::make_mixed only"};
  }
  if (widths.size_bytes != u64(p.num_tiles()))
    return {error::wrong_size, "options.widths", i64(widths.size_bytes),
            "must have one byte per tile of 1024 elements"};
  if (widths.data == nullptr && widths.size_bytes > 0)
    return {error::null_pointer, "options.widths", 0, "must not be null"};
  return {};
}

/// A pair for every element, at its place.
inline status check_given_ranges(const plan& p, const given_ranges& given) {
  if (given.scope == range_scope::measured) return {};
  const bool of_channels = given.scope == range_scope::channel;
  if (of_channels && (given.dimension < 0 || given.dimension >= p.shape().rank))
    return {error::out_of_range, "options.ranges.dimension", given.dimension,
            "must be a dimension of the shape"};
  if (p.num_elements() == 0) return {};
  const i64 pairs = of_channels                         ? p.shape()[given.dimension]
                    : given.scope == range_scope::group ? p.num_groups()
                                                        : 1;
  if (given.num_pairs != pairs)
    return {error::wrong_size, "options.ranges", given.num_pairs,
            "must be one pair, one per channel, or one per group"};
  return check_array<const float>({given.pairs, 2 * pairs}, 2 * pairs, "options.ranges", "");
}

/// The checks that pack and unpack share.
inline status check_codes_call(const plan& p, const_bytes codes, const_bytes blob) {
  if (const status s = check_kind(p, true); !s) return s;
  if (codes.size_bytes != u64(p.num_elements()))
    return {error::wrong_size, "codes", i64(codes.size_bytes), "must have one byte per element"};
  if (codes.data == nullptr && codes.size_bytes > 0)
    return {error::null_pointer, "codes", 0, "must not be null"};
  if (const status s = check_blob(p, blob.data, blob.size_bytes); !s) return s;
  return check_apart(p, blob.data, codes.data, codes.size_bytes, "codes");
}

}  // namespace furl::detail

FURL_HIDDEN_END

#endif
