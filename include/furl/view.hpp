// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Pointers that carry what the checks need: element type and count, or size in bytes. They own
// nothing and convert from a pointer and a count, or from any contiguous container.

#include "furl/config.hpp"
#include "furl/dtype.hpp"

#if !defined(__CUDACC_RTC__)
#include <type_traits>
#include <utility>
#endif

namespace furl {
inline namespace v0_1 {

/// A flat array of elements of one type, at any element alignment. Void is `void` (written to) or
/// `const void` (read from).
template <class Void>
struct basic_values {
  Void* data = nullptr;     // the first element
  i64 num_elements = 0;     // at data
  dtype type = dtype::f32;  // of each

  constexpr basic_values() = default;
  /// For a type known at run time.
  constexpr basic_values(Void* pointer, dtype element_type, i64 count)
      : data(pointer), num_elements(count), type(element_type) {}
#if !defined(__CUDACC_RTC__)
  /// For a type that dtype_of knows.
  template <class T, class = std::enable_if_t<dtype_of<std::remove_const_t<T>>::known &&
                                              std::is_convertible_v<T*, Void*>>>
  constexpr basic_values(T* pointer, i64 count)
      : basic_values(pointer, dtype_of<std::remove_const_t<T>>::value, count) {}

  /// From a container with data() and size(), such as std::vector<float>.
  template <class Container,
            class T = std::remove_pointer_t<decltype(std::declval<Container&>().data())>,
            class = std::enable_if_t<dtype_of<std::remove_const_t<T>>::known &&
                                     std::is_convertible_v<T*, Void*>>>
  constexpr basic_values(Container&& container)
      : basic_values(container.data(), static_cast<i64>(container.size())) {}

  /// What may be written may be read.
  template <class Other, class = std::enable_if_t<std::is_convertible_v<Other*, Void*>>>
  constexpr basic_values(const basic_values<Other>& other)
      : basic_values(other.data, other.type, other.num_elements) {}
#endif

  /// Of the array.
  constexpr u64 size_bytes() const {
    return u64(num_elements) * u64(furl::size_bytes(type));
  }
};

using values = basic_values<void>;              // to be written
using const_values = basic_values<const void>;  // to be read

/// An array of T, aligned as T is.
template <class T>
struct span {
  T* data = nullptr;  // the first element
  i64 size = 0;       // elements

  constexpr span() = default;
  /// `count` elements at `pointer`.
  constexpr span(T* pointer, i64 count) : data(pointer), size(count) {}
#if !defined(__CUDACC_RTC__)
  /// From a container with data() and size(), such as std::vector<T>.
  template <class Container,
            class U = std::remove_pointer_t<decltype(std::declval<Container&>().data())>,
            class = std::enable_if_t<std::is_convertible_v<U (*)[], T (*)[]>>>
  constexpr span(Container&& container)
      : span(container.data(), static_cast<i64>(container.size())) {}
#endif

  /// Of the array.
  constexpr u64 size_bytes() const {
    return u64(size) * sizeof(T);
  }
};

/// Raw bytes: a blob, or the codes of masks and small integers.
template <class Void>
struct basic_bytes {
  Void* data = nullptr;  // the first byte
  u64 size_bytes = 0;    // at data

  constexpr basic_bytes() = default;
  /// `size` bytes at `pointer`.
  constexpr basic_bytes(Void* pointer, u64 size) : data(pointer), size_bytes(size) {}
#if !defined(__CUDACC_RTC__)
  /// From a container of one-byte elements, such as std::vector<std::byte>.
  template <class Container,
            class T = std::remove_pointer_t<decltype(std::declval<Container&>().data())>,
            class = std::enable_if_t<sizeof(T) == 1 && std::is_convertible_v<T*, Void*>>>
  constexpr basic_bytes(Container&& container)
      : basic_bytes(container.data(), static_cast<u64>(container.size())) {}

  /// What may be written may be read.
  template <class Other, class = std::enable_if_t<std::is_convertible_v<Other*, Void*>>>
  constexpr basic_bytes(const basic_bytes<Other>& other)
      : basic_bytes(other.data, other.size_bytes) {}
#endif
};

using bytes = basic_bytes<void>;              // to be written
using const_bytes = basic_bytes<const void>;  // to be read

}  // namespace v0_1
}  // namespace furl
