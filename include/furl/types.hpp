// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The small types that calls take and return: status and result, element types, shapes, random
// keys. Views of arrays (views.hpp) come with it.

#include "furl/config.hpp"

#if !defined(__CUDACC_RTC__)
#include <initializer_list>
#include <string>
#endif

namespace furl {

/// The type of an element or of metadata.
enum class dtype : u8 { f32, f16, bf16 };

/// Of one element.
FURL_HD constexpr int size_bytes(dtype type) {
  return type == dtype::f32 ? 4 : 2;
}

#if !defined(__CUDACC_RTC__)
/// "f32", "f16" or "bf16".
FURL_HIDDEN constexpr const char* name(dtype type) {
  return type == dtype::f32 ? "f32" : type == dtype::f16 ? "f16" : "bf16";
}
#endif

/// IEEE binary16 as a bit pattern: layout-compatible with every framework's own type.
struct f16 {
  u16 bits;  // sign, 5 of exponent, 10 of fraction
};
/// bfloat16, likewise.
struct bf16 {
  u16 bits;  // the upper half of an f32
};

/// The dtype of an element type. Specialise it for your own 16-bit types.
template <class T>
struct dtype_of {
  static constexpr bool known = false;  // and true where there is a `value`
};
/// dtype::f32
template <>
struct dtype_of<float> {
  static constexpr bool known = true;         // see value
  static constexpr dtype value = dtype::f32;  // its name
};
/// dtype::f16
template <>
struct dtype_of<f16> {
  static constexpr bool known = true;         // see value
  static constexpr dtype value = dtype::f16;  // its name
};
/// dtype::bf16
template <>
struct dtype_of<bf16> {
  static constexpr bool known = true;          // see value
  static constexpr dtype value = dtype::bf16;  // its name
};

/// How a value between two codes is rounded (FORMAT.md, A5 and A6). Dithered codes are stochastic
/// ones, the very same blob; decoding subtracts the random bits again (A12), which halves the
/// variance of the error, and so needs the key that compress had.
enum class rounding : u8 { stochastic, nearest, dithered };

/// What codes stand for (FORMAT.md): points between the smallest and the largest element of a
/// group, or levels of a normal law, to which a random rotation of every 256 elements brings them.
/// positives are rotated codes of what a ReLU lets pass, less its mean, and the mask of it.
enum class coding : u8 { min_max, rotated, positives };

/// A random stream. Every compression needs a new pair; a new offset is enough.
struct random_key {
  u64 seed = 0;    // the key of Philox
  u64 offset = 0;  // the upper half of its counter
};

inline namespace v0_2 {

/// The numbers from lo to hi.
struct range {
  float lo;  // smallest
  float hi;  // largest
};

/// What is wrong with an argument.
enum class error : u8 {
  none,
  out_of_range,  // a number outside its limits
  null_pointer,
  misaligned,
  wrong_size,     // an array or blob that does not fit the plan
  overlap,        // input and output share bytes
  wrong_plan,     // a plan of another kind than the function needs
  corrupt,        // serialised bytes that are no plan
  newer_format,   // serialised by a furl whose format is later than this one's
  out_of_memory,  // the caller's allocator returned null
  wrong_memory,   // memory that the stream's device cannot reach
  cuda,           // a call of the CUDA runtime failed; value is its cudaError_t
};

/// The outcome of a call: no error, or which argument was refused and why. A call that returns an
/// error has written nothing; only with error::cuda, launches before the failed one may have. A
/// plain value; the two strings are literals.
struct [[nodiscard]] status {
  error code = error::none;   // what kind of error
  const char* argument = "";  // as spelt in the signature, e.g. "codec.bits"
  i64 value = 0;              // what was given (0 for pointers)
  const char* limit = "";     // what is allowed, e.g. "must be 1..8"

  /// Whether there is no error.
  FURL_RTC_DEVICE constexpr bool ok() const noexcept { return code == error::none; }
  FURL_RTC_DEVICE constexpr explicit operator bool() const noexcept { return ok(); }
};

/// A value, or the status that says why there is none.
template <class T>
class [[nodiscard]] result {
 public:
  /// Of success.
  FURL_RTC_DEVICE constexpr result(const T& value) : value_(value) {}
  /// Of success.
  FURL_RTC_DEVICE constexpr result(T&& value) : value_(static_cast<T&&>(value)) {}
  /// Pre: refused is an error.
  FURL_RTC_DEVICE constexpr result(const status& refused) : status_(refused) {}

  FURL_RTC_DEVICE constexpr explicit operator bool() const noexcept { return status_.ok(); }
  /// Success, or why there is no value.
  FURL_RTC_DEVICE constexpr const furl::status& status() const noexcept { return status_; }
  /// Pre: the result holds a value.
  FURL_RTC_DEVICE constexpr T& operator*() noexcept { return value_; }
  FURL_RTC_DEVICE constexpr const T& operator*() const noexcept { return value_; }
  FURL_RTC_DEVICE constexpr T* operator->() noexcept { return &value_; }
  FURL_RTC_DEVICE constexpr const T* operator->() const noexcept { return &value_; }

 private:
  T value_{};
  furl::status status_{};
};

#if !defined(__CUDACC_RTC__)
/// One line, e.g. "codec.bits is 9: must be 1..8".
FURL_HIDDEN inline ::std::string to_string(const status& s) {
  switch (s.code) {
    case error::none:
      return "success";
    case error::out_of_range:
    case error::wrong_size:
    case error::newer_format:
      return ::std::string(s.argument) + " is " + ::std::to_string(s.value) + ": " + s.limit;
    default:
      return ::std::string(s.argument) + ": " + s.limit;
  }
}
#endif

/// Up to eight sizes, outermost first: a shape, or the window widths that go with one.
struct extents {
  i64 size[max_rank] = {};  // outermost first
  int rank = 0;             // as given: a plan refuses more than max_rank

  constexpr extents() = default;
  /// Copies `count` sizes of any integer type, or the first max_rank of them.
  template <class Integer>
  FURL_RTC_DEVICE constexpr extents(const Integer* sizes, int count) : rank(count) {
    for (int d = 0; d < count && d < max_rank; ++d) size[d] = static_cast<i64>(sizes[d]);
  }
#if !defined(__CUDACC_RTC__)
  /// As {64, 128, 56, 56}.
  constexpr extents(::std::initializer_list<i64> sizes)
      : extents(sizes.begin(), static_cast<int>(sizes.size())) {}
#endif
  /// Pre: 0 <= d < max_rank.
  FURL_RTC_DEVICE constexpr i64 operator[](int d) const {
    return size[d];
  }
};

FURL_RTC_DEVICE constexpr bool operator==(const extents& a, const extents& b) {
  if (a.rank != b.rank) return false;
  for (int d = 0; d < max_rank; ++d)
    if (a.size[d] != b.size[d]) return false;
  return true;
}
FURL_RTC_DEVICE constexpr bool operator!=(const extents& a, const extents& b) {
  return !(a == b);
}

}  // namespace v0_2
}  // namespace furl

#include "furl/views.hpp"
