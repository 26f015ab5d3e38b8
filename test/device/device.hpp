// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "furl/config.hpp"

namespace furl::test {

/// Throws what a CUDA call reports.
inline void require(cudaError_t code) {
  if (code != cudaSuccess) throw std::runtime_error(cudaGetErrorString(code));
}

inline bool has_device(int count = 1) {
  int found = 0;
  const bool known = cudaGetDeviceCount(&found) == cudaSuccess;
  if (!known) (void)cudaGetLastError();
  return known && found >= count;
}

/// Whether a machine without a device fails instead of skipping.
inline bool device_required() {
  const char* const value = std::getenv("FURL_REQUIRE_DEVICE");
  return value != nullptr && std::strcmp(value, "0") != 0;
}

/// A stream that does not wait for the default one.
class scoped_stream {
 public:
  scoped_stream() { require(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~scoped_stream() { (void)cudaStreamDestroy(stream_); }
  scoped_stream(const scoped_stream&) = delete;
  scoped_stream& operator=(const scoped_stream&) = delete;
  operator cudaStream_t() const { return stream_; }
  void wait() const { require(cudaStreamSynchronize(stream_)); }

 private:
  cudaStream_t stream_ = nullptr;
};

/// Device memory of an exact size, so that an access outside of it is one outside of an allocation,
/// `misalignment` bytes behind a boundary of 256.
class device_buffer {
 public:
  explicit device_buffer(u64 size, u64 misalignment = 0)
      : size_(static_cast<std::size_t>(size)), misalignment_(misalignment) {
    require(cudaMalloc(&base_, size_ + misalignment_ + (size_ + misalignment_ == 0 ? 1 : 0)));
  }
  explicit device_buffer(const std::vector<u8>& content, u64 misalignment = 0)
      : device_buffer(content.size(), misalignment) {
    write(content.data());
  }
  ~device_buffer() { (void)cudaFree(base_); }
  device_buffer(const device_buffer&) = delete;
  device_buffer& operator=(const device_buffer&) = delete;

  u8* data() const { return static_cast<u8*>(base_) + misalignment_; }
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

 private:
  void* base_ = nullptr;
  std::size_t size_;
  u64 misalignment_;
};

}  // namespace furl::test
