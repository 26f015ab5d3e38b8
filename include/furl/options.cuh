// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the calls for device memory share: their options, and the checks made before any launch.

#include "furl/arguments.hpp"
#include "furl/config.hpp"
#include "furl/element/philox.hpp"
#include "furl/given_ranges.hpp"
#include "furl/kernel/launch.cuh"
#include "furl/kernel/widths.cuh"
#include "furl/plan.hpp"
#include "furl/status.hpp"
#include "furl/view.hpp"

#if !defined(__CUDACC_RTC__)
#include <cuda_runtime_api.h>

#include <cstdint>
#include <initializer_list>

namespace furl {
inline namespace v0_1 {

/// What most calls leave alone. All pointers are to device memory, and what they point to must stay
/// until the call's work on the stream is done.
struct options {
  /// For a mixed plan: the width of each tile, one byte each. They cannot be checked without
  /// waiting: each must be 1..8, and together the plan's sum_of_widths. Apart from what the call
  /// writes.
  const_bytes widths = {};
  /// For a mixed plan: workspace_bytes(plan) bytes or more, aligned to 8, written to.
  bytes workspace = {};
  /// compress reads the random stream from here when it runs, instead of from `key`: so a replay of
  /// a CUDA graph can draw fresh bits. Aligned to 8.
  const random_key* device_key = nullptr;
  /// For compress: ranges in place of measured ones, read when it runs.
  given_ranges ranges = {};
};

}  // namespace v0_1

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
  if (const status s = check_widths_array(p, o.widths); !s) return s;
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
  if (const status s = check_reachable(o.widths.data, device, "options.widths"); !s) return s;
  return check_reachable(o.workspace.data, device, "options.workspace");
}

/// The layout of a plan's blob. For a mixed plan, launches what works out where its tiles begin.
template <class Architectures>
status launch_layout(const plan& p, const options& o, cudaStream_t stream, blob_layout& layout) {
  layout = blob_layout(p);
  if (p.kind() != plan_kind::mixed) return {};
  const auto* const widths = static_cast<const u8*>(o.widths.data);
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
