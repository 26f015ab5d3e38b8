// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE THREAD. The parameters of groups in few instructions, where their step is of usual size: the
// divisions of make_group become products with reciprocals, which are then corrected.

#include "furl/config.hpp"
#include "furl/detail/number.hpp"
#include "furl/detail/quantize.hpp"
#include "furl/types.hpp"

namespace furl {
namespace detail {

/// What the groups of a tile have in common.
struct group_scale {
  float levels;          // 2^bits - 1
  float inverse_levels;  // 1 / levels, at most two units in the last place away
  u32 dropped;           // a mask of the bits of an f32 that metadata have not
};

/// 2^bits - 1.
FURL_HD float levels_of(int bits) {
  return float(int(low_bits(bits)));
}

/// inverse_levels: of levels_of(bits).
FURL_HD group_scale make_scale(int bits, dtype meta, float inverse_levels) {
  return {levels_of(bits), inverse_levels, meta == dtype::bf16 ? 0xffffu : 0u};
}

/// make_group of a group that is not poisoned, and whose step is 0 or from 2^-100 up to 2^100.
/// Sets `mine` and returns true, or returns false where make_group is due; flat groups have coded
/// set, and an inverse of 0.
/// T          : type of the elements; of residuals, float.
/// reciprocal : of x gives 1 / x, at most one unit in the last place away, where both are normal.
// A quotient that is within two units is made right by its remainder, as no quotient by 1..255 is
// near the middle of two floats. With one more step the reciprocal is right for all steps in bf16,
// with two for all in f32 but those with significand 0xffffff; a test tries them all.
template <class T, class Reciprocal>
FURL_HD bool make_usual_group(float lo, float hi, const group_scale& scale,
                              const Reciprocal& reciprocal, group_params& mine) {
  lo = add_rn(lo, 0.0f);                              // -0 becomes +0
  if constexpr (dtype_of<T>::value != dtype::bf16) {  // round down
    const u32 bits = bits_of(lo);
    lo = float_of((bits + (bits >> 31) * scale.dropped) & ~scale.dropped);
  }
  const float width = sub_rn(hi, lo);
  const float quotient = mul_rn(width, scale.inverse_levels);
  float step = fma_rn(fma_rn(-scale.levels, quotient, width), scale.inverse_levels, quotient);
  const u32 exact = bits_of(step);
  const bool flat = exact == 0;
  bool unusual = exact - 0x0d800000u >= 0x64000000u && !flat;  // NaN and infinities too
  step = float_of((exact + scale.dropped) & ~scale.dropped);   // round up
  float inverse = reciprocal(step);
  inverse = fma_rn(fma_rn(-step, inverse, 1.0f), inverse, inverse);
  if (scale.dropped == 0) {
    inverse = fma_rn(fma_rn(-step, inverse, 1.0f), inverse, inverse);
    unusual = unusual || (exact & 0x7fffffu) == 0x7fffffu;
  }
  mine = {lo, step, flat ? 0.0f : inverse, true};
  return !unusual;
}

}  // namespace detail
}  // namespace furl
