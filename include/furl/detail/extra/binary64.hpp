// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE THREAD. Binary64, for sums whose terms may leave binary32. As number.hpp for binary32; but a
// product that is added to something must be exact, as that of two f32 is: a host compiler may
// contract the two.
//
// ONE THREAD. What one more bit is worth to a tile (ActNN, Chen et al., ICML 2021). The gradient
// variance that a tile's codes add is at most proportional to
//   cost / (2^bits - 1)^2,   cost = sensitivity * (sum of the squared ranges of its groups).
// That is convex in bits: giving out bits in the order of what they save is optimal. All of it is
// in binary64, where no product of these numbers overflows, nor vanishes.

#include "furl/config.hpp"
#include "furl/detail/number.hpp"
#include "furl/detail/quantize.hpp"

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

namespace furl {

/// The square of a group's range, exactly. 0 if the range is not finite: the group is poisoned
/// then, whatever its bits.
FURL_HD double squared_range(float range) {
  const double d = is_finite(range) ? to_f64(range) : 0.0;
  return mul_rn(d, d);
}

/// The range of a group from its metadata, with codes of `bits` bits.
FURL_HD float coded_range(float step, int bits) {
  return fma_rn(float(int(low_bits(bits))), step, 0.0f);
}

/// x, or the nearest of 0 and `most`; 0 for NaN.
FURL_HD double clamp_cost(double x, double most) {
  // Bits of positive numbers are in their order. Negative ones and NaN lie beyond infinity.
  const u64 bits = bits_of(x);
  if (bits > 0x7ff0000000000000ull) return 0.0;
  return bits < bits_of(most) ? x : most;
}

/// Cost of a tile. What is negative or NaN counts as 0, infinity as a large number.
FURL_HD double tile_cost(float sensitivity, double squared_ranges) {
  return mul_rn(clamp_cost(to_f64(sensitivity), 0x1p128), clamp_cost(squared_ranges, 0x1p512));
}

/// 1 / (2^bits - 1)^2 less the same for one more bit.
FURL_HD constexpr double saved_share(int bits) {
  const double before = double((1 << bits) - 1);
  const double after = double((2 << bits) - 1);
  return 1.0 / (before * before) - 1.0 / (after * after);
}

inline constexpr int max_raises = max_bits - 1;  // of a tile, from 1 bit
inline constexpr int gain_key_bits = 63;         // of gain_key

/// What a tile of that cost gains from going from `bits` to bits + 1, as an integer in the order in
/// which gains are granted, the largest first: the gain to 50 binary digits, and where these are
/// equal, the tile of fewer bits first. A tile's keys fall with bits; so those of no cost share
/// evenly. Pre: bits is 1..7.
FURL_HD u64 gain_key(double cost, int bits) {
  constexpr double share[max_bits] = {0,
                                      saved_share(1),
                                      saved_share(2),
                                      saved_share(3),
                                      saved_share(4),
                                      saved_share(5),
                                      saved_share(6),
                                      saved_share(7)};
  return (bits_of(mul_rn(cost, share[bits])) & ~u64(7)) | u64(max_raises - bits);
}

/// The largest of sensitivities first..last. Those that are negative or NaN count as 0.
FURL_HD float largest_sensitivity(const float* sensitivity, i64 first, i64 last) {
  int largest = 0;
  for (i64 i = first; i <= last; ++i) {
    const int bits = int(bits_of(sensitivity[i]));  // negative if the number is
    if (bits > largest && bits <= 0x7f800000) largest = bits;
  }
  return float_of(u32(largest));
}

}  // namespace furl
