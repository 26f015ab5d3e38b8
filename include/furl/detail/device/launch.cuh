// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Launching on a stream, whatever device is current, with the caller's CUDA state left as it was.

#include "furl/config.hpp"
#include "furl/types.hpp"

#if !defined(__CUDACC_RTC__)
#include <cuda_runtime.h>

#include <initializer_list>

#include "furl/detail/checks.hpp"
#include "furl/plan.hpp"
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

/// The architectures that the including file is compiled for. Kernels, and functions that name
/// them, have this as a template parameter: files of one program that are compiled for different
/// architectures each launch their own kernels, and none is compiled that a file does not launch.
template <int...>
struct architecture_list {};
#if defined(__CUDA_ARCH_LIST__)
/// Those of this file.
using architectures = architecture_list<__CUDA_ARCH_LIST__>;
#else
using architectures = architecture_list<>;
#endif

/// A random stream by value, or in global memory, read when the kernel runs.
struct key_argument {
  random_key value;                    // used if the pointer is null
  const random_key* device = nullptr;  // global

  /// In the kernel.
  __device__ __forceinline__ random_key get() const { return device != nullptr ? *device : value; }
};

#if !defined(__CUDACC_RTC__)

/// A failed call of the CUDA runtime as a status.
inline status cuda_status(cudaError_t code, const char* argument) {
  if (code == cudaSuccess) return {};
  return {error::cuda, argument, i64(code), cudaGetErrorString(code)};
}

/// Blocks, threads of each, and bytes of dynamic shared memory of each.
struct grid_shape {
  unsigned blocks = 1;               // along x
  unsigned threads = block_threads;  // likewise
  unsigned shared_bytes = 0;         // beyond what the kernel declares
};

/// An argument as a kernel's parameter: by implicit conversion, and none that narrows.
template <class Parameter>
struct kernel_argument {
  Parameter value;  // as the kernel takes it
};

/// Launches a kernel. Reports this launch's error alone.
template <class... Parameters, class... Arguments>
status launch(void (*kernel)(Parameters...), const grid_shape& shape, cudaStream_t stream,
              const Arguments&... arguments) {
  static_assert(sizeof...(Parameters) == sizeof...(Arguments), "an argument for each parameter");
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(shape.blocks);
  config.blockDim = dim3(shape.threads);
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = stream;
  return cuda_status(
      cudaLaunchKernelEx(&config, kernel, kernel_argument<Parameters>{arguments}.value...),
      "stream");
}

// ---- The stream's device ---------------------------------------------------------------------

/// The device of a stream, or -1 where CUDA cannot tell: before version 12.8 of toolkit or driver.
inline int device_of(cudaStream_t stream) {
#if CUDART_VERSION >= 12080
  int device = -1;
  if (cudaStreamGetDevice(stream, &device) == cudaSuccess) return device;
  (void)cudaGetLastError();
#else
  (void)stream;
#endif
  return -1;
}

/// A pointer of a call by the name of its argument.
struct device_argument {
  const void* pointer;  // may be null
  const char* name;     // as spelt in the signature
};

/// Refuses memory that a device cannot reach: of another device, or of the host unless it is
/// pinned, managed, or the device can read all host memory. Null is let through.
inline status check_reachable(const device_argument& argument, int device) {
  if (argument.pointer == nullptr) return {};
  cudaPointerAttributes found{};
  const cudaError_t code = cudaPointerGetAttributes(&found, argument.pointer);
  if (const status s = cuda_status(code, argument.name); !s) return s;
  if (found.type == cudaMemoryTypeDevice && found.device != device)
    return {error::wrong_memory, argument.name, 0, "must be memory of the stream's device"};
  if (found.type != cudaMemoryTypeUnregistered) return {};
  int pageable = 0;
  const status asked = cuda_status(
      cudaDeviceGetAttribute(&pageable, cudaDevAttrPageableMemoryAccess, device), argument.name);
  if (!asked || pageable != 0) return asked;
  return {error::wrong_memory, argument.name, 0, "must be device memory, not plain host memory"};
}

/// Checks the pointers of a call and makes its launches, on the current device.
template <class Launches>
status run_on_device(int device, bool check_pointers,
                     const ::std::initializer_list<device_argument>& arguments,
                     const Launches& launches) {
  if (check_pointers) {
    for (const device_argument& argument : arguments)
      if (const status s = check_reachable(argument, device); !s) return s;
  }
  return launches();
}

/// Checks the pointers of a call and makes its launches, with the device of the stream current.
/// That is taken to be the device which is current already, which costs no call of the runtime,
/// until a pointer or the first launch says otherwise: a launch on a stream of another device is an
/// error and does nothing. The calling thread's last error is left as it was, unless a call of ours
/// has failed and overwritten it: then it is cleared.
template <class Launches>
status run_on(cudaStream_t stream, bool check_pointers,
              ::std::initializer_list<device_argument> arguments, const Launches& launches) {
  int current = -1;
  if (check_pointers) {
    if (const status s = cuda_status(cudaGetDevice(&current), "stream"); !s) return s;
  }
  status s = run_on_device(current, check_pointers, arguments, launches);
  const bool was_launch = s.code == error::cuda && s.value == i64(cudaErrorInvalidResourceHandle);
  if (s.code == error::cuda) (void)cudaGetLastError();
  if (!was_launch && s.code != error::wrong_memory) return s;
  const int device = device_of(stream);
  if (device < 0 || (current < 0 && cudaGetDevice(&current) != cudaSuccess)) return s;
  if (device == current) return s;
  s = cuda_status(cudaSetDevice(device), "stream");
  if (s) s = run_on_device(device, check_pointers, arguments, launches);
  if (s.code == error::cuda) (void)cudaGetLastError();
  (void)cudaSetDevice(current);
  return s;
}

/// The checks of pack and unpack, and launch(), which writes the output.
template <class Launch>
status run_codes(const plan& p, const_bytes codes, const_bytes blob,
                 const detail::named_bytes& output, cudaStream_t stream, const options& o,
                 const Launch& launch) {
  if (const status s = detail::check_codes_call(p, codes, blob); !s) return s;
  if (const status s = detail::check_device_alignment(p, blob, {}); !s) return s;
  if (const status s = detail::check_options_without_ranges(p, o, {output}); !s) return s;
  if (p.num_elements() == 0) return {};
  return run_on(stream, o.check_pointers, {{codes.data, "codes"}, {blob.data, "blob"}}, launch);
}

/// Copies between the memory of host and device, on a stream.
inline status copy(void* to, const void* from, u64 size, cudaMemcpyKind kind, cudaStream_t stream) {
  if (size == 0) return {};
  const status s = cuda_status(cudaMemcpyAsync(to, from, size_t(size), kind, stream), "stream");
  if (!s) (void)cudaGetLastError();
  return s;
}

#endif

}  // namespace furl::kernel

FURL_HIDDEN_END
