// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Compression as ActNN (Chen et al., ICML 2021) maps it to threads: a first kernel finds smallest
// value and scale of each group of 256, a second reads the tensor again, one thread a packed byte,
// each with a cuRAND generator that it sets up for itself. A byte holds the codes of the same place
// in 8 / bits consecutive groups, so that loads are coalesced. It differs from the published
// kernels where those would be slower or wrong: the ranges use blocks of several warps, scales come
// with the ranges, nothing is copied to pad the last group, codes are limited to 2^bits - 1, and
// values are decoded by a product instead of a quotient.

#include <cuda_runtime.h>
#include <curand_kernel.h>

#include "baselines/bits.cuh"
#include "furl/config.hpp"

namespace furl::bench::actnn {

inline constexpr int group = 256;  // elements, and threads of a block

/// A compressed tensor, in device memory.
struct compressed {
  float* lo;    // per group
  float* step;  // per group
  u8* packed;   // 256 bytes for every 8 / bits groups
};

inline i64 num_groups(i64 num_elements) {
  return (num_elements + group - 1) / group;
}
/// Rows of 256 packed bytes.
inline i64 num_rows(i64 num_elements, int bits) {
  return (num_groups(num_elements) * bits + 7) / 8;
}

/// One warp a group.
template <int Bits>
__global__ void __launch_bounds__(group)
    find_ranges(i64 num_elements, const float* x, float* lo, float* step, float* scale) {
  const i64 g = (i64(blockIdx.x) * group + threadIdx.x) / 32;
  const i64 begin = g * group;
  if (begin >= num_elements) return;
  const int lane = int(threadIdx.x % 32);
  float smallest = x[begin];
  float largest = smallest;
#pragma unroll
  for (int i = 0; i < group; i += 32) {
    const i64 at = begin + i + lane;
    const float value = at < num_elements ? x[at] : smallest;
    smallest = fminf(smallest, value);
    largest = fmaxf(largest, value);
  }
  for (int distance = 16; distance > 0; distance /= 2) {
    smallest = fminf(smallest, __shfl_xor_sync(0xffffffffu, smallest, distance));
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, distance));
  }
  if (lane == 0) {
    constexpr float levels = float((1 << Bits) - 1);
    const float range = largest - smallest;
    lo[g] = smallest;
    step[g] = range / levels;
    scale[g] = range > 0.0f ? levels / range : 0.0f;
  }
}

/// One thread a packed byte.
template <int Bits>
__global__ void __launch_bounds__(group)
    quantize_pack(i64 num_elements, const float* x, const float* lo, const float* scale, u64 seed,
                  u64 offset, u8* packed) {
  constexpr int per_byte = 8 / Bits;
  constexpr int levels = (1 << Bits) - 1;
  const i64 thread = i64(blockIdx.x) * group + threadIdx.x;
  curandStatePhilox4_32_10_t state;
  curand_init(seed, u64(thread), offset, &state);
  u32 byte = 0;
#pragma unroll
  for (int k = 0; k < per_byte; ++k) {
    const i64 g = i64(blockIdx.x) * per_byte + k;
    const i64 at = g * group + threadIdx.x;
    const float u = curand_uniform(&state);
    if (at >= num_elements) break;
    const int code = __float2int_rn((x[at] - lo[g]) * scale[g] + u - 0.5f);
    byte |= u32(min(max(code, 0), levels)) << (k * Bits);
  }
  packed[thread] = u8(byte);
}

/// One thread a packed byte.
template <int Bits>
__global__ void __launch_bounds__(group)
    unpack_dequantize(i64 num_elements, const u8* packed, const float* lo, const float* step,
                      float* y) {
  constexpr int per_byte = 8 / Bits;
  constexpr u32 levels = (1u << Bits) - 1u;
  const u32 byte = packed[i64(blockIdx.x) * group + threadIdx.x];
#pragma unroll
  for (int k = 0; k < per_byte; ++k) {
    const i64 g = i64(blockIdx.x) * per_byte + k;
    const i64 at = g * group + threadIdx.x;
    if (at < num_elements) y[at] = float(byte >> (k * Bits) & levels) * step[g] + lo[g];
  }
}

/// scale : per group, what the first kernel tells the second. Errors are left to cudaGetLastError.
inline void compress(i64 num_elements, int bits, const float* x, u64 seed, u64 offset, float* scale,
                     const compressed& out, cudaStream_t stream) {
  const i64 range_threads = 32 * num_groups(num_elements);
  const auto range_blocks = unsigned((range_threads + group - 1) / group);
  const auto rows = unsigned(num_rows(num_elements, bits));
  with_bits(bits, [&](auto constant) {
    constexpr int constant_bits = decltype(constant)::value;
    find_ranges<constant_bits>
        <<<range_blocks, group, 0, stream>>>(num_elements, x, out.lo, out.step, scale);
    quantize_pack<constant_bits>
        <<<rows, group, 0, stream>>>(num_elements, x, out.lo, scale, seed, offset, out.packed);
  });
}

inline void decompress(i64 num_elements, int bits, const compressed& in, float* y,
                       cudaStream_t stream) {
  const auto rows = unsigned(num_rows(num_elements, bits));
  with_bits(bits, [&](auto constant) {
    constexpr int constant_bits = decltype(constant)::value;
    unpack_dequantize<constant_bits>
        <<<rows, group, 0, stream>>>(num_elements, in.packed, in.lo, in.step, y);
  });
}

/// Bytes that the kernels read and write: every array once a kernel.
inline u64 compress_bytes(i64 num_elements, int bits) {
  const u64 x = u64(num_elements) * sizeof(float);
  const u64 per_group = u64(num_groups(num_elements)) * sizeof(float);
  const u64 ranging = x + 3 * per_group;
  const u64 quantizing = x + 2 * per_group + u64(num_rows(num_elements, bits)) * group;
  return ranging + quantizing;
}
inline u64 decompress_bytes(i64 num_elements, int bits) {
  const u64 pairs = u64(num_groups(num_elements)) * 2 * sizeof(float);
  return u64(num_rows(num_elements, bits)) * group + pairs + u64(num_elements) * sizeof(float);
}

}  // namespace furl::bench::actnn
