// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Launching on a stream whatever device is current, with the caller's CUDA state left as it was.
//
// What the calls for device memory share: their options, and the checks made before any launch.

#include "furl/config.hpp"
#include "furl/detail/checks.hpp"
#include "furl/detail/device/exclusive_sum.cuh"
#include "furl/detail/quantize.hpp"
#include "furl/options.hpp"
#include "furl/plan.hpp"
#include "furl/types.hpp"

#if !defined(__CUDACC_RTC__)
#include <cstdint>
#include <cuda_runtime.h>
#include <cuda_runtime_api.h>
#include <initializer_list>
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

#if !defined(__CUDACC_RTC__)

namespace furl {
/// Bytes of workspace that compress, decompress and decompress_add need: 0 unless the plan is
/// mixed. A workspace serves one call at a time.
FURL_HIDDEN constexpr u64 workspace_bytes(const plan& p) {
  return p.kind() == plan_kind::mixed ? u64(kernel::num_chunks(p.num_tiles())) * sizeof(u64) : 0;
}

FURL_HIDDEN_BEGIN
namespace detail {

inline status check_alignment(const void* pointer, u64 alignment, const char* argument,
                              const char* limit) {
  if (reinterpret_cast<std::uintptr_t>(pointer) % alignment == 0) return {};
  return {error::misaligned, argument, 0, limit};
}

inline status check_element_alignment(const void* data, dtype type, const char* argument) {
  return check_alignment(data, u64(size_bytes(type)), argument, "must be aligned to its elements");
}

inline status check_device_key(const random_key* key) {
  return check_alignment(key, alignof(random_key), "options.device_key",
                         "must be aligned to 8 bytes");
}

/// Refuses memory that the device cannot reach: of another device, or of the host unless it is
/// pinned, managed, or the device can read all host memory. Null is let through.
inline status check_reachable(const void* pointer, int device, const char* argument) {
  if (pointer == nullptr) return {};
  cudaPointerAttributes found{};
  if (const status s = kernel::cuda_status(cudaPointerGetAttributes(&found, pointer), argument); !s)
    return s;
  if (found.type == cudaMemoryTypeDevice && found.device != device)
    return {error::wrong_memory, argument, 0, "must be memory of the stream's device"};
  if (found.type == cudaMemoryTypeUnregistered) {
    int pageable = 0;
    const cudaError_t code =
        cudaDeviceGetAttribute(&pageable, cudaDevAttrPageableMemoryAccess, device);
    if (const status s = kernel::cuda_status(code, argument); !s) return s;
    if (pageable == 0)
      return {error::wrong_memory, argument, 0, "must be device memory, not plain host memory"};
  }
  return {};
}

struct device_argument {
  const void* pointer;
  const char* name;
};

/// All pointers of a call on the scope's stream.
inline status check_reachable(const kernel::stream_scope& scope,
                              std::initializer_list<device_argument> arguments) {
  if (const status s = kernel::cuda_status(scope.error(), "stream"); !s) return s;
  for (const device_argument& a : arguments)
    if (const status s = check_reachable(a.pointer, scope.device(), a.name); !s) return s;
  return {};
}

inline status check_workspace(bytes workspace, u64 needed_bytes, const char* argument,
                              const char* limit) {
  if (workspace.size_bytes < needed_bytes)
    return {error::wrong_size, argument, i64(workspace.size_bytes), limit};
  if (workspace.data == nullptr) return {error::null_pointer, argument, 0, "must not be null"};
  return check_alignment(workspace.data, sizeof(u64), argument, "must be aligned to 8 bytes");
}

inline status check_options(const plan& p, const options& o) {
  if (const status s = check_tile_bits(p, o.tile_bits); !s) return s;
  if (workspace_bytes(p) == 0) return {};
  return check_workspace(o.workspace, workspace_bytes(p), "options.workspace",
                         "must have at least workspace_bytes(plan) bytes");
}

/// The checks that compress, decompress and decompress_add share and that need no CUDA.
inline status check_call(const plan& p, const_values array, const char* argument, const_bytes blob,
                         const options& o) {
  if (const status s = check_kind(p, false); !s) return s;
  if (const status s = check_elements(p, array.data, array.num_elements, array.type, argument); !s)
    return s;
  if (const status s = check_element_alignment(array.data, array.type, argument); !s) return s;
  if (const status s = check_blob(p, blob.data, blob.size_bytes); !s) return s;
  if (const status s = check_apart(p, blob.data, array.data, array.size_bytes(), argument); !s)
    return s;
  if (const status s = check_device_key(o.device_key); !s) return s;
  return check_options(p, o);
}

inline status check_memory(const plan& p, const void* array, const char* argument, const void* blob,
                           const options& o, int device) {
  if (const status s = check_reachable(array, device, argument); !s) return s;
  if (const status s = check_reachable(blob, device, "blob"); !s) return s;
  if (const status s = check_reachable(o.device_key, device, "options.device_key"); !s) return s;
  if (p.kind() != plan_kind::mixed) return {};
  if (const status s = check_reachable(o.tile_bits.data, device, "options.tile_bits"); !s) return s;
  return check_reachable(o.workspace.data, device, "options.workspace");
}

/// The layout of a plan's blob. For a mixed plan, launches what works out where its tiles begin.
template <class Architectures>
status launch_layout(const plan& p, const options& o, cudaStream_t stream, blob_layout& layout) {
  layout = blob_layout(p);
  if (p.kind() != plan_kind::mixed) return {};
  const auto* const widths = static_cast<const u8*>(o.tile_bits.data);
  auto* const sums = static_cast<u64*>(o.workspace.data);
  const i64 chunks = kernel::num_chunks(p.num_tiles());
  layout.widths = widths;
  layout.chunk_sums = sums;
  if (const status s = kernel::launch(kernel::sum_widths<>, kernel::blocks_for(chunks),
                                      kernel::block_threads, stream, widths, p.num_tiles(), sums);
      !s)
    return s;
  return kernel::launch(kernel::scan_sums<>, 1, kernel::scan_threads, stream, sums, chunks);
}

}  // namespace detail
FURL_HIDDEN_END
}  // namespace furl

#endif
