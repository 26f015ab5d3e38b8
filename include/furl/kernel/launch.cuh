// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Launching on a stream whatever device is current, with the caller's CUDA state left as it was.

#include "furl/config.hpp"

#if !defined(__CUDACC_RTC__)
#include <cuda_runtime.h>

#include "furl/status.hpp"
#endif

FURL_HIDDEN_BEGIN

/// The kernels and their launch. Not part of the API: they may change in any version.
namespace furl::kernel {

inline constexpr int block_threads = 128;                   // of most kernels
inline constexpr int warps_per_block = block_threads / 32;  // likewise
/// Enough to fill any device several times over. A block then goes on to its next tiles, which
/// spares it what does not depend on the tile: more than one instruction per element, with four
/// tiles.
inline constexpr i64 max_blocks = 1 << 13;

/// Blocks for a number of warps' worth of work, at least 1.
FURL_HD constexpr unsigned blocks_for(i64 num_warps) {
  const i64 blocks = (num_warps - 1) / warps_per_block + 1;
  return unsigned(blocks < 1 ? 1 : blocks < max_blocks ? blocks : max_blocks);
}

#if !defined(__CUDACC_RTC__)

/// Makes the device of a stream the current one for its lifetime. Then the current device is again
/// what it was, and so is the calling thread's last error: an earlier one stays, one of ours is
/// gone (unless an earlier one was overwritten by it).
class stream_scope {
 public:
  /// Null is the default stream of the current device.
  explicit stream_scope(cudaStream_t stream) : earlier_error_(cudaPeekAtLastError()) {
    error_ = cudaGetDevice(&caller_device_);
    if (error_ == cudaSuccess) error_ = cudaStreamGetDevice(stream, &device_);
    if (error_ == cudaSuccess && device_ != caller_device_) error_ = cudaSetDevice(device_);
  }
  ~stream_scope() {
    if (device_ >= 0 && device_ != caller_device_) (void)cudaSetDevice(caller_device_);
    if (earlier_error_ == cudaSuccess) (void)cudaGetLastError();
  }
  stream_scope(const stream_scope&) = delete;
  stream_scope& operator=(const stream_scope&) = delete;

  cudaError_t error() const { return error_; }  // of making it current
  int device() const { return device_; }        // of the stream

 private:
  cudaError_t earlier_error_;
  cudaError_t error_;
  int caller_device_ = -1;
  int device_ = -1;
};

/// The architectures that the including file is compiled for. Functions that name kernels have this
/// as a template parameter: files of one program that are compiled for different architectures each
/// launch their own kernels, and none is compiled that a file does not launch.
template <int...>
struct architecture_list {};
#if defined(__CUDA_ARCH_LIST__)
/// Those of this file.
using architectures = architecture_list<__CUDA_ARCH_LIST__>;
#else
using architectures = architecture_list<>;
#endif

/// A failed call of the CUDA runtime as a status.
inline status cuda_status(cudaError_t code, const char* argument) {
  if (code == cudaSuccess) return {};
  return {error::cuda, argument, i64(code), cudaGetErrorString(code)};
}

/// Launches a kernel with blocks of `threads` threads and `shared_bytes` of shared memory each.
/// Reports this launch's error alone.
/// Pre: a stream_scope of the stream is alive.
template <class... Parameters, class... Arguments>
status launch_shared(void (*kernel)(Parameters...), unsigned blocks, unsigned threads,
                     unsigned shared_bytes, cudaStream_t stream, const Arguments&... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  return cuda_status(cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...), "stream");
}

/// The same without shared memory beyond what the kernel itself declares.
template <class... Parameters, class... Arguments>
status launch(void (*kernel)(Parameters...), unsigned blocks, unsigned threads, cudaStream_t stream,
              const Arguments&... arguments) {
  return launch_shared(kernel, blocks, threads, 0, stream, arguments...);
}

#endif

}  // namespace furl::kernel

FURL_HIDDEN_END
