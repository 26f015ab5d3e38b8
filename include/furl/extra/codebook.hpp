// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Codebooks: up to 256 numbers that stand for values. Values become codes of 1 to 8 bits without
// any metadata, and codes become numbers again (FORMAT.md, A9). That covers signs and masks, the
// levels of TinyScript (Fu et al., ICML 2020) and the derivatives of few-bit activations (Novikov
// et al., ICML 2023). With a plan from plan::make_scaled every group has a scale, by which its
// elements are brought into the range of the levels (A13): so NF4, FP4, FP8 and the like, whose
// codebooks are in extra/format_codebooks.hpp, are block formats. Calls for host memory;
// extra/codebook.cuh has them for device memory.

#include "furl/config.hpp"
#include "furl/types.hpp"

#if !defined(__CUDACC_RTC__)
#include "furl/plan.hpp"
#include "furl/thread_pool.hpp"
#endif

namespace furl {
inline namespace v0_2 {

inline constexpr int max_levels = 256;                 // of a codebook
inline constexpr float smallest_positive = 0x1p-149f;  // x is above 0 if it is at least this

/// How values become codes, and the numbers that codes stand for. It is a plain value, which host
/// and device take alike. Entries beyond num_levels are not used.
struct codebook {
  int num_levels = 0;  // 2..256
  /// With nearest rounding the code of x is the number of thresholds that are at most x. With
  /// stochastic rounding it is that of one of the two levels around x, right on average, and
  /// thresholds are not used. NaN gets code 0 either way.
  furl::rounding rounding = rounding::nearest;
  bool of_magnitudes = false;            // whether |x| is coded in place of x
  float threshold[max_levels - 1] = {};  // num_levels - 1 of them, ascending, none NaN
  float level[max_levels] = {};          // finite; for stochastic rounding ascending

  /// The bits that a code needs: 1..8.
  FURL_HD constexpr int bits() const {
    int b = 1;
    while (b < max_bits && (1 << b) < num_levels) ++b;
    return b;
  }
};

}  // namespace v0_2
}  // namespace furl

#if !defined(__CUDACC_RTC__)

FURL_HIDDEN_BEGIN

namespace furl {

/// A codebook that gives code 1 where x > 0, and code 0 to everything else, -0 and NaN included.
/// With levels 0 and 1 it is the mask of a ReLU, with -a and a the sign of auxiliary activation
/// learning (Woo and Jeon, ICLR 2023).
constexpr codebook positive_codebook(float low = 0.0f, float high = 1.0f) {
  codebook book;
  book.num_levels = 2;
  book.threshold[0] = smallest_positive;
  book.level[0] = low;
  book.level[1] = high;
  return book;
}

/// A codebook by which each x becomes the nearest of the levels. What is half-way between two
/// becomes the upper one.
/// levels     : num_levels numbers, finite and ascending.
/// num_levels : 2..256. It is not checked here: calls refuse a codebook with another number.
constexpr codebook nearest_codebook(const float* levels, int num_levels) {
  codebook book;
  book.num_levels = num_levels;
  for (int i = 0; i < num_levels && i < max_levels; ++i) {
    book.level[i] = levels[i];
    if (i > 0) book.threshold[i - 1] = float((double(levels[i - 1]) + double(levels[i])) / 2);
  }
  return book;
}

/// A codebook by which each x becomes one of the two levels around it at random, so that it is
/// right on average. What lies beyond the levels becomes the first or the last.
/// levels     : num_levels numbers, finite and ascending, neighbours at least 2^-126 apart.
/// num_levels : 2..256. It is not checked here: calls refuse a codebook with another number.
constexpr codebook stochastic_codebook(const float* levels, int num_levels) {
  codebook book;
  book.num_levels = num_levels;
  book.rounding = rounding::stochastic;
  for (int i = 0; i < num_levels && i < max_levels; ++i) book.level[i] = levels[i];
  return book;
}

namespace host {

/// Codes the values of x by a codebook. With a plan from plan::make_scaled the scale of a group is
/// its largest magnitude over that of the levels, and is stored in the blob. A NaN or an infinity
/// turns its group into NaN; so does a scale that, as it is stored, leaves f32 times the largest
/// level.
/// p    : from plan::make_codes or make_scaled.
/// x    : host, plan.num_elements() elements of any dtype, at any alignment.
/// book : has at most 2^bits levels for a plan of `bits` bits; not all are 0 if there are scales.
/// blob : host, plan.size_bytes() bytes or more, at any alignment, disjoint from x.
/// key  : of the random stream; each call needs a new one. Nearest rounding does not use it.
/// pool : threads to work with; none: the calling thread alone.
/// A bad argument is refused before anything is written: see status. Nothing is allocated.
inline status pack(const plan& p, const_values x, const codebook& book, bytes blob, random_key key,
                   thread_pool* pool = nullptr);

/// The same with scales that are given, such as those of the steps before, for a plan from
/// plan::make_scaled alone. What lies beyond the levels becomes the first or the last, infinities
/// too; a NaN still turns its group into NaN.
/// scales : host, one f32 for all groups or one for each: of the levels, finite and not negative.
///          With metadata in bf16 they are rounded up to it. A group whose scale is below 2^-126
///          becomes 0.
inline status pack(const plan& p, const_values x, const codebook& book, span<const float> scales,
                   bytes blob, random_key key, thread_pool* pool = nullptr);

/// Writes the level of each code of a blob, times the scale of its group if there are scales. A
/// code that names no level becomes 0, and what lies beyond the largest finite f16 or bf16 becomes
/// that.
/// p    : from plan::make_codes or make_scaled.
/// blob : host, the plan.size_bytes() bytes that pack wrote, at any alignment.
/// book : has at most 2^bits levels for a plan of `bits` bits.
/// y    : host, plan.num_elements() elements of any dtype, at any alignment, all of them
///        written; disjoint from the blob.
/// pool : threads to work with; none: the calling thread alone.
/// A bad argument is refused before anything is written: see status. Nothing is allocated.
inline status unpack(const plan& p, const_bytes blob, const codebook& book, values y,
                     thread_pool* pool = nullptr);

/// Multiplies each element of g by the level of its code, in f32, and rounds the product once to
/// g's dtype. If there are scales, the level is multiplied by that of its group before, and rounded
/// once to f32. A level of 0 gives +0, whatever g is: an infinity or NaN too. This is the backward
/// pass of everything that multiplies gradients by a few numbers: ReLU, dropout, few-bit
/// activations.
/// p    : from plan::make_codes or make_scaled.
/// blob : host, the plan.size_bytes() bytes that pack wrote, at any alignment.
/// book : has at most 2^bits levels for a plan of `bits` bits.
/// g    : host, plan.num_elements() elements of any dtype, at any alignment.
/// out  : host, as many elements of g's dtype: g itself, or disjoint from it. Disjoint from the
///        blob.
/// pool : threads to work with; none: the calling thread alone.
/// A bad argument is refused before anything is written: see status. Nothing is allocated.
inline status unpack_multiply(const plan& p, const_bytes blob, const codebook& book, const_values g,
                              values out, thread_pool* pool = nullptr);

}  // namespace host
}  // namespace furl

FURL_HIDDEN_END

#include "furl/detail/extra/codebook.hpp"

#endif
