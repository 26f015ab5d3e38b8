// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What comes across the border, as what the library takes: tensors, plans and structs that grow.

#include <cstdint>
#include <cstring>

#include "furl.h"
#include "furl/furl.hpp"

namespace furl_c {

using furl::error;
using furl::result;
using furl::status;

/// Copies the fields that both sides know of a struct that begins with its size. The others keep
/// the values of `to`, which has the defaults.
template <class Struct>
status copy_known(const Struct* from, const char* argument, Struct& to) {
  if (from == nullptr) return {};
  const std::size_t size = from->struct_bytes;
  if (size < sizeof from->struct_bytes)
    return {error::wrong_size, argument, furl::i64(size), "struct_bytes must be the struct's size"};
  const auto* const bytes = reinterpret_cast<const unsigned char*>(from);
  for (std::size_t i = sizeof to; i < size; ++i)
    if (bytes[i] != 0)
      return {error::newer_format, argument, furl::i64(size), "has a field of a later libfurl"};
  std::memcpy(&to, from, size < sizeof to ? size : sizeof to);
  return {};
}

inline result<furl::plan> plan_of(const furl_plan* given) {
  if (given == nullptr) return status{error::null_pointer, "plan", 0, "must not be null"};
  furl::plan_bytes bytes;
  static_assert(sizeof bytes == sizeof *given);
  std::memcpy(bytes.data, given->bytes, sizeof bytes.data);
  return furl::deserialize(bytes);
}

/// The memory that the tensors of a call share, once it is known.
struct place {
  bool is_known = false;
  bool is_device = false;
  int32_t id = 0;  // of the device
};

/// The place of a tensor, and its number of elements. Refuses one of vectors, or that is not
/// contiguous, or lies elsewhere than those before it.
inline status check_tensor(const furl_tensor* t, const char* argument, place& where,
                           furl::i64& count) {
  if (t == nullptr) return {error::null_pointer, argument, 0, "must not be null"};
  const bool is_device = t->device.type == 2 || t->device.type == 13;
  if (!is_device && t->device.type != 1 && t->device.type != 3)
    return {error::wrong_memory, argument, 0, "must be in memory of the host or of a CUDA device"};
  if (where.is_known && (is_device != where.is_device || (is_device && t->device.id != where.id)))
    return {error::wrong_memory, argument, 0, "must be in the memory of the other tensors"};
  where = {true, is_device, t->device.id};
  if (t->dtype.lanes != 1)
    return {error::out_of_range, argument, t->dtype.lanes, "(lanes of an element) must have 1"};
  if (t->rank < 0) return {error::out_of_range, argument, t->rank, "rank must not be negative"};
  if (t->rank > 0 && t->shape == nullptr)
    return {error::null_pointer, argument, 0, "shape must not be null"};
  count = 1;
  bool is_empty = false;
  bool has_gaps = false;
  bool is_too_large = false;
  for (int32_t d = t->rank - 1; d >= 0; --d) {
    const int64_t size = t->shape[d];
    if (size < 0) return {error::out_of_range, argument, size, "sizes must not be negative"};
    if (size == 0) is_empty = true;
    if (t->strides != nullptr && size > 1 && t->strides[d] != count) has_gaps = true;
    if (is_too_large || __builtin_mul_overflow(count, size, &count)) is_too_large = true;
  }
  if (is_empty) {  // whatever its other sizes and its strides are
    count = 0;
    return {};
  }
  if (is_too_large)
    return {error::out_of_range, argument, t->rank, "(rank) sizes must not multiply to 2^63"};
  if (!has_gaps) return {};
  return {error::out_of_range, argument, t->rank,
          "(rank) strides must be those of rows without gaps"};
}

inline void* first_element(const furl_tensor& t) {
  return t.data == nullptr ? nullptr : static_cast<unsigned char*>(t.data) + t.byte_offset;
}

/// A tensor of floats.
inline status read(const furl_tensor* t, const char* argument, place& where, furl::values& out) {
  furl::i64 count = 0;
  if (const status s = check_tensor(t, argument, where, count); !s) return s;
  const bool is_float = t->dtype.kind == 2 && (t->dtype.bits == 32 || t->dtype.bits == 16);
  const bool is_bf16 = t->dtype.kind == 4 && t->dtype.bits == 16;
  if (!(is_float || is_bf16))
    return {error::out_of_range, argument, t->dtype.bits,
            "(bits of an element) dtype must be f32, f16 or bf16"};
  auto type = is_bf16 ? furl::dtype::bf16 : furl::dtype::f16;
  if (t->dtype.bits == 32) type = furl::dtype::f32;
  out = {first_element(*t), type, count};
  return {};
}

/// A tensor of bytes.
inline status read(const furl_tensor* t, const char* argument, place& where, furl::bytes& out) {
  furl::i64 count = 0;
  if (const status s = check_tensor(t, argument, where, count); !s) return s;
  const bool is_integer = t->dtype.kind == 0 || t->dtype.kind == 1 || t->dtype.kind == 6;
  if (t->dtype.bits != 8 || !is_integer)
    return {error::out_of_range, argument, t->dtype.bits,
            "(bits of an element) dtype must be u8, i8 or bool"};
  out = {first_element(*t), count};
  return {};
}

}  // namespace furl_c
