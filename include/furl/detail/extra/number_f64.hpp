// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE THREAD. Binary64, for sums whose terms may leave binary32. As number.hpp for binary32; but a
// product that is added to something must be exact, as that of two f32 is: a host compiler may
// contract the two.

#include "furl/config.hpp"
#include "furl/detail/number.hpp"

#if !defined(__CUDACC_RTC__)
#include <cstring>
#endif

#if defined(__clang__) && !defined(__CUDA_ARCH__)
#pragma float_control(push)
#pragma float_control(precise, on)
#endif

namespace furl {

/// The bit pattern of a double.
FURL_HD u64 bits_of(double x) {
#if defined(__CUDA_ARCH__)
  return u64(__double_as_longlong(x));
#else
  u64 bits;
  ::std::memcpy(&bits, &x, sizeof bits);
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
  ::std::memcpy(&x, &bits, sizeof x);
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
FURL_HD double add_rn(double a, double b) {
#if defined(__CUDA_ARCH__)
  double r;
  asm("add.rn.f64 %0, %1, %2;" : "=d"(r) : "d"(a), "d"(b));
  return r;
#else
  return a + b;
#endif
}

/// a * b, rounded once.
FURL_HD double mul_rn(double a, double b) {
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

}  // namespace furl

#if defined(__clang__) && !defined(__CUDA_ARCH__)
#pragma float_control(pop)
#endif
