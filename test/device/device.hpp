// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstdlib>
#include <cstring>
#include <stdexcept>

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

}  // namespace furl::test
