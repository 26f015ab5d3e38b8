// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "furl/config.hpp"

#if !defined(__CUDACC_RTC__)
#include <string>
#endif

namespace furl {
inline namespace v0_1 {

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

/// What became of a call: no error, or which argument was refused and why. Nothing has been written
/// when it is an error. Plain value; the two strings are literals.
struct [[nodiscard]] status {
  error code = error::none;   // what kind of error
  const char* argument = "";  // as spelt in the signature, e.g. "codec.bits"
  i64 value = 0;              // what was given (0 for pointers)
  const char* limit = "";     // what is allowed, e.g. "must be 1..8"

  /// Whether there is no error.
  constexpr bool ok() const noexcept { return code == error::none; }
  constexpr explicit operator bool() const noexcept { return ok(); }
};

/// A value, or the status that says why there is none.
template <class T>
class [[nodiscard]] result {
 public:
  /// Of success.
  constexpr result(const T& value) : value_(value) {}
  /// Of success.
  constexpr result(T&& value) : value_(static_cast<T&&>(value)) {}
  /// Pre: refused is an error.
  constexpr result(const status& refused) : status_(refused) {}

  constexpr explicit operator bool() const noexcept { return status_.ok(); }
  /// Success, or why there is no value.
  constexpr const furl::status& status() const noexcept { return status_; }
  /// Pre: the result holds a value.
  constexpr T& operator*() noexcept { return value_; }
  constexpr const T& operator*() const noexcept { return value_; }
  constexpr T* operator->() noexcept { return &value_; }
  constexpr const T* operator->() const noexcept { return &value_; }

 private:
  T value_{};
  furl::status status_{};
};

#if !defined(__CUDACC_RTC__)
/// One line, e.g. "codec.bits is 9: must be 1..8".
FURL_HIDDEN inline std::string to_string(const status& s) {
  switch (s.code) {
    case error::none:
      return "success";
    case error::out_of_range:
    case error::wrong_size:
    case error::newer_format:
      return std::string(s.argument) + " is " + std::to_string(s.value) + ": " + s.limit;
    default:
      return std::string(s.argument) + ": " + s.limit;
  }
}
#endif

}  // namespace v0_1
}  // namespace furl
