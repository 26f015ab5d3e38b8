// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Every check of the arguments of a call, for host and for device memory, made before anything is
// written or launched. They read no array.

#include "furl/config.hpp"
#include "furl/plan.hpp"
#include "furl/types.hpp"

#if !defined(__CUDACC_RTC__)
#include <cstdint>
#include <initializer_list>
#endif

#if !defined(__CUDACC_RTC__)

FURL_HIDDEN_BEGIN

namespace furl::detail {

/// An array of bytes by the name of its argument.
struct named_bytes {
  const void* data;
  u64 size_bytes;
  const char* name;
};

/// Likewise one of elements.
struct named_values {
  const_values array;
  const char* name;
};

inline constexpr const char* apart_from_outputs = "must not overlap what the call writes";

inline bool overlap(const void* a, u64 a_bytes, const void* b, u64 b_bytes) {
  const auto a_begin = reinterpret_cast<::std::uintptr_t>(a);
  const auto b_begin = reinterpret_cast<::std::uintptr_t>(b);
  return a_begin < b_begin + b_bytes && b_begin < a_begin + a_bytes;
}

/// An output that is disjoint from every input. Empty arrays are disjoint from all others.
inline status check_apart(const named_bytes& output, ::std::initializer_list<named_bytes> inputs,
                          const char* limit) {
  for (const named_bytes& input : inputs)
    if (output.size_bytes > 0 && input.size_bytes > 0 &&
        overlap(output.data, output.size_bytes, input.data, input.size_bytes))
      return {error::overlap, input.name, 0, limit};
  return {};
}

inline status check_not_null(const void* pointer, bool needed, const char* argument) {
  if (pointer != nullptr || !needed) return {};
  return {error::null_pointer, argument, 0, "must not be null"};
}

inline status check_alignment(const void* pointer, u64 alignment, const char* argument,
                              const char* limit) {
  if (reinterpret_cast<::std::uintptr_t>(pointer) % alignment == 0) return {};
  return {error::misaligned, argument, 0, limit};
}

inline status check_kind(const plan& p, bool codes) {
  const bool of_codec = p.kind() == plan_kind::uniform || p.kind() == plan_kind::mixed;
  if (codes ? p.kind() == plan_kind::codes : of_codec) return {};
  return {error::wrong_plan, "plan", 0,
          codes ? "must come from plan::make_codes" : "must come from plan::make or make_mixed"};
}

/// Of a call that decodes without a key.
inline status check_needs_no_key(const plan& p) {
  if (!p.needs_key()) return {};
  return {error::wrong_plan, "plan", 0, "needs the key that compress had"};
}

/// Of a call that knows nothing of filled lines.
inline status check_fills_no_lines(const plan& p) {
  if (!p.fills_lines()) return {};
  return {error::wrong_plan, "plan", 0, "must not fill lines up to whole groups (codec.by_lines)"};
}

/// Of a call that is about the ranges of groups.
inline status check_has_ranges(const plan& p) {
  if (!p.is_rotated()) return check_fills_no_lines(p);
  return {error::wrong_plan, "plan", 0, "has rotated codes, which have no ranges"};
}

inline status check_type(dtype type, const char* argument) {
  if (type == dtype::f32 || type == dtype::f16 || type == dtype::bf16) return {};
  return {error::out_of_range, argument, i64(type), "dtype must be f32, f16 or bf16"};
}

/// The elements of a plan's tensor.
inline status check_elements(const plan& p, const_values array, const char* argument) {
  if (array.num_elements != p.num_elements())
    return {error::wrong_size, argument, array.num_elements,
            "must have as many elements as the plan's shape"};
  if (const status s = check_type(array.type, argument); !s) return s;
  return check_not_null(array.data, array.num_elements > 0, argument);
}

inline status check_blob(const plan& p, const_bytes blob) {
  if (p.size_bytes() == 0) return {};
  if (blob.size_bytes < p.size_bytes())
    return {error::wrong_size, "blob", i64(blob.size_bytes),
            "must have at least plan.size_bytes() bytes"};
  return check_not_null(blob.data, true, "blob");
}

/// For device memory, where elements are loaded as what they are, and a blob in words of 16 bytes.
inline status check_device_alignment(const plan& p, const_bytes blob,
                                     ::std::initializer_list<named_values> arrays) {
  for (const auto& [array, argument] : arrays)
    if (const status s = check_alignment(array.data, u64(size_bytes(array.type)), argument,
                                         "must be aligned to its elements");
        !s)
      return s;
  if (p.size_bytes() == 0) return {};
  return check_alignment(blob.data, blob_alignment, "blob", "must be aligned to 16 bytes");
}

/// An array of `count` elements, at their alignment.
template <class T>
status check_array(span<T> array, i64 count, const char* argument, const char* count_limit) {
  if (array.size != count) return {error::wrong_size, argument, array.size, count_limit};
  if (const status s = check_not_null(array.data, count > 0, argument); !s) return s;
  return check_alignment(array.data, alignof(T), argument, "must be aligned to its elements");
}

/// Bits for each tile go with a mixed plan, and only with that.
inline status check_tile_bits(const plan& p, const_bytes tile_bits) {
  if (p.kind() != plan_kind::mixed) {
    if (tile_bits.data == nullptr && tile_bits.size_bytes == 0) return {};
    return {error::wrong_plan, "options.tile_bits", 0, "go with a plan from plan::make_mixed only"};
  }
  if (tile_bits.size_bytes != u64(p.num_tiles()))
    return {error::wrong_size, "options.tile_bits", i64(tile_bits.size_bytes),
            "must have one byte per tile of 1024 elements"};
  return check_not_null(tile_bits.data, tile_bits.size_bytes > 0, "options.tile_bits");
}

/// The pairs that a given range has, or the refusal of what is none.
inline result<i64> count_given_pairs(const plan& p, const given_ranges& given) {
  switch (given.scope) {
    case range_scope::measured:
      return i64(0);
    case range_scope::tensor:
      return i64(1);
    case range_scope::channel:
      if (given.dimension < 0 || given.dimension >= p.shape().rank)
        return status{error::out_of_range, "options.ranges.dimension", given.dimension,
                      "must be a dimension of the shape"};
      return p.shape()[given.dimension];
    case range_scope::group:
      return p.num_groups();
  }
  return status{error::out_of_range, "options.ranges.scope", i64(given.scope),
                "must be one of range_scope"};
}

/// A pair for every element, at its place.
inline status check_given_ranges(const plan& p, const given_ranges& given) {
  const result<i64> pairs = count_given_pairs(p, given);
  if (!pairs) return pairs.status();
  if (given.scope != range_scope::measured)
    if (const status s = check_has_ranges(p); !s) return s;
  if (given.scope == range_scope::measured && (given.pairs != nullptr || given.num_pairs != 0))
    return {error::out_of_range, "options.ranges.scope", i64(given.scope),
            "must say what the pairs are for"};
  if (given.scope == range_scope::measured || p.num_elements() == 0) return {};
  if (given.num_pairs != *pairs)
    return {error::wrong_size, "options.ranges", given.num_pairs,
            "must be one pair, one per channel, or one per group"};
  return check_array<const float>({given.pairs, *pairs}, *pairs, "options.ranges", "");
}

/// Of a call that takes no ranges.
inline status check_no_ranges(const given_ranges& given) {
  if (given.scope == range_scope::measured && given.pairs == nullptr && given.num_pairs == 0)
    return {};
  return {error::out_of_range, "options.ranges", i64(given.scope), "are for compress alone"};
}

/// Of a call that takes neither ranges nor statistics.
template <class Options>
status check_nothing_given(const Options& o) {
  if (const status s = check_no_ranges(o.ranges); !s) return s;
  if (!o.statistics.are_given()) return {};
  return {error::out_of_range, "options.statistics", 0, "are for compress and decompress alone"};
}

inline named_bytes range_bytes(const given_ranges& given) {
  const bool some = given.scope != range_scope::measured;
  return {given.pairs, some ? u64(given.num_pairs) * sizeof(range) : 0, "options.ranges"};
}

/// What compress, decompress and decompress_add share: the array of elements and the blob, of which
/// one is the output.
inline status check_coded(const plan& p, const_values array, const char* argument,
                          const_bytes blob) {
  if (const status s = check_kind(p, false); !s) return s;
  if (const status s = check_elements(p, array, argument); !s) return s;
  if (const status s = check_blob(p, blob); !s) return s;
  return check_apart({blob.data, p.size_bytes(), "blob"},
                     {{array.data, array.size_bytes(), argument}}, "must not overlap the blob");
}

/// The checks that pack and unpack share.
inline status check_codes_call(const plan& p, const_bytes codes, const_bytes blob) {
  if (const status s = check_kind(p, true); !s) return s;
  if (codes.size_bytes != u64(p.num_elements()))
    return {error::wrong_size, "codes", i64(codes.size_bytes), "must have one byte per element"};
  if (const status s = check_not_null(codes.data, codes.size_bytes > 0, "codes"); !s) return s;
  if (const status s = check_blob(p, blob); !s) return s;
  return check_apart({blob.data, p.size_bytes(), "blob"}, {{codes.data, codes.size_bytes, "codes"}},
                     "must not overlap the blob");
}

// ---- Options of calls for device memory ------------------------------------------------------

/// A buffer of at least some bytes that is used as numbers of 64 bits, unless none are needed.
inline status check_buffer(const_bytes buffer, u64 needed_bytes, const char* argument,
                           const char* limit) {
  if (needed_bytes == 0) return {};
  if (buffer.size_bytes < needed_bytes)
    return {error::wrong_size, argument, i64(buffer.size_bytes), limit};
  if (const status s = check_not_null(buffer.data, true, argument); !s) return s;
  return check_alignment(buffer.data, sizeof(u64), argument, "must be aligned to 8 bytes");
}

/// Of compress, decompress and decompress_add, whose output is disjoint from what options name.
inline status check_options(const plan& p, const options& o, const named_bytes& output) {
  if (const status s = check_tile_bits(p, o.tile_bits); !s) return s;
  const bool has_index = o.tile_index.data != nullptr || o.tile_index.size_bytes != 0;
  if (p.kind() != plan_kind::mixed && has_index)
    return {error::wrong_plan, "options.tile_index", 0,
            "goes with a plan from plan::make_mixed only"};
  if (const status s = check_buffer(o.tile_index, tile_index_bytes(p), "options.tile_index",
                                    "must have at least tile_index_bytes(plan) bytes");
      !s)
    return s;
  if (const status s = check_alignment(o.device_key, alignof(random_key), "options.device_key",
                                       "must be aligned to 8 bytes");
      !s)
    return s;
  const u64 key_bytes = o.device_key == nullptr ? 0 : sizeof(random_key);
  return check_apart(output,
                     {{o.tile_bits.data, o.tile_bits.size_bytes, "options.tile_bits"},
                      {o.tile_index.data, tile_index_bytes(p), "options.tile_index"},
                      {o.device_key, key_bytes, "options.device_key"},
                      range_bytes(o.ranges)},
                     apart_from_outputs);
}

// ---- What calls have in common --------------------------------------------------------------

inline named_bytes bytes_of(const_values array, const char* argument) {
  return {array.data, array.size_bytes(), argument};
}
template <class T>
named_bytes bytes_of(span<T> array, const char* argument) {
  return {array.data, array.size_bytes(), argument};
}
/// The part of a blob that its plan describes.
inline named_bytes bytes_of(const plan& p, const_bytes blob) {
  return {blob.data, p.size_bytes(), "blob"};
}

/// An output that is made element by element from an input: it has the input's size and dtype, and
/// is the same array or one apart.
inline status check_elementwise(const_values input, const_values output, const char* argument) {
  if (output.num_elements != input.num_elements)
    return {error::wrong_size, argument, output.num_elements,
            "must have as many elements as the input"};
  if (output.type != input.type)
    return {error::out_of_range, argument, i64(output.type), "must have the dtype of the input"};
  if (const status s = check_not_null(output.data, output.num_elements > 0, argument); !s) return s;
  if (output.data == input.data) return {};
  return check_apart(bytes_of(input, ""), {bytes_of(output, argument)},
                     "must be the input itself or not overlap it");
}

/// Options of a call for device memory that takes neither ranges nor statistics, and that writes
/// `outputs`. A call that does not look at the bits of tiles passes plan{}.
inline status check_options_without_ranges(const plan& p, const options& o,
                                           ::std::initializer_list<named_bytes> outputs) {
  if (const status s = check_nothing_given(o); !s) return s;
  for (const named_bytes& output : outputs)
    if (const status s = check_options(p, o, output); !s) return s;
  return {};
}

}  // namespace furl::detail

FURL_HIDDEN_END

#endif
