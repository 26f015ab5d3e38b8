// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What DIVISION (Wang et al., ICML 2023) does to an NCHW activation, as a framework runs it: one
// kernel an operation, with full-size f32 intermediates. The mean of every 8 x 8 cell, its
// up-sampling, the difference, smallest and largest of each plane, stochastic codes, packing. Every
// kernel by itself is a plain, coalesced one.
// It differs from the published pipeline where that one would be slower or wrong: it has no
// framework between the kernels, extremes come without their indices, cells are aligned and those
// at the edge are smaller, codes are limited to 2^bits - 1, and each plane's step stays f32.

#include <cuda_runtime.h>

#include "baselines/bits.cuh"
#include "baselines/division_kernels.cuh"
#include "furl/config.hpp"
#include "furl/detail/number.hpp"

namespace furl::bench::division {

inline unsigned blocks_for(i64 num_threads) {
  return unsigned((num_threads + threads - 1) / threads);
}
inline i64 packed_bytes(const planes& p, int bits) {
  return (p.num_elements() * bits + 7) / 8;
}

/// x and all arrays are aligned to 16 bytes. Errors are left to cudaGetLastError.
inline void compress(const planes& p, int bits, const float* x, u64 seed, u64 offset,
                     const intermediates& between, const compressed& out, cudaStream_t stream) {
  const i64 n = p.num_elements();
  const int levels = (1 << bits) - 1;
  pool<<<blocks_for(p.count * p.cells()), threads, 0, stream>>>(p, x, out.lfc);
  upsample<<<unsigned(p.count), threads, 0, stream>>>(p, out.lfc, between.upsampled);
  add_scaled<<<blocks_for((n + 3) / 4), threads, 0, stream>>>(n, x, between.upsampled, -1.0f,
                                                              between.difference);
  reduce<smaller><<<blocks_for(32 * p.count), threads, 0, stream>>>(p, between.difference, out.lo);
  reduce<larger>
      <<<blocks_for(32 * p.count), threads, 0, stream>>>(p, between.difference, between.hi);
  find_scales<<<blocks_for(p.count), threads, 0, stream>>>(p.count, out.lo, between.hi, levels,
                                                           between.scale, out.step);
  quantize<<<blocks_for((n + 3) / 4), threads, 0, stream>>>(
      p, between.difference, out.lo, between.scale, levels, seed, offset, between.codes);
  with_bits(bits, [&](auto constant) {
    constexpr int constant_bits = decltype(constant)::value;
    pack<constant_bits>
        <<<blocks_for(packed_bytes(p, bits)), threads, 0, stream>>>(n, between.codes, out.packed);
  });
}

inline void decompress(const planes& p, int bits, const compressed& in,
                       const intermediates& between, float* y, cudaStream_t stream) {
  const i64 n = p.num_elements();
  with_bits(bits, [&](auto constant) {
    constexpr int constant_bits = decltype(constant)::value;
    unpack_dequantize<constant_bits><<<blocks_for(packed_bytes(p, bits)), threads, 0, stream>>>(
        p, in.packed, in.lo, in.step, between.difference);
  });
  upsample<<<unsigned(p.count), threads, 0, stream>>>(p, in.lfc, between.upsampled);
  add_scaled<<<blocks_for((n + 3) / 4), threads, 0, stream>>>(n, between.difference,
                                                              between.upsampled, 1.0f, y);
}

/// Bytes that the kernels of compress read and write: every array once a kernel.
inline u64 compress_bytes(const planes& p, int bits) {
  const u64 x = u64(p.num_elements()) * sizeof(float);
  const u64 lfc = u64(p.count) * u64(p.cells()) * sizeof(bf16);
  const u64 extreme = u64(p.count) * sizeof(float);
  const u64 codes = u64(p.num_elements());
  const u64 pooling = x + lfc;
  const u64 upsampling = lfc + x;
  const u64 subtracting = 3 * x;
  const u64 reducing = 2 * (x + extreme);
  const u64 scaling = 4 * extreme;
  const u64 quantizing = x + 2 * extreme + codes;
  const u64 packing = codes + u64(packed_bytes(p, bits));
  return pooling + upsampling + subtracting + reducing + scaling + quantizing + packing;
}
inline u64 decompress_bytes(const planes& p, int bits) {
  const u64 y = u64(p.num_elements()) * sizeof(float);
  const u64 lfc = u64(p.count) * u64(p.cells()) * sizeof(bf16);
  const u64 pairs = u64(p.count) * 2 * sizeof(float);
  const u64 dequantizing = u64(packed_bytes(p, bits)) + pairs + y;
  const u64 upsampling = lfc + y;
  return dequantizing + upsampling + 3 * y;
}

}  // namespace furl::bench::division
