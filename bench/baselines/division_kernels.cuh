// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE GRID. The kernels of division.cuh, each an operation of a framework: plain and coalesced.

#include <cuda_runtime.h>
#include <curand_kernel.h>

#include "baselines/bits.cuh"
#include "furl/config.hpp"
#include "furl/detail/number.hpp"

namespace furl::bench::division {

inline constexpr int window = 8;
inline constexpr int threads = 256;

/// Planes of height x width elements, one behind another; fewer than 2^32 elements in all, so that
/// indices are divided in 32 bits.
struct planes {
  i64 count;
  int height;
  int width;

  __host__ __device__ int elements() const { return height * width; }
  __host__ __device__ i64 num_elements() const { return count * elements(); }
  __host__ __device__ int cell_rows() const { return (height + window - 1) / window; }
  __host__ __device__ int cell_columns() const { return (width + window - 1) / window; }
  __host__ __device__ int cells() const { return cell_rows() * cell_columns(); }
};

/// A compressed tensor, in device memory.
struct compressed {
  bf16* lfc;    // a mean per cell
  float* lo;    // per plane: the smallest difference
  float* step;  // per plane
  u8* packed;   // 8 / bits codes a byte, the first lowest
};

/// Intermediates, in device memory.
struct intermediates {
  float* upsampled;
  float* difference;
  u8* codes;     // one byte each
  float* hi;     // per plane
  float* scale;  // per plane: steps in a unit
};

/// Adjacent floats, for loads and stores of up to 16 bytes.
template <int Count>
struct alignas(Count < 4 ? 4 * Count : 16) float_vector {
  float v[Count];
};
using vector4 = float_vector<4>;

/// An element's plane, and its index in that.
struct position {
  u32 plane;
  u32 in_plane;

  __device__ position(const planes& p, i64 element)
      : plane(u32(element) / u32(p.elements())), in_plane(u32(element) - plane * p.elements()) {}
  /// Moves to the next element; true if that is in another plane of the tensor.
  __device__ bool advance(const planes& p) {
    if (++in_plane < u32(p.elements()) || plane + 1 == p.count) return false;
    in_plane = 0;
    ++plane;
    return true;
  }
};

__device__ inline i64 thread_index() {
  return i64(blockIdx.x) * blockDim.x + threadIdx.x;
}

// ---- Kernels of compression -----------------------------------------------------------------

/// One thread a cell.
__global__ void pool(planes p, const float* x, bf16* lfc) {
  const i64 cell = thread_index();
  if (cell >= p.count * p.cells()) return;
  const i64 plane = u32(cell) / u32(p.cells());
  const int in_plane = int(cell - plane * p.cells());
  const int row = in_plane / p.cell_columns() * window;
  const int column = in_plane % p.cell_columns() * window;
  const int rows = min(window, p.height - row);
  const int columns = min(window, p.width - column);
  const float* const first = x + plane * p.elements() + row * p.width + column;
  float sum = 0.0f;
  for (int i = 0; i < rows; ++i)
#pragma unroll
    for (int j = 0; j < window; ++j)
      if (j < columns) sum += first[i * p.width + j];
  lfc[cell] = {bf16_nearest(sum / float(rows * columns))};
}

/// One block a plane.
__global__ void upsample(planes p, const bf16* lfc, float* out) {
  const bf16* const cells = lfc + i64(blockIdx.x) * p.cells();
  float* const plane = out + i64(blockIdx.x) * p.elements();
  for (int i = int(threadIdx.x); i < p.elements(); i += int(blockDim.x)) {
    const int row = i / p.width;
    const int column = i - row * p.width;
    plane[i] = to_f32(cells[row / window * p.cell_columns() + column / window]);
  }
}

/// out = a + sign * b, four elements a thread.
__global__ void add_scaled(i64 count, const float* a, const float* b, float sign, float* out) {
  const i64 first = 4 * thread_index();
  if (first + 4 <= count) {
    const vector4 left = *reinterpret_cast<const vector4*>(a + first);
    const vector4 right = *reinterpret_cast<const vector4*>(b + first);
    vector4 sum;
#pragma unroll
    for (int k = 0; k < 4; ++k) sum.v[k] = left.v[k] + sign * right.v[k];
    *reinterpret_cast<vector4*>(out + first) = sum;
  } else {
    for (i64 i = first; i < count; ++i) out[i] = a[i] + sign * b[i];
  }
}

struct smaller {
  static __device__ float of(float a, float b) { return fminf(a, b); }
};
struct larger {
  static __device__ float of(float a, float b) { return fmaxf(a, b); }
};

/// The extreme of each plane. One warp a plane.
template <class Extreme>
__global__ void reduce(planes p, const float* x, float* out) {
  const i64 plane = thread_index() / 32;
  if (plane >= p.count) return;
  const int lane = int(threadIdx.x % 32);
  const float* const first = x + plane * p.elements();
  float extreme = first[0];
#pragma unroll 8
  for (int i = lane; i < p.elements(); i += 32) extreme = Extreme::of(extreme, first[i]);
  for (int distance = 16; distance > 0; distance /= 2)
    extreme = Extreme::of(extreme, __shfl_xor_sync(0xffffffffu, extreme, distance));
  if (lane == 0) out[plane] = extreme;
}

/// One thread a plane.
__global__ void find_scales(i64 count, const float* lo, const float* hi, int levels, float* scale,
                            float* step) {
  const i64 plane = thread_index();
  if (plane >= count) return;
  const float range = hi[plane] - lo[plane];
  scale[plane] = range > 0.0f ? float(levels) / range : 0.0f;
  step[plane] = range / float(levels);
}

/// One byte a code, four elements a thread: the four words of one Philox block, whose state every
/// thread sets up for itself.
__global__ void quantize(planes p, const float* difference, const float* lo, const float* scale,
                         int levels, u64 seed, u64 offset, u8* codes) {
  const i64 first = 4 * thread_index();
  if (first >= p.num_elements()) return;
  curandStatePhilox4_32_10_t state;
  curand_init(seed, u64(thread_index()), offset, &state);
  const float4 uniform = curand_uniform4(&state);
  const float u[4] = {uniform.x, uniform.y, uniform.z, uniform.w};
  const bool whole = first + 4 <= p.num_elements();
  vector4 values{};
  if (whole) {
    values = *reinterpret_cast<const vector4*>(difference + first);
  } else {
#pragma unroll
    for (int k = 0; k < 4; ++k)
      if (first + k < p.num_elements()) values.v[k] = difference[first + k];
  }
  position at(p, first);
  float plane_lo = lo[at.plane];
  float plane_scale = scale[at.plane];
  byte_vector<4> out;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const int code = __float2int_rn((values.v[k] - plane_lo) * plane_scale + u[k] - 0.5f);
    out.v[k] = u8(min(max(code, 0), levels));
    if (at.advance(p)) {
      plane_lo = lo[at.plane];
      plane_scale = scale[at.plane];
    }
  }
  if (whole) {
    *reinterpret_cast<byte_vector<4>*>(codes + first) = out;
  } else {
#pragma unroll
    for (int k = 0; k < 4; ++k)
      if (first + k < p.num_elements()) codes[first + k] = out.v[k];
  }
}

/// One thread a packed byte. `codes` is aligned to 8 bytes.
template <int Bits>
__global__ void pack(i64 count, const u8* codes, u8* packed) {
  constexpr int per_byte = 8 / Bits;
  const i64 first = per_byte * thread_index();
  if (first >= count) return;
  u32 byte = 0;
  if (first + per_byte <= count) {
    const auto loaded = *reinterpret_cast<const byte_vector<per_byte>*>(codes + first);
#pragma unroll
    for (int k = 0; k < per_byte; ++k) byte |= u32(loaded.v[k]) << (k * Bits);
  } else {
    for (int k = 0; first + k < count; ++k) byte |= u32(codes[first + k]) << (k * Bits);
  }
  packed[first / per_byte] = u8(byte);
}

// ---- Kernels of decompression ---------------------------------------------------------------

/// One thread a packed byte.
template <int Bits>
__global__ void unpack_dequantize(planes p, const u8* packed, const float* lo, const float* step,
                                  float* out) {
  constexpr int per_byte = 8 / Bits;
  constexpr u32 levels = (1u << Bits) - 1u;
  const i64 first = per_byte * thread_index();
  if (first >= p.num_elements()) return;
  const u32 byte = packed[first / per_byte];
  position at(p, first);
  float plane_lo = lo[at.plane];
  float plane_step = step[at.plane];
  float_vector<per_byte> values;
#pragma unroll
  for (int k = 0; k < per_byte; ++k) {
    values.v[k] = float(byte >> (k * Bits) & levels) * plane_step + plane_lo;
    if (at.advance(p)) {
      plane_lo = lo[at.plane];
      plane_step = step[at.plane];
    }
  }
  if (first + per_byte <= p.num_elements()) {
    *reinterpret_cast<float_vector<per_byte>*>(out + first) = values;
  } else {
#pragma unroll
    for (int k = 0; k < per_byte; ++k)
      if (first + k < p.num_elements()) out[first + k] = values.v[k];
  }
}

}  // namespace furl::bench::division
