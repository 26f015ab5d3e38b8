// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE THREAD. Per-group affine quantisation (README, A3 to A5, A7; ActNN, Chen et al., ICML 2021,
// section 4), with the metadata rounded first and the codes made from the rounded pair, so that
// narrow metadata adds no bias.

#include "furl/config.hpp"
#include "furl/dtype.hpp"
#include "furl/element/arithmetic.hpp"
#include "furl/element/pack.hpp"

namespace furl {

/// How a value between two codes is rounded (README, A5 and A6).
enum class rounding : u8 { stochastic, nearest };

inline constexpr float smallest_normal = 0x1p-126f;  // of f32
inline constexpr u32 nearest_bits = 128;             // in place of random bits: half-way goes up

/// How a group is coded. lo and step are exact in the metadata type and are what is stored.
struct group_params {
  float lo;       // value of code 0
  float step;     // between codes
  float inverse;  // 1 / step
  bool coded;     // false: the group is flat (step is 0) or poisoned (both NaN); all codes are 0
};

/// Parameters of a group whose elements range over lo..hi, NaN if any is NaN.
/// Pre: meta is bf16 or f32; bits is 1..8.
FURL_HD group_params make_group(float lo, float hi, int bits, dtype meta) {
  const float levels = float(int(low_bits(bits)));
  lo = add(lo, 0.0f);  // -0 becomes +0
  hi = add(hi, 0.0f);
  if (meta == dtype::bf16) lo = f32_from_bf16(bf16_down(lo));
  float step = div(sub(hi, lo), levels);
  if (meta == dtype::bf16) step = f32_from_bf16(bf16_up(step));
  if (!is_finite(fma(levels, step, lo))) {
    const float nan = float_of(f32_nan_bits);
    return {nan, nan, nan, false};
  }
  // A step is never negative, so its bits order as its value, subnormals included.
  if (bits_of(step) < bits_of(smallest_normal)) return {lo, 0.0f, 0.0f, false};
  return {lo, step, div(1.0f, step), true};
}

/// The code of r in 8.8 fixed point, at most 256 * (2^bits - 1). The sum's ulp is 1/256, so its
/// low 16 bits are that number.
/// Pre: lo <= r <= hi of a coded group.
FURL_HD u32 fixed_point(float r, float lo, float inverse) {
  return bits_of(fma(sub(r, lo), inverse, 32768.0f)) & 0xffffu;
}

/// Rounds a fixed-point code up or down: `u` is 8 random bits (unbiased), or nearest_bits.
FURL_HD u32 round_code(u32 fixed, u32 u) {
  return (fixed + u) >> 8;
}

/// The value of a code, before any LFC is added.
FURL_HD float dequantize(u32 code, float step, float lo) {
  return fma(float(int(code)), step, lo);
}

/// A gradient times a level of a codebook (README, A9). A level of 0 drops it, whatever it is.
FURL_HD float scale_by_level(float g, float level) {
  return is_zero(level) ? 0.0f : mul(g, level);
}

/// Bit pattern of lo or step as stored in bf16: exact.
FURL_HD u16 stored_bf16(float x) {
  return u16(bits_of(x) >> 16);
}

}  // namespace furl
