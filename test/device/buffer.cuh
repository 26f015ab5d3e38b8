// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Device memory that tests hand to furl.

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "device/device.hpp"
#include "furl/views.hpp"

namespace furl::test {

/// Bytes that a call may write, `misalignment` bytes behind a boundary of 256, between guards that
/// it may not: the destructor looks at them. No container of Thrust, for those write all that they
/// allocate, and tools would not see when a byte is read that no call wrote.
class device_buffer {
 public:
  static constexpr u8 guard = 0xa5;
  static constexpr u64 guard_bytes = 256;

  explicit device_buffer(u64 size, u64 misalignment = 0)
      : device_buffer(size, guard_bytes + misalignment, guard_bytes) {}
  explicit device_buffer(const std::vector<u8>& content, u64 misalignment = 0)
      : device_buffer(content.size(), misalignment) {
    write(content.data());
  }
  ~device_buffer() {
    EXPECT_TRUE(is_guard(0, before_)) << "bytes before the buffer were written";
    EXPECT_TRUE(is_guard(before_ + size_, all_)) << "bytes behind the buffer were written";
    (void)cudaFree(memory_);
  }
  device_buffer(const device_buffer&) = delete;
  device_buffer& operator=(const device_buffer&) = delete;

  u8* data() const { return memory_ + before_; }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data());
  }
  std::size_t size() const { return size_; }
  void write(const void* from) const {
    if (size_ > 0) require(cudaMemcpy(data(), from, size_, cudaMemcpyHostToDevice));
  }
  void read(void* to) const {
    if (size_ > 0) require(cudaMemcpy(to, data(), size_, cudaMemcpyDeviceToHost));
  }
  std::vector<u8> bytes() const {
    std::vector<u8> out(size_);
    read(out.data());
    return out;
  }

 protected:
  device_buffer(u64 size, u64 before, u64 behind)
      : size_(size), before_(before), all_(std::max<u64>(before + size + behind, 1)) {
    require(cudaMalloc(&memory_, all_));
    require(cudaMemset(memory_, guard, before_));
    require(cudaMemset(data() + size_, guard, all_ - before_ - size_));
  }

 private:
  /// Without an exception: where the device has failed, so does the test.
  bool is_guard(std::size_t begin, std::size_t end) const {
    std::vector<u8> found(end - begin);
    return cudaMemcpy(found.data(), memory_ + begin, found.size(), cudaMemcpyDeviceToHost) ==
               cudaSuccess &&
           std::all_of(found.begin(), found.end(), [](u8 each) { return each == guard; });
  }

  u8* memory_ = nullptr;
  std::size_t size_;
  std::size_t before_;
  std::size_t all_;
};

/// Bytes that no call writes, at the end of an allocation: reading beyond them is an error of the
/// device.
struct device_input : device_buffer {
  explicit device_input(u64 size, u64 misalignment = 0) : device_buffer(size, misalignment, 0) {}
};

/// A device array of T.
template <class T>
struct device_array : device_buffer {
  explicit device_array(std::size_t count) : device_buffer(count * sizeof(T)) {}
  explicit device_array(const std::vector<T>& content) : device_array(content.size()) {
    write(content.data());
  }
  furl::span<T> view() const { return {as<T>(), size() / sizeof(T)}; }
  furl::span<const T> const_view() const { return {as<const T>(), size() / sizeof(T)}; }
  std::vector<T> read_back() const {
    std::vector<T> out(size() / sizeof(T));
    read(out.data());
    return out;
  }
};

}  // namespace furl::test
