// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where a call runs: both engines have the same calls, so that furl.cpp is written once.

#include "furl.h"
#include "furl/extra/activation.hpp"
#include "furl/extra/codebook.hpp"
#include "furl/furl.hpp"
#include "tensors.hpp"
#if defined(__CUDACC__)
#include "furl/compress.cuh"
#include "furl/extra/activation.cuh"
#include "furl/extra/codebook.cuh"
#endif

struct furl_pool {
  furl::host::thread_pool threads;
};

namespace furl_c {

// A call of the library with what says where it runs behind its arguments.
#define FURL_C_CALL(name, function, ...)         \
  template <class... Arguments>                  \
  status name(const Arguments&... given) const { \
    return function(given..., __VA_ARGS__);      \
  }

struct host_engine {
  furl::host::options o;

  FURL_C_CALL(compress, furl::host::compress, o)
  FURL_C_CALL(decompress, furl::host::decompress, o)
  FURL_C_CALL(decompress_add, furl::host::decompress_add, o)
  FURL_C_CALL(pack, furl::host::pack, o.pool)
  FURL_C_CALL(unpack, furl::host::unpack, o.pool)
  FURL_C_CALL(relu, furl::host::relu, o.pool)
  FURL_C_CALL(unpack_multiply, furl::host::unpack_multiply, o.pool)
};

#if defined(__CUDACC__)
struct device_engine {
  cudaStream_t stream;
  furl::options o;

  FURL_C_CALL(compress, furl::compress, stream, o)
  FURL_C_CALL(decompress, furl::decompress, stream, o)
  FURL_C_CALL(decompress_add, furl::decompress_add, stream, o)
  FURL_C_CALL(pack, furl::pack, stream, o)
  FURL_C_CALL(unpack, furl::unpack, stream, o)
  FURL_C_CALL(relu, furl::relu, stream, o)
  FURL_C_CALL(unpack_multiply, furl::unpack_multiply, stream, o)
};
#endif

#undef FURL_C_CALL

/// body(engine) with the engine of a place.
template <class Body>
status run(const place& where, const furl_options* given, const Body& body) {
  furl_options o{};
  if (const status s = copy_known(given, "options", o); !s) return s;
  if (o.reserved != 0) return {error::out_of_range, "options.reserved", o.reserved, "must be 0"};
  if (!where.is_device) {
    if (o.device_key != nullptr)
      return {error::wrong_memory, "options.device_key", 0, "is for tensors on a device"};
    furl::host::options of_host;
    if (o.pool != nullptr) of_host.pool = &o.pool->threads;
    return body(host_engine{of_host});
  }
#if defined(__CUDACC__)
  furl::options of_device;
  of_device.device_key = reinterpret_cast<const furl::random_key*>(o.device_key);
  return body(device_engine{static_cast<cudaStream_t>(o.stream), of_device});
#else
  return {error::wrong_memory, "device", 0, "this libfurl was built without CUDA"};
#endif
}

}  // namespace furl_c
