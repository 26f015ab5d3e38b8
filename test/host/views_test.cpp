// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

#include "furl/views.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

namespace furl::test {
namespace {

/// A pointer to device memory as Thrust has it, and a container of such memory.
template <class T>
struct device_pointer {
  T* get() const { return pointer; }
  T* pointer;
};
template <class T>
struct device_vector {
  device_pointer<T> data() { return {elements}; }
  device_pointer<const T> data() const { return {elements}; }
  std::size_t size() const { return 3; }
  T elements[3];
};

template <class From, class To>
constexpr bool converts = std::is_convertible_v<From, To>;

// Containers of host memory are views of the host's calls only, and those of device memory of the
// device's.
using floats = std::vector<float>;
using byte_vector = std::vector<std::byte>;
using device_floats = device_vector<float>;
static_assert(converts<floats&, host::values> && converts<const floats&, host::const_values>);
static_assert(converts<byte_vector&, host::bytes> && converts<floats&, host::span<float>>);
static_assert(converts<std::array<float, 3>&, host::values>);
static_assert(!converts<const floats&, host::values> && !converts<floats&, host::bytes>);
static_assert(!converts<floats&, values> && !converts<floats&, const_values>);
static_assert(!converts<byte_vector&, bytes> && !converts<byte_vector&, const_bytes>);
static_assert(!converts<floats&, span<float>> && !converts<floats&, span<const float>>);
static_assert(converts<device_floats&, values> && converts<const device_floats&, const_values>);
static_assert(converts<device_vector<u8>&, bytes> && converts<device_floats&, span<float>>);
static_assert(!converts<const device_floats&, values>);
static_assert(!converts<device_floats&, host::values> &&
              !converts<device_floats&, host::const_values>);
static_assert(!converts<device_vector<u8>&, host::bytes> &&
              !converts<device_floats&, host::span<float>>);

// One side's views are the other's, where a function is for both; what may be read is not written.
static_assert(converts<host::values, values> && converts<values, host::values>);
static_assert(converts<host::values, const_values> && converts<values, host::const_values>);
static_assert(converts<host::bytes, host::const_bytes> &&
              converts<host::values, host::const_values>);
static_assert(!converts<host::const_values, values> && !converts<const_values, host::values>);
static_assert(!converts<host::const_bytes, host::bytes> && !converts<const_bytes, bytes>);

TEST(Views, HaveTheContainersElements) {
  floats x(5);
  const host::const_values view = x;
  EXPECT_EQ(view.data, x.data());
  EXPECT_EQ(view.num_elements, 5);
  EXPECT_EQ(view.type, dtype::f32);
  device_vector<bf16> d{};
  const const_values on_device = d;
  EXPECT_EQ(on_device.data, d.elements);
  EXPECT_EQ(on_device.num_elements, 3);
  EXPECT_EQ(on_device.type, dtype::bf16);
}

// {pointer, count} with any integer type, which must not narrow.
template <class Integer>
void expect_count(Integer count, i64 expected, u64 expected_size) {
  float x[4] = {};
  const const_values values_view{x, count};
  const const_values typed{x, dtype::f32, count};
  const span<float> span_view{x, count};
  const const_bytes bytes_view{x, count};
  const host::const_values host_values{x, count};
  const host::const_values host_typed{x, dtype::f32, count};
  const host::span<float> host_span{x, count};
  const host::const_bytes host_bytes{x, count};
  for (const i64 got : {values_view.num_elements, typed.num_elements, span_view.size,
                        host_values.num_elements, host_typed.num_elements, host_span.size})
    EXPECT_EQ(got, expected);
  EXPECT_EQ(bytes_view.size_bytes, expected_size);
  EXPECT_EQ(host_bytes.size_bytes, expected_size);
}

TEST(Views, TakeCountsOfAnyInteger) {
  expect_count(3, 3, 3);
  expect_count(3u, 3, 3);
  expect_count(std::size_t{3}, 3, 3);
  expect_count(std::ptrdiff_t{3}, 3, 3);
  expect_count(std::uint8_t{3}, 3, 3);
  expect_count(std::int64_t{3}, 3, 3);
  expect_count(-3, -3, 0);
  expect_count(std::numeric_limits<std::int64_t>::min(), std::numeric_limits<i64>::min(), 0);
  constexpr u64 most = std::numeric_limits<u64>::max();
  expect_count(most, -1, most);
  expect_count(u64(1) << 63, -1, u64(1) << 63);
  expect_count((u64(1) << 63) - 1, std::numeric_limits<i64>::max(), (u64(1) << 63) - 1);
}

}  // namespace
}  // namespace furl::test
