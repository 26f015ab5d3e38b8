// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Views of arrays. A view is a pointer that carries what the checks need, its element type and
// count or its size in bytes, and owns nothing. Calls for device memory take the views of furl;
// calls for host memory take those of furl::host, which are made from containers such as
// std::vector too.

#include "furl/config.hpp"
#include "furl/types.hpp"

#if !defined(__CUDACC_RTC__)
#include <type_traits>
#include <utility>
#endif

namespace furl {
namespace detail {

/// A count of any integer type as i64: -1 if it is too large for that.
template <class Integer>
FURL_HIDDEN constexpr i64 to_count(Integer count) {
  return count > 0 && static_cast<u64>(count) >= u64(1) << 63 ? -1 : static_cast<i64>(count);
}
/// A size of any integer type as u64: 0 if it is negative.
template <class Integer>
FURL_HIDDEN constexpr u64 to_size(Integer size) {
  return size > 0 ? static_cast<u64>(size) : 0;
}

#if !defined(__CUDACC_RTC__)
template <class Integer>
using if_integer = ::std::enable_if_t<::std::is_integral_v<Integer>>;
/// What data() of a container of host memory points to.
template <class Container>
using element_of = ::std::remove_pointer_t<decltype(::std::declval<Container&>().data())>;
/// The same for device memory whose data() is a pointer of its own kind, such as Thrust's.
template <class Container>
using device_element_of =
    ::std::remove_pointer_t<decltype(::std::declval<Container&>().data().get())>;
/// Whether elements of type T may stand behind a Void*, `void` or `const void`.
template <class T, class Void>
using if_values = ::std::enable_if_t<
    dtype_of<::std::remove_const_t<T>>::known&& ::std::is_convertible_v<T*, Void*>>;
template <class T, class Void>
using if_bytes = ::std::enable_if_t<sizeof(T) == 1 && ::std::is_convertible_v<T*, Void*>>;
template <class U, class T>
using if_elements = ::std::enable_if_t<::std::is_convertible_v<U (*)[], T (*)[]>>;
template <class Other, class Void>
using if_view = ::std::enable_if_t<::std::is_convertible_v<Other*, Void*>>;
#else
template <class Integer>
using if_integer = void;
#endif

}  // namespace detail

inline namespace v0_2 {

/// A flat array of elements of one type, at any element alignment. Void is `void` (written to) or
/// `const void` (read from). Counts are of any integer type; one that i64 cannot hold becomes -1,
/// which every call refuses.
template <class Void>
struct basic_values {
  Void* data = nullptr;     // the first element
  i64 num_elements = 0;     // at data
  dtype type = dtype::f32;  // of each

  constexpr basic_values() = default;
  /// For a type known at run time.
  template <class Integer, class = detail::if_integer<Integer>>
  FURL_RTC_DEVICE constexpr basic_values(Void* pointer, dtype element_type, Integer count)
      : data(pointer), num_elements(detail::to_count(count)), type(element_type) {}
#if !defined(__CUDACC_RTC__)
  /// For a type that dtype_of knows.
  template <class T, class Integer, class = detail::if_values<T, Void>,
            class = detail::if_integer<Integer>>
  constexpr basic_values(T* pointer, Integer count)
      : basic_values(pointer, dtype_of<::std::remove_const_t<T>>::value, count) {}
  /// From a container of device memory, such as thrust::device_vector<float>: data() gives no plain
  /// pointer, but data().get() does.
  template <class Container, class T = detail::device_element_of<Container>,
            class = detail::if_values<T, Void>>
  constexpr basic_values(Container&& container)
      : basic_values(container.data().get(), container.size()) {}
  /// What may be written may be read.
  template <class Other, class = detail::if_view<Other, Void>>
  constexpr basic_values(const basic_values<Other>& other)
      : basic_values(other.data, other.type, other.num_elements) {}
#endif

  /// Of the array.
  FURL_RTC_DEVICE constexpr u64 size_bytes() const {
    return u64(num_elements) * u64(furl::size_bytes(type));
  }
};

using values = basic_values<void>;              // to be written
using const_values = basic_values<const void>;  // to be read

/// An array of T, aligned as T is. Counts as those of basic_values.
template <class T>
struct span {
  T* data = nullptr;  // the first element
  i64 size = 0;       // elements

  constexpr span() = default;
  /// `count` elements at `pointer`.
  template <class Integer, class = detail::if_integer<Integer>>
  FURL_RTC_DEVICE constexpr span(T* pointer, Integer count)
      : data(pointer), size(detail::to_count(count)) {}
#if !defined(__CUDACC_RTC__)
  /// From a container of device memory, as basic_values.
  template <class Container, class U = detail::device_element_of<Container>,
            class = detail::if_elements<U, T>>
  constexpr span(Container&& container) : span(container.data().get(), container.size()) {}
#endif

  /// Of the array.
  FURL_RTC_DEVICE constexpr u64 size_bytes() const {
    return u64(size) * sizeof(T);
  }
};

/// Raw bytes: a blob, or the codes of masks and small integers. Sizes are of any integer type; a
/// negative one becomes 0.
template <class Void>
struct basic_bytes {
  Void* data = nullptr;  // the first byte
  u64 size_bytes = 0;    // at data

  constexpr basic_bytes() = default;
  /// `size` bytes at `pointer`.
  template <class Integer, class = detail::if_integer<Integer>>
  FURL_RTC_DEVICE constexpr basic_bytes(Void* pointer, Integer size)
      : data(pointer), size_bytes(detail::to_size(size)) {}
#if !defined(__CUDACC_RTC__)
  /// From a container of device memory with elements of one byte, as basic_values.
  template <class Container, class T = detail::device_element_of<Container>,
            class = detail::if_bytes<T, Void>>
  constexpr basic_bytes(Container&& container)
      : basic_bytes(container.data().get(), container.size()) {}
  /// What may be written may be read.
  template <class Other, class = detail::if_view<Other, Void>>
  constexpr basic_bytes(const basic_bytes<Other>& other)
      : basic_bytes(other.data, other.size_bytes) {}
#endif
};

using bytes = basic_bytes<void>;              // to be written
using const_bytes = basic_bytes<const void>;  // to be read

}  // namespace v0_2
}  // namespace furl

#if !defined(__CUDACC_RTC__)
namespace furl::host {
inline namespace v0_2 {

/// furl::basic_values in host memory: also from a container with data() and size(), such as
/// std::vector<float>.
template <class Void>
struct basic_values : furl::basic_values<Void> {
  using base = furl::basic_values<Void>;  // what functions for either memory take

  constexpr basic_values() = default;
  /// Elements of a type that is known at run time.
  template <class Integer, class = furl::detail::if_integer<Integer>>
  constexpr basic_values(Void* pointer, dtype element_type, Integer count)
      : base(pointer, element_type, count) {}
  /// Elements of a type that dtype_of knows.
  template <class T, class Integer, class = furl::detail::if_values<T, Void>,
            class = furl::detail::if_integer<Integer>>
  constexpr basic_values(T* pointer, Integer count) : base(pointer, count) {}
  /// The elements of a container.
  template <class Container, class T = furl::detail::element_of<Container>,
            class = furl::detail::if_values<T, Void>>
  constexpr basic_values(Container&& container) : base(container.data(), container.size()) {}
  /// What may be written may be read.
  template <class Other, class = furl::detail::if_view<Other, Void>>
  constexpr basic_values(const furl::basic_values<Other>& other) : base(other) {}
};

using values = basic_values<void>;              // to be written
using const_values = basic_values<const void>;  // to be read

/// furl::span in host memory: also from a container such as std::vector<T>.
template <class T>
struct span : furl::span<T> {
  using base = furl::span<T>;  // what functions for either memory take

  constexpr span() = default;
  /// `count` elements at `pointer`.
  template <class Integer, class = furl::detail::if_integer<Integer>>
  constexpr span(T* pointer, Integer count) : base(pointer, count) {}
  /// The elements of a container.
  template <class Container, class U = furl::detail::element_of<Container>,
            class = furl::detail::if_elements<U, T>>
  constexpr span(Container&& container) : base(container.data(), container.size()) {}
  /// A view that does not say whose memory it is of.
  constexpr span(const base& other) : base(other) {}
};

/// furl::basic_bytes in host memory: also from a container of one-byte elements, such as
/// std::vector<std::byte>.
template <class Void>
struct basic_bytes : furl::basic_bytes<Void> {
  using base = furl::basic_bytes<Void>;  // what functions for either memory take

  constexpr basic_bytes() = default;
  /// `size` bytes at `pointer`.
  template <class Integer, class = furl::detail::if_integer<Integer>>
  constexpr basic_bytes(Void* pointer, Integer size) : base(pointer, size) {}
  /// The bytes of a container.
  template <class Container, class T = furl::detail::element_of<Container>,
            class = furl::detail::if_bytes<T, Void>>
  constexpr basic_bytes(Container&& container) : base(container.data(), container.size()) {}
  /// What may be written may be read.
  template <class Other, class = furl::detail::if_view<Other, Void>>
  constexpr basic_bytes(const furl::basic_bytes<Other>& other) : base(other) {}
};

using bytes = basic_bytes<void>;              // to be written
using const_bytes = basic_bytes<const void>;  // to be read

}  // namespace v0_2
}  // namespace furl::host
#endif
