// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The device API, compiled once for all files that include this: library.cu has it, and the
// kernels. Any program of several files can be spared compiling the kernels in each of them in this
// way.

#include "furl/furl.cuh"

/// Declares (extern) or defines (nothing) an instance of each function.
#define FURL_TEST_LIBRARY(storage)                                                                 \
  storage template status compress<>(const plan&, const_values, bytes, random_key, cudaStream_t,   \
                                     const options&);                                              \
  storage template status decompress<>(const plan&, const_bytes, values, cudaStream_t,             \
                                       const options&);                                            \
  storage template status decompress_add<>(const plan&, const_bytes, values, cudaStream_t,         \
                                           const options&);                                        \
  storage template status decompress<>(const plan&, const_bytes, values, random_key, cudaStream_t, \
                                       const options&);                                            \
  storage template status decompress_add<>(const plan&, const_bytes, values, random_key,           \
                                           cudaStream_t, const options&);                          \
  storage template batch_status compress_batch<>(host::span<const compress_entry>, random_key,     \
                                                 cudaStream_t, const options&);                    \
  storage template batch_status decompress_batch<>(host::span<const decompress_entry>, random_key, \
                                                   cudaStream_t, const options&);                  \
  storage template status pack<>(const plan&, const_bytes, bytes, cudaStream_t, const options&);   \
  storage template status unpack<>(const plan&, const_bytes, bytes, cudaStream_t, const options&); \
  storage template status pack<>(const plan&, const_values, const codebook&, bytes, random_key,    \
                                 cudaStream_t, const options&);                                    \
  storage template status pack<>(const plan&, const_values, const codebook&, span<const float>,    \
                                 bytes, random_key, cudaStream_t, const options&);                 \
  storage template status unpack<>(const plan&, const_bytes, const codebook&, values,              \
                                   cudaStream_t, const options&);                                  \
  storage template status unpack_multiply<>(const plan&, const_bytes, const codebook&,             \
                                            const_values, values, cudaStream_t, const options&);   \
  storage template status relu<>(const plan&, const_values, values, bytes, cudaStream_t,           \
                                 const options&);                                                  \
  storage template status relu<>(const plan&, const_values, values, bytes, random_key,             \
                                 cudaStream_t, const options&);                                    \
  storage template status max_pool<>(const max_pool_plan&, const_values, values, bytes,            \
                                     cudaStream_t, const options&);                                \
  storage template status max_pool_backward<>(const max_pool_plan&, const_bytes, const_values,     \
                                              values, cudaStream_t, const options&);               \
  storage template status dropout<>(const_values, double, values, random_key, cudaStream_t,        \
                                    const options&);                                               \
  storage template status dropout<>(const plan&, const_values, double, values, bytes, random_key,  \
                                    cudaStream_t, const options&);                                 \
  storage template status measure<>(const plan&, const_values, const_bytes, span<quality>,         \
                                    quality*, bytes, cudaStream_t, const options&);                \
  storage template status squared_ranges<>(const plan&, const_values, span<double>, cudaStream_t,  \
                                           const options&);                                        \
  storage template status squared_ranges<>(const plan&, const_bytes, span<double>, cudaStream_t,   \
                                           const options&);                                        \
  storage template status expand_sensitivity<>(const plan&, span<const float>, span<float>,        \
                                               cudaStream_t, const options&);                      \
  storage template status allocate_bits<>(u64, span<const float>, span<const double>, bytes,       \
                                          bytes, cudaStream_t, const options&);                    \
  storage template status index_tiles<>(const plan&, const_bytes, bytes, cudaStream_t,             \
                                        const options&)

namespace furl {
FURL_TEST_LIBRARY(extern);
}
