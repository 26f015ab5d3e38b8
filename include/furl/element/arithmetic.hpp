// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE THREAD. The floating-point operations of the format, each rounded once, to nearest even, with
// subnormals kept (README, Arithmetic). On the device this is spelt in PTX, whose plain forms
// neither flush nor contract, whatever -ftz or -fmad say. On the host it needs the default
// floating-point environment, which furl::host functions set for their duration.

#include "furl/config.hpp"

#if !defined(__CUDACC_RTC__)
#include <cstring>
#endif

// Clang has no macro that tells -fassociative-math, -freciprocal-math and the like, so they are
// switched off here. (For the same reason fma is not std::fma, which has the flags of its header.)
#if defined(__clang__) && !defined(__CUDA_ARCH__)
#pragma float_control(push)
#pragma float_control(precise, on)
#endif

namespace furl {

inline constexpr u32 f32_nan_bits = 0x7fffffffu;  // the only NaN that furl writes

/// The bit pattern of a float.
FURL_HD u32 bits_of(float x) {
#if defined(__CUDA_ARCH__)
  return __float_as_uint(x);
#else
  u32 bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
#endif
}

/// The float with a bit pattern.
FURL_HD float float_of(u32 bits) {
#if defined(__CUDA_ARCH__)
  return __uint_as_float(bits);
#else
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
#endif
}

/// a + b, rounded once.
FURL_HD float add(float a, float b) {
#if defined(__CUDA_ARCH__)
  float r;
  asm("add.rn.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
#else
  return a + b;
#endif
}

/// a - b, rounded once.
FURL_HD float sub(float a, float b) {
#if defined(__CUDA_ARCH__)
  float r;
  asm("sub.rn.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
#else
  return a - b;
#endif
}

/// a * b, rounded once.
FURL_HD float mul(float a, float b) {
#if defined(__CUDA_ARCH__)
  float r;
  asm("mul.rn.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
#else
  return a * b;
#endif
}

/// a / b, rounded once.
FURL_HD float div(float a, float b) {
#if defined(__CUDA_ARCH__)
  float r;
  asm("div.rn.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
#else
  return a / b;
#endif
}

/// a * b + c, rounded once.
FURL_HD float fma(float a, float b, float c) {
#if defined(__CUDA_ARCH__)
  float r;
  asm("fma.rn.f32 %0, %1, %2, %3;" : "=f"(r) : "f"(a), "f"(b), "f"(c));
  return r;
#else
  return __builtin_fmaf(a, b, c);
#endif
}

// ---- binary64: for sums whose terms may leave binary32 ----------------------------------------
// A product that is added to something must be exact, as that of two f32 is: a host compiler may
// contract the two.

/// The bit pattern of a double.
FURL_HD u64 bits_of(double x) {
#if defined(__CUDA_ARCH__)
  return u64(__double_as_longlong(x));
#else
  u64 bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
#endif
}

/// x itself, or the one NaN that furl writes in binary64.
FURL_HD double canonical(double x) {
  if ((bits_of(x) & 0x7fffffffffffffffull) <= 0x7ff0000000000000ull) return x;
#if defined(__CUDA_ARCH__)
  return __longlong_as_double(0x7fffffffffffffffll);
#else
  const u64 bits = 0x7fffffffffffffffull;
  std::memcpy(&x, &bits, sizeof x);
  return x;
#endif
}

/// x in binary64, exactly.
FURL_HD double to_f64(float x) {
#if defined(__CUDA_ARCH__)
  double r;
  asm("cvt.f64.f32 %0, %1;" : "=d"(r) : "f"(x));
  return r;
#else
  return double(x);
#endif
}

/// a + b, rounded once.
FURL_HD double add(double a, double b) {
#if defined(__CUDA_ARCH__)
  double r;
  asm("add.rn.f64 %0, %1, %2;" : "=d"(r) : "d"(a), "d"(b));
  return r;
#else
  return a + b;
#endif
}

/// a * b, rounded once.
FURL_HD double mul(double a, double b) {
#if defined(__CUDA_ARCH__)
  double r;
  asm("mul.rn.f64 %0, %1, %2;" : "=d"(r) : "d"(a), "d"(b));
  return r;
#else
  return a * b;
#endif
}

/// sum + x * x for an x that f32 holds: rounded once, since the square is exact.
FURL_HD double add_square(double sum, double x) {
#if defined(__CUDA_ARCH__)
  double r;
  asm("fma.rn.f64 %0, %1, %1, %2;" : "=d"(r) : "d"(x), "d"(sum));
  return r;
#else
  return sum + x * x;
#endif
}

/// One of two bit patterns, without a branch: loops over it vectorise.
FURL_HD u32 select(bool condition, u32 if_true, u32 if_false) {
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

}  // namespace furl

#if defined(__clang__) && !defined(__CUDA_ARCH__)
#pragma float_control(pop)
#endif
