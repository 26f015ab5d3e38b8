// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Codebooks of the field's number formats, all of them for nearest rounding. With a plan from
// plan::make_scaled they make block formats: nf4_codebook() with 4 bits and groups of 64 is NF4 of
// QLoRA, for example. For stochastic rounding pass their levels on:
//   stochastic_codebook(book.level, book.num_levels)
//
// What is half-way between two levels becomes the upper one, where the formats themselves say the
// even one. Codes are numbered from the lowest level up; they are not the formats' bit patterns.

#if !defined(__CUDACC_RTC__)
#include "furl/config.hpp"
#include "furl/detail/host/work.hpp"
#include "furl/extra/codebook.hpp"
#include "furl/types.hpp"

FURL_HIDDEN_BEGIN

namespace furl {

namespace detail {

/// The codebook of 0 and of magnitudes of either sign. Pre: magnitudes ascend from above 0.
constexpr codebook signed_codebook(const float* magnitudes, int count) {
  float level[max_levels] = {};
  for (int i = 0; i < count; ++i) {
    level[count - 1 - i] = -magnitudes[i];
    level[count + 1 + i] = magnitudes[i];
  }
  return nearest_codebook(level, 2 * count + 1);
}

/// A binary floating-point format by its fields. Its positive numbers have the patterns from 1 to
/// `last`.
constexpr codebook float_codebook(int fraction_bits, int exponent_bias, int last) {
  float magnitude[max_levels / 2] = {};
  const int fractions = 1 << fraction_bits;
  for (int pattern = 1; pattern <= last; ++pattern) {
    const bool is_normal = pattern >= fractions;
    const int exponent = (is_normal ? pattern / fractions : 1) - exponent_bias - fraction_bits;
    float value = float(pattern % fractions + (is_normal ? fractions : 0));
    for (int i = 0; i < exponent; ++i) value *= 2.0f;
    for (int i = 0; i > exponent; --i) value *= 0.5f;
    magnitude[pattern - 1] = value;
  }
  return signed_codebook(magnitude, last);
}

}  // namespace detail

/// NF4, the 16 levels of the 4-bit NormalFloat in [-1, 1] (Dettmers et al., "QLoRA", NeurIPS 2023,
/// appendix E): 4 bits.
constexpr codebook nf4_codebook() {
  constexpr float level[] = {
      -1.0f,
      -0.6961928009986877f,
      -0.5250730514526367f,
      -0.39491748809814453f,
      -0.28444138169288635f,
      -0.18477343022823334f,
      -0.09105003625154495f,
      0.0f,
      0.07958029955625534f,
      0.16093020141124725f,
      0.24611230194568634f,
      0.33791524171829224f,
      0.44070982933044434f,
      0.5626170039176941f,
      0.7229568362236023f,
      1.0f,
  };
  return nearest_codebook(level, 16);
}

/// FP4 E2M1 (OCP Microscaling Formats 1.0, 5.3.3): 0, .5, 1, 1.5, 2, 3, 4, 6 and their negatives,
/// which are 15 levels: 4 bits.
constexpr codebook e2m1_codebook() {
  return detail::float_codebook(1, 1, 0x7);
}

/// FP8 E4M3 without infinities, "fn" (Micikevicius et al., "FP8 formats for deep learning", 2022):
/// its 253 finite numbers, up to 448: 8 bits.
constexpr codebook e4m3_codebook() {
  return detail::float_codebook(3, 7, 0x7e);
}

/// FP8 E5M2 (likewise): its 247 finite numbers, up to 57344: 8 bits.
constexpr codebook e5m2_codebook() {
  return detail::float_codebook(2, 15, 0x7b);
}

/// Logarithmic levels (Miyashita et al., "Convolutional neural networks using logarithmic data
/// representation", 2016): 0 and, of either sign, 1, ratio, ratio^2 and so on, of which there are
/// 2^(bits - 1) - 1. Each power is the one before times the ratio, in f32.
/// bits  : 2..8, of a code.
/// ratio : above 0 and below 1, and so large that the smallest power is not 0: 0.5 always is.
inline result<codebook> logarithmic_codebook(int bits, float ratio) {
  if (bits < 2 || bits > max_bits) return status{error::out_of_range, "bits", bits, "must be 2..8"};
  const host::float_environment environment;
  const int count = (1 << (bits - 1)) - 1;
  float magnitude[max_levels / 2] = {};
  float power = 1.0f;
  for (int i = count - 1; i >= 0; --i, power *= ratio) magnitude[i] = power;
  if (!(ratio > 0.0f && ratio < 1.0f && magnitude[0] > 0.0f))
    return status{error::out_of_range, "ratio", 0,
                  "must be above 0 and below 1, and no power of it 0"};
  return detail::signed_codebook(magnitude, count);
}

}  // namespace furl

FURL_HIDDEN_END

#endif
