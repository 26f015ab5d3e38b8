// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE THREAD. Division by a number known beforehand, as a multiplication and a shift (Granlund and
// Montgomery, "Division by invariant integers using multiplication", PLDI 1994).

#include "furl/config.hpp"

namespace furl {

namespace detail {

/// Smallest s with d <= 2^s.
FURL_HD constexpr int ceil_log2(u64 d) {
  int s = 0;
  while (s < 63 && (u64(1) << s) < d) ++s;
  return s;
}

/// ceil(2^power / d), which must be below 2^64. Schoolbook division, bit by bit.
FURL_HD constexpr u64 reciprocal(u64 d, int power) {
  u64 quotient = 0;
  u64 rest = 1;  // of the leading 1; below d, but for d == 1
  if (d == 1) return u64(1) << power;
  for (int bit = 0; bit < power; ++bit) {
    const bool carry = rest >= d - rest;  // 2 * rest >= d, without overflow
    rest = carry ? rest - (d - rest) : 2 * rest;
    quotient = 2 * quotient + (carry ? 1 : 0);
  }
  return quotient + (rest != 0 ? 1 : 0);
}

}  // namespace detail

/// The upper half of a product.
FURL_HD u64 high_product(u64 a, u64 b) {
#if defined(__CUDA_ARCH__)
  return __umul64hi(a, b);
#else
  const u64 low = (a & 0xffffffffu) * (b & 0xffffffffu);
  const u64 cross = (a >> 32) * (b & 0xffffffffu) + (low >> 32);
  const u64 other = (a & 0xffffffffu) * (b >> 32) + (cross & 0xffffffffu);
  return (a >> 32) * (b >> 32) + (cross >> 32) + (other >> 32);
#endif
}

/// For n below 2^31: n / value is exact, because the multiplier's error times n stays below 2^31.
struct divisor32 {
  u32 value = 1;                 // the divisor
  u32 multiplier = 0x80000000u;  // ceil(2^(31 + shift) / value)
  u32 shift = 0;                 // ceil(log2(value))

  constexpr divisor32() = default;
  /// Pre: 1 <= d < 2^31.
  FURL_HD explicit constexpr divisor32(u32 d)
      : value(d),
        multiplier(u32(detail::reciprocal(d, 31 + detail::ceil_log2(d)))),
        shift(u32(detail::ceil_log2(d))) {}

  /// n / value.
  FURL_HD u32 divide(u32 n) const {
#if defined(__CUDA_ARCH__)
    return __umulhi(2 * n, multiplier) >> shift;
#else
    return u32((u64(2 * n) * multiplier) >> 32) >> shift;
#endif
  }
};

/// The same for n below 2^63.
struct divisor64 {
  u64 value = 1;                  // the divisor
  u64 multiplier = u64(1) << 63;  // ceil(2^(63 + shift) / value)
  u32 shift = 0;                  // ceil(log2(value))

  constexpr divisor64() = default;
  /// Pre: 1 <= d < 2^63.
  FURL_HD explicit constexpr divisor64(u64 d)
      : value(d),
        multiplier(detail::reciprocal(d, 63 + detail::ceil_log2(d))),
        shift(u32(detail::ceil_log2(d))) {}

  /// n / value.
  FURL_HD u64 divide(u64 n) const { return high_product(2 * n, multiplier) >> shift; }
};

}  // namespace furl
