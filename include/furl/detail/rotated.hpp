// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE THREAD. The arithmetic of rotated codes (FORMAT.md, R1 to R9) that is the same on host and
// device: signs, butterflies, the scale of a block, the mean of its positives.
//
// A rotation is a random diagonal of signs before a Walsh-Hadamard transform. What it gives follows
// nearly a normal law, whatever it is given, so that one set of levels serves all data; and a scale
// that makes the restored block's projection on the original right makes it unbiased over the signs
// (DRIVE, Vargaftik et al., NeurIPS 2021; EDEN, ICML 2022). A second rotation within the rows of a
// block is for blocks in which a few elements dominate: those are not mixed well by one.

#include "furl/config.hpp"
#include "furl/detail/number.hpp"
#include "furl/detail/quantize.hpp"

#if !defined(__CUDACC_RTC__) && !defined(__GNUC__)
#include <cmath>
#endif

#if defined(__clang__) && !defined(__CUDA_ARCH__)
#pragma float_control(push)
#pragma float_control(precise, on)
#endif

namespace furl {

/// sqrt(x), rounded once.
FURL_HD float sqrt_rn(float x) {
#if defined(__CUDA_ARCH__)
  float r;
  asm("sqrt.rn.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
#elif defined(__GNUC__)
  return __builtin_sqrtf(x);
#else
  return ::std::sqrt(x);
#endif
}

/// Added to the number of a tile for the signs of the second rotation.
inline constexpr u64 second_rotation_tile = u64(1) << 57;

/// Number of the bit that says whether the element of a row and of column 4 l + k of a tile changes
/// its sign, in the word of columns 4 l .. 4 l + 3.
FURL_HD constexpr int sign_bit(int row, int k) {
  return 16 * (k & 1) + 2 * row + (k >> 1);
}

/// Number of the bit of a column of a block in the words of codes (R7).
FURL_HD constexpr int code_bit(int column) {
  return column / 4 + 8 * (column % 4);
}

/// (a, b) becomes (a + b, a - b).
FURL_HD void butterfly(float& a, float& b) {
  const float sum = add_rn(a, b);
  b = sub_rn(a, b);
  a = sum;
}
/// On integers modulo a power of two: their type's width is enough for all sums.
template <class Integer>
FURL_HD void butterfly(Integer& a, Integer& b) {
  const Integer sum = Integer(a + b);
  b = Integer(a - b);
  a = sum;
}

/// Distances 1 and 2.
template <class T>
FURL_HD void butterflies(T& a0, T& a1, T& a2, T& a3) {
  butterfly(a0, a1);
  butterfly(a2, a3);
  butterfly(a0, a2);
  butterfly(a1, a3);
}

/// Distances 1, 2 and 4.
template <class T>
FURL_HD void butterflies(T& a0, T& a1, T& a2, T& a3, T& a4, T& a5, T& a6, T& a7) {
  butterflies(a0, a1, a2, a3);
  butterflies(a4, a5, a6, a7);
  butterfly(a0, a4);
  butterfly(a1, a5);
  butterfly(a2, a6);
  butterfly(a3, a7);
}

/// Sum of eight as a tree (FORMAT.md, R3).
FURL_HD float tree_of_eight(float a0, float a1, float a2, float a3, float a4, float a5, float a6,
                            float a7) {
  return add_rn(add_rn(add_rn(a0, a1), add_rn(a2, a3)), add_rn(add_rn(a4, a5), add_rn(a6, a7)));
}

/// With two bits, what is as large as this or larger has one of the outer levels: .9957 times the
/// root mean square of a block, where the best uniform quantiser of the normal law decides.
/// energy: sum of squares of the block's 256 rotated elements.
FURL_HD float outer_threshold(float energy) {
  return sqrt_rn(mul_rn(energy, float_of(0x3b7dcd9au)));  // .9957^2 / 256
}

/// Reciprocal of the range that the levels of 3 or 4 bits span: 4.102 or 5.028 times the root mean
/// square of a block, as the best uniform quantisers of the normal law have it.
/// energy: sum of squares of the block's 256 rotated elements.
FURL_HD float inverse_range(float energy, int bits) {
  const u32 square = bits == 3 ? 0x3d869c7au : 0x3dca3f0cu;  // 4.102^2 / 256, 5.028^2 / 256
  return div_rn(1.0f, sqrt_rn(mul_rn(energy, float_of(square))));
}

/// Where a rotated element lies in the range of levels: 0 and 1 are its ends, for what lies beyond
/// them too.
FURL_HD float place_in_range(float y, float inverse) {
#if defined(__CUDA_ARCH__)
  float r;
  asm("fma.rn.sat.f32 %0, %1, %2, 0f3F000000;" : "=f"(r) : "f"(y), "f"(inverse));
  return r;
#else
  const float place = fma_rn(y, inverse, 0.5f);
  const float bounded = place > 0.0f ? place : 0.0f;
  return bounded < 1.0f ? bounded : 1.0f;
#endif
}

/// The code of 3 or 4 bits of a place in the range, to nearest even. highest: the highest code.
FURL_HD float code_at(float place, float highest) {
  constexpr float no_fraction = 0x1p23f;  // numbers from here on are integers
  return sub_rn(fma_rn(place, highest, no_fraction), no_fraction);
}

/// The level that a code stands for.
FURL_HD float level_of(float code, float highest) {
  return fma_rn(code, 2.0f, -highest);
}

/// A block of less energy is stored as zeros.
inline constexpr float smallest_energy = 0x1p-96f;

/// The bf16 scale of a block (FORMAT.md, R5). Where is_scale of it is false, all codes are 0.
/// projected: sum of the rotated elements, each times its level.
FURL_HD u16 block_scale(float energy, float projected) {
  if (!is_finite(energy)) return nan_bits_16;
  if (bits_of(energy) < bits_of(smallest_energy)) return 0;
  return bf16_nearest(mul_rn(div_rn(energy, projected), 0x1p-13f));
}

/// Whether a block with this stored scale decodes to NaN: unless that is at least 0, and below
/// 2^100.
FURL_HD constexpr bool decodes_to_nan(u32 scale) {
  return scale >= 0x7180u;
}

/// Whether a stored scale has codes. With a scale of 0 all elements are +0.
FURL_HD constexpr bool is_scale(u32 scale) {
  return scale != 0 && !decodes_to_nan(scale);
}

/// What all elements of a block decode to whose scale has no codes: +0, or NaN.
FURL_HD float value_without_codes(u32 scale) {
  return float_of(scale == 0 ? 0u : f32_nan_bits);
}

/// The bf16 mean of a block's positives (FORMAT.md, R9): 0 if there are none, or if it is infinite
/// or NaN.
FURL_HD u16 mean_of_positives(float sum, int count) {
  const u16 mean = bf16_nearest(div_rn(sum, float(count)));
  return (mean & 0x7f80u) == 0x7f80u ? u16(0) : mean;
}

}  // namespace furl

#if defined(__clang__) && !defined(__CUDA_ARCH__)
#pragma float_control(pop)
#endif
