// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE WARP. The parameters of groups. ONE THREAD. The codes of a row's four elements (FORMAT.md, A5
// and A6).

#include "furl/block/min_max.cuh"
#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/detail/device/intrinsics.cuh"
#include "furl/detail/device/pairs.cuh"
#include "furl/detail/number.hpp"
#include "furl/detail/quantize.hpp"
#include "furl/detail/usual_group.hpp"
#include "furl/types.hpp"

// Devices of compute capability 10 and 11 compute two floats in an instruction.
#if __CUDA_ARCH__ >= 1000 && __CUDA_ARCH__ < 1200
#define FURL_HAS_F32X2 1
#else
#define FURL_HAS_F32X2 0
#endif

namespace furl::detail {

/// The parameters of the lane's group, whose elements have that range.
__device__ __forceinline__ group_params make_groups(min_max range, int bits, dtype meta) {
  const group_scale scale = make_scale(bits, meta, approximate_reciprocal(levels_of(bits)));
  group_params mine;
  const bool usual =
      make_usual_group<float>(range.lo, range.hi, scale, approximate_reciprocal, mine);
  if (__any_sync(full_warp, !usual)) mine = make_group(range.lo, range.hi, bits, meta);
  return mine;
}

/// @{
/// y = x - lo of a row.
__device__ __forceinline__ void subtract_row(const float (&x)[4], float lo, float (&y)[4]) {
  FURL_UNROLL
  for (int k = 0; k < 4; k += 2) {
#if FURL_HAS_F32X2
    asm("{\n\t.reg .b64 pair, both;\n\t"
        "mov.b64 pair, {%2, %3};\n\t"
        "mov.b64 both, {%4, %4};\n\t"
        "sub.rn.f32x2 pair, pair, both;\n\t"
        "mov.b64 {%0, %1}, pair;\n\t}"
        : "=f"(y[k]), "=f"(y[k + 1])
        : "f"(x[k]), "f"(x[k + 1]), "f"(lo));
#else
    y[k] = sub_rn(x[k], lo);
    y[k + 1] = sub_rn(x[k + 1], lo);
#endif
  }
}
// From compute capability 10 on, an operand may have 16 bits.
template <class T>
__device__ __forceinline__ void subtract_row(const u32 (&x)[2], float lo, float (&y)[4]) {
#if __CUDA_ARCH__ >= 1000
  FURL_UNROLL
  for (int w = 0; w < 2; ++w) {
    if constexpr (dtype_of<T>::value == dtype::bf16) {
      asm("{\n\t.reg .b16 low, high;\n\t"
          "mov.b32 {low, high}, %2;\n\t"
          "sub.rn.f32.bf16 %0, low, %3;\n\t"
          "sub.rn.f32.bf16 %1, high, %3;\n\t}"
          : "=f"(y[2 * w]), "=f"(y[2 * w + 1])
          : "r"(x[w]), "f"(lo));
    } else {
      asm("{\n\t.reg .b16 low, high;\n\t"
          "mov.b32 {low, high}, %2;\n\t"
          "sub.rn.f32.f16 %0, low, %3;\n\t"
          "sub.rn.f32.f16 %1, high, %3;\n\t}"
          : "=f"(y[2 * w]), "=f"(y[2 * w + 1])
          : "r"(x[w]), "f"(lo));
    }
  }
#else
  float unpacked[4];
  unpack_row<T>(x, unpacked);
  subtract_row(unpacked, lo, y);
#endif
}
template <class T>
__device__ __forceinline__ void subtract_row(const float (&x)[4], float lo, float (&y)[4]) {
  subtract_row(x, lo, y);
}
/// @}

/// x = x * factor + addend of a row.
__device__ __forceinline__ void multiply_add_row(float (&x)[4], float factor, float addend) {
  FURL_UNROLL
  for (int k = 0; k < 4; k += 2) {
#if FURL_HAS_F32X2
    asm("{\n\t.reg .b64 pair, factors, addends;\n\t"
        "mov.b64 pair, {%0, %1};\n\t"
        "mov.b64 factors, {%2, %2};\n\t"
        "mov.b64 addends, {%3, %3};\n\t"
        "fma.rn.f32x2 pair, pair, factors, addends;\n\t"
        "mov.b64 {%0, %1}, pair;\n\t}"
        : "+f"(x[k]), "+f"(x[k + 1])
        : "f"(factor), "f"(addend));
#else
    x[k] = fma_rn(x[k], factor, addend);
    x[k + 1] = fma_rn(x[k + 1], factor, addend);
#endif
  }
}

/// Four codes in 8.8 fixed point, before rounding: columns (0, 1) and (2, 3) in pairs of 16 bits.
struct fixed_row {
  u32 low;
  u32 high;
};

/// The codes of a row's elements, which lie within their group's range.
template <class T>
__device__ __forceinline__ fixed_row to_fixed(const row_words<T>& x, float lo, float inverse) {
  float y[4];
  subtract_row<T>(x, lo, y);
  multiply_add_row(y, inverse, 32768.0f);
  return {select_bytes(y[0], y[1], 0x5410), select_bytes(y[2], y[3], 0x5410)};
}

/// Adds the random bits of a row's four elements (FORMAT.md, A6: bytes 0, 2, 1, 3 of the word) and
/// keeps the integer parts. No sum carries into its neighbour: a code is at most 255 * 256.
__device__ __forceinline__ u32 round_row(fixed_row t, u32 random) {
  t.low += random & 0x00ff00ffu;
  t.high += select_bytes(random, 0, 0x4341);
  return select_bytes(t.low, t.high, 0x7531);
}

}  // namespace furl::detail

#undef FURL_HAS_F32X2
