// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE THREAD. Pairs of 16-bit floats in a word, the first in the low half.

#include "furl/config.hpp"
#include "furl/detail/device/intrinsics.cuh"
#include "furl/detail/number.hpp"

namespace furl {

/// The two elements of a word.
struct f32_pair {
  float low;   // the lower half
  float high;  // the upper half
};

/// The elements of a word as f32.
template <class T>
__device__ __forceinline__ f32_pair unpack_pair(u32 word) {
  f32_pair r;
  if constexpr (dtype_of<T>::value == dtype::bf16) {
    asm("shl.b32 %0, %1, 16;" : "=f"(r.low) : "r"(word));
    asm("and.b32 %0, %1, 0xffff0000;" : "=f"(r.high) : "r"(word));
  } else {
    asm("{\n\t.reg .b16 low, high;\n\t"
        "mov.b32 {low, high}, %2;\n\t"
        "cvt.f32.f16 %0, low;\n\t"
        "cvt.f32.f16 %1, high;\n\t}"
        : "=f"(r.low), "=f"(r.high)
        : "r"(word));
  }
  return r;
}

/// An element of any type that dtype_of knows, as f32.
template <class T>
__device__ __forceinline__ float element_to_f32(const T& x) {
  if constexpr (sizeof(T) == 4) {
    return x;
  } else if constexpr (dtype_of<T>::value == dtype::bf16) {
    return f32_from_bf16(reinterpret_cast<const u16&>(x));
  } else {
    return f32_from_f16(reinterpret_cast<const u16&>(x));
  }
}

/// f32 rounded to T, to nearest even, and back.
template <class T>
__device__ __forceinline__ float round_element(float x) {
  if constexpr (sizeof(T) == 4) {
    return canonical(x);
  } else if constexpr (dtype_of<T>::value == dtype::bf16) {
    return round_to_bf16(x);
  } else {
    return f32_from_f16(f16_nearest(x));
  }
}

/// Two floats as decompress stores them: to nearest even, what lies beyond the largest finite value
/// becomes that value (FORMAT.md, A7).
template <class T>
__device__ __forceinline__ u32 saturate_pair(float low, float high) {
// The PTX of CUDA 12.0 cannot saturate pairs. Clang defines CUDART_VERSION alone, NVRTC the others.
#if __CUDA_ARCH__ >= 800 && CUDART_VERSION != 12000 && \
    __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ != 1200
  u32 word;
  if constexpr (dtype_of<T>::value == dtype::bf16) {
    asm("cvt.rn.satfinite.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  } else {
    asm("cvt.rn.satfinite.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  }
  return word;
#else
  if constexpr (dtype_of<T>::value == dtype::bf16) {
    return u32(bf16_saturated(low)) | u32(bf16_saturated(high)) << 16;
  } else {
    return u32(f16_saturated(low)) | u32(f16_saturated(high)) << 16;
  }
#endif
}

/// Two floats as decompress_add stores them: to nearest even, overflow gives infinity.
template <class T>
__device__ __forceinline__ u32 round_pair(float low, float high) {
#if __CUDA_ARCH__ >= 800
  u32 word;
  if constexpr (dtype_of<T>::value == dtype::bf16) {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  } else {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  }
  return word;
#else
  if constexpr (dtype_of<T>::value == dtype::bf16) {
    return u32(bf16_nearest(low)) | u32(bf16_nearest(high)) << 16;
  } else {
    return u32(f16_nearest(low)) | u32(f16_nearest(high)) << 16;
  }
#endif
}

/// The smaller element of each half.
template <class T>
__device__ __forceinline__ u32 min_nan_pair(u32 a, u32 b) {
#if __CUDA_ARCH__ >= 800
  u32 r;
  if constexpr (dtype_of<T>::value == dtype::bf16) {
    asm("min.NaN.bf16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  } else {
    asm("min.NaN.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  }
  return r;
#else
  const auto x = unpack_pair<T>(a);
  const auto y = unpack_pair<T>(b);
  return round_pair<T>(min_nan(x.low, y.low), min_nan(x.high, y.high));
#endif
}

/// The larger element of each half.
template <class T>
__device__ __forceinline__ u32 max_nan_pair(u32 a, u32 b) {
#if __CUDA_ARCH__ >= 800
  u32 r;
  if constexpr (dtype_of<T>::value == dtype::bf16) {
    asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  } else {
    asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  }
  return r;
#else
  const auto x = unpack_pair<T>(a);
  const auto y = unpack_pair<T>(b);
  return round_pair<T>(max_nan(x.low, y.low), max_nan(x.high, y.high));
#endif
}

/// Whether the device compares pairs of T in one instruction.
template <class T>
inline constexpr bool compares_pairs =
#if __CUDA_ARCH__ >= 900
    dtype_of<T>::value == dtype::bf16 ||
#endif
    dtype_of<T>::value == dtype::f16;

/// ffff in each half whose element of a is at least that of b, else 0; also for NaN.
template <class T>
__device__ __forceinline__ u32 at_least_pair(u32 a, u32 b) {
  u32 r;
  if constexpr (dtype_of<T>::value == dtype::f16) {
    asm("set.ge.u32.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  } else if constexpr (compares_pairs<T>) {
    asm("set.ge.u32.bf16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  } else {
    const auto x = unpack_pair<T>(a);
    const auto y = unpack_pair<T>(b);
    r = select_bytes(u32(minus_at_least(x.low, y.low)), u32(minus_at_least(x.high, y.high)),
                     0x5410);
  }
  return r;
}

/// A threshold, which is not NaN, as elements are compared with it: the smallest element that is at
/// least as large, of 16-bit types in both halves of a word.
template <class T>
__device__ __forceinline__ u32 threshold_word(float threshold) {
  if constexpr (sizeof(T) == 4) {
    return bits_of(threshold);
  } else {
    const T nearest = round_to<T>(threshold);
    u32 bits = nearest.bits;
    if (minus_at_least(to_f32(nearest), threshold) == 0)
      bits += (bits >> 15) != 0 ? 0xffffffffu : 1u;
    return bits << 16 | bits;
  }
}

/// A pair of them.
template <class T>
inline constexpr u32 minus_infinities =
    dtype_of<T>::value == dtype::bf16 ? 0xff80ff80u : 0xfc00fc00u;

}  // namespace furl
