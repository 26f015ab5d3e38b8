// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE THREAD. What one more bit is worth to a tile (ActNN, Chen et al., ICML 2021). The gradient
// variance that a tile's codes add is at most proportional to
//   cost / (2^bits - 1)^2,   cost = sensitivity * (sum of the squared ranges of its groups).
// That is convex in bits: giving out bits in the order of what they save is optimal. All of it is
// in binary64, where no product of these numbers overflows, nor vanishes.

#include "furl/config.hpp"
#include "furl/detail/extra/number_f64.hpp"
#include "furl/detail/number.hpp"
#include "furl/detail/quantize.hpp"

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
