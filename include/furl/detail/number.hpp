// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE THREAD. The arithmetic of the format (FORMAT.md): binary32 operations that are each rounded
// once, to nearest even, with subnormals kept; and the conversions between f32, f16 and bf16. These
// work on bit patterns without a branch, so that loops over them vectorise, and follow IEEE but for
// those that saturate; every NaN becomes the one NaN of the target type.
//
// On the device the operations are spelt in PTX, whose plain forms neither flush nor contract,
// whatever -ftz or -fmad say. On the host they need the default floating-point environment, which
// calls set for their duration. Clang has no macro that tells -fassociative-math and the like, so
// they are switched off here, and fma is the builtin: std::fma has the flags of its header.

#include "furl/config.hpp"
#include "furl/types.hpp"

#if !defined(__CUDACC_RTC__)
#if !defined(__GNUC__)
#include <cmath>
#endif
#include <cstring>
#endif

#if defined(__clang__) && !defined(__CUDA_ARCH__)
#pragma float_control(push)
#pragma float_control(precise, on)
#endif

namespace furl {

inline constexpr u32 f32_nan_bits = 0x7fffffffu;       // the only NaN that furl writes
inline constexpr u16 nan_bits_16 = 0x7fffu;            // likewise, in f16 and in bf16
inline constexpr u32 f32_infinity_bits = 0x7f800000u;  // +infinity

/// The bit pattern of a float.
FURL_HD u32 bits_of(float x) {
#if defined(__CUDA_ARCH__)
  return __float_as_uint(x);
#else
  u32 bits;
  ::std::memcpy(&bits, &x, sizeof bits);
  return bits;
#endif
}

/// The float with a bit pattern.
FURL_HD float float_of(u32 bits) {
#if defined(__CUDA_ARCH__)
  return __uint_as_float(bits);
#else
  float x;
  ::std::memcpy(&x, &bits, sizeof x);
  return x;
#endif
}

/// a + b, rounded once.
FURL_HD float add_rn(float a, float b) {
#if defined(__CUDA_ARCH__)
  float r;
  asm("add.rn.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
#else
  return a + b;
#endif
}

/// a - b, rounded once.
FURL_HD float sub_rn(float a, float b) {
#if defined(__CUDA_ARCH__)
  float r;
  asm("sub.rn.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
#else
  return a - b;
#endif
}

/// a * b, rounded once.
FURL_HD float mul_rn(float a, float b) {
#if defined(__CUDA_ARCH__)
  float r;
  asm("mul.rn.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
#else
  return a * b;
#endif
}

/// a / b, rounded once.
FURL_HD float div_rn(float a, float b) {
#if defined(__CUDA_ARCH__)
  float r;
  asm("div.rn.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
#else
  return a / b;
#endif
}

/// a * b + c, rounded once.
FURL_HD float fma_rn(float a, float b, float c) {
#if defined(__CUDA_ARCH__)
  float r;
  asm("fma.rn.f32 %0, %1, %2, %3;" : "=f"(r) : "f"(a), "f"(b), "f"(c));
  return r;
#elif defined(__GNUC__)
  return __builtin_fmaf(a, b, c);
#else
  return ::std::fma(a, b, c);
#endif
}

/// One of two bit patterns, without a branch: loops over it vectorise.
FURL_HD u32 select_bits(bool condition, u32 if_true, u32 if_false) {
  const u32 mask = 0u - u32(condition);
  return (if_true & mask) | (if_false & ~mask);
}

/// a > b, also for subnormal numbers. On the host in the default floating-point environment.
FURL_HD bool is_above(float a, float b) {
#if defined(__CUDA_ARCH__)
  u32 r;
  asm("set.gt.u32.f32 %0, %1, %2;" : "=r"(r) : "f"(a), "f"(b));
  return r != 0;
#else
  return a > b;
#endif
}

/// Integers in the order of the floats, -0 just below +0, NaNs beyond the infinities: their
/// smallest and largest are found in any order and any floating-point mode.
FURL_HD int ordered(float x) {
  const int bits = int(bits_of(x));
  return bits ^ ((bits >> 31) & 0x7fffffff);
}

/// The inverse of ordered.
FURL_HD float from_ordered(int key) {
  return float_of(u32(key ^ ((key >> 31) & 0x7fffffff)));
}

// Tests on bit patterns hold in every floating-point mode.

/// Whether x is a NaN.
FURL_HD bool is_nan(float x) {
  return (bits_of(x) & 0x7fffffffu) > 0x7f800000u;
}

/// Whether x is 0 or -0.
FURL_HD bool is_zero(float x) {
  return (bits_of(x) & 0x7fffffffu) == 0;
}

/// Whether x is neither a NaN nor an infinity.
FURL_HD bool is_finite(float x) {
  return (bits_of(x) & 0x7f800000u) != 0x7f800000u;
}

/// x itself, or the one NaN that furl writes.
FURL_HD float canonical(float x) {
  return is_nan(x) ? float_of(f32_nan_bits) : x;
}

/// Exact, as every bf16 is an f32.
FURL_HD float f32_from_bf16(u16 bits) {
  return float_of(u32(bits) << 16);
}

/// To nearest even. Overflow gives infinity.
FURL_HD u16 bf16_nearest(float x) {
  const u32 bits = bits_of(x);
  const u32 rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return u16(select_bits((bits & 0x7fffffffu) > f32_infinity_bits, nan_bits_16, rounded));
}

/// To nearest even, and back.
FURL_HD float round_to_bf16(float x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  u32 r;  // a pair of bf16 whose upper half is x and whose lower half is 0
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(x), "f"(0.0f));
  return float_of(r);
#else
  return f32_from_bf16(bf16_nearest(x));
#endif
}

/// Towards minus infinity: the largest bf16 that is not above x.
FURL_HD u16 bf16_down(float x) {
  const u32 bits = bits_of(x);
  const u32 away = (bits >> 31) != 0 ? 0xffffu : 0u;  // a negative number grows in magnitude
  return u16(
      select_bits((bits & 0x7fffffffu) > f32_infinity_bits, nan_bits_16, (bits + away) >> 16));
}

/// Towards plus infinity: the smallest bf16 that is not below x.
FURL_HD u16 bf16_up(float x) {
  const u32 bits = bits_of(x);
  const u32 away = (bits >> 31) != 0 ? 0u : 0xffffu;
  return u16(
      select_bits((bits & 0x7fffffffu) > f32_infinity_bits, nan_bits_16, (bits + away) >> 16));
}

/// To nearest even; all beyond the largest finite value, infinities too, becomes that value.
FURL_HD u16 bf16_saturated(float x) {
  const u16 nearest = bf16_nearest(x);
  return u16(nearest - u16((nearest & 0x7fffu) == 0x7f80u));
}

/// Exact, as every f16 is an f32.
FURL_HD float f32_from_f16(u16 bits) {
  const u32 sign = (u32(bits) & 0x8000u) << 16;
  const u32 magnitude = bits & 0x7fffu;
  // A subnormal is its fraction times 2^-24: exact, and never subnormal in f32.
  const u32 subnormal = bits_of(float(int(magnitude)) * 0x1p-24f);
  const u32 normal = (magnitude << 13) + (112u << 23);
  const u32 special = (magnitude << 13) + (224u << 23);
  const u32 large = select_bits(magnitude < 0x7c00u, normal, special);
  return float_of(sign | select_bits(magnitude < 0x0400u, subnormal, large));
}

/// To nearest even. Overflow gives infinity.
FURL_HD u16 f16_nearest(float x) {
  const u32 bits = bits_of(x);
  const u32 sign = (bits >> 16) & 0x8000u;
  const u32 magnitude = bits & 0x7fffffffu;
  // Below 2^-14 the last place of f16 is 2^-24, that of 0.5 in f32: the addition rounds.
  const u32 subnormal = bits_of(add_rn(float_of(magnitude), 0.5f)) - 0x3f000000u;
  const u32 normal = (magnitude - (112u << 23) + 0x0fffu + ((magnitude >> 13) & 1u)) >> 13;
  const u32 finite = select_bits(magnitude < 0x38800000u, subnormal, normal);
  const u32 result = sign | select_bits(magnitude < 0x477ff000u, finite, 0x7c00u);
  return u16(select_bits(magnitude > f32_infinity_bits, nan_bits_16, result));
}

/// To nearest even; all beyond the largest finite value, infinities too, becomes that value.
FURL_HD u16 f16_saturated(float x) {
  const u16 nearest = f16_nearest(x);
  return u16(nearest - u16((nearest & 0x7fffu) == 0x7c00u));
}

/// @{
/// The value of an element, exactly.
FURL_HD float to_f32(float x) {
  return x;
}
FURL_HD float to_f32(f16 x) {
  return f32_from_f16(x.bits);
}
FURL_HD float to_f32(bf16 x) {
  return f32_from_bf16(x.bits);
}
/// @}

/// What decompress writes for the value x (FORMAT.md, A7).
template <class T>
FURL_HD T saturate_to(float x) {
  if constexpr (dtype_of<T>::value == dtype::f32) {
    return canonical(x);
  } else if constexpr (dtype_of<T>::value == dtype::f16) {
    return {f16_saturated(x)};
  } else {
    return {bf16_saturated(x)};
  }
}

/// What decompress_add writes for the sum x (FORMAT.md, A7).
template <class T>
FURL_HD T round_to(float x) {
  if constexpr (dtype_of<T>::value == dtype::f32) {
    return canonical(x);
  } else if constexpr (dtype_of<T>::value == dtype::f16) {
    return {f16_nearest(x)};
  } else {
    return {bf16_nearest(x)};
  }
}

#if !defined(__CUDACC_RTC__)
/// Calls function(T{}) with the element type of a dtype.
template <class Function>
FURL_HIDDEN auto with_type(dtype type, const Function& function) {
  switch (type) {
    case dtype::f16:
      return function(f16{});
    case dtype::bf16:
      return function(bf16{});
    default:
      return function(0.0f);
  }
}
#endif

}  // namespace furl

#if defined(__clang__) && !defined(__CUDA_ARCH__)
#pragma float_control(pop)
#endif
