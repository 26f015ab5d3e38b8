// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Copies in device memory of arrays that tests have in host memory.

#include <cstdint>
#include <optional>

#include "device/buffer.cuh"
#include "furl/plan.hpp"
#include "furl/views.hpp"

namespace furl::test {

/// A negative count or an unknown type, which the library refuses, has no bytes to copy.
inline u64 bytes_of(i64 count, dtype type) {
  return count < 0 ? 0 : u64(count) * u64(size_bytes(type));
}

inline const_values const_view(values v) {
  return {v.data, v.type, v.num_elements};
}

/// The device's copy of an array in host memory, made only if the pointer is not null.
template <class Buffer>
class mirror {
 public:
  template <class T>
  explicit mirror(span<T> host) : mirror(host.data, host.size_bytes(), sizeof(T)) {}
  mirror(const void* host, u64 size, u64 element_bytes = 1) {
    if (host == nullptr) return;
    const u64 misalignment = reinterpret_cast<std::uintptr_t>(host) % 64;
    buffer_.emplace(size, misalignment / element_bytes * element_bytes);
    buffer_->write(host);
  }
  explicit mirror(const_values v)
      : mirror(v.data, bytes_of(v.num_elements, v.type), u64(size_bytes(v.type))) {}
  void* data() const { return buffer_ ? buffer_->data() : nullptr; }
  template <class T>
  furl::span<T> view(span<T> host) const {
    return {static_cast<T*>(data()), host.size};
  }
  void copy_back(void* host) const {
    if (buffer_) buffer_->read(host);
  }

 private:
  std::optional<Buffer> buffer_;
};
using input = mirror<device_input>;    // of what a call reads
using output = mirror<device_buffer>;  // of what it may write

/// An input and an output, which are one array on the device if they are in host memory.
class elementwise {
 public:
  elementwise(const_values x, values y)
      : in_place_(y.data == x.data),
        read_(in_place_ ? const_values{nullptr, x.type, 0} : x),
        written_(in_place_ ? x : const_view(y)) {}
  const_values input_of(const_values host) const {
    return {in_place_ ? written_.data() : read_.data(), host.type, host.num_elements};
  }
  values output_of(values host) const { return {written_.data(), host.type, host.num_elements}; }
  void copy_back(values host) const { written_.copy_back(host.data); }

 private:
  bool in_place_;
  input read_;
  output written_;
};

/// Statistics in device memory. A count that the library refuses has no numbers to copy.
class statistics_copy {
 public:
  explicit statistics_copy(const statistics& host)
      : mean_(host.mean, bytes_of(host), sizeof(float)),
        inverse_deviation_(host.inverse_deviation, bytes_of(host), sizeof(float)) {}
  statistics of_device(const statistics& host) const {
    return {static_cast<const float*>(mean_.data()),
            static_cast<const float*>(inverse_deviation_.data()), host.count, host.extent};
  }

 private:
  static u64 bytes_of(const statistics& host) {
    return host.count < 0 || host.count >= i64(1) << 31 ? 0 : u64(host.count) * sizeof(float);
  }

  input mean_;
  input inverse_deviation_;
};

}  // namespace furl::test
