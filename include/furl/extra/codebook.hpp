// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A table of up to 256 numbers that stand for values: what pack and unpack need to code values
// without metadata (FORMAT.md, A9). It covers signs and masks, the levels of TinyScript and the
// derivatives of few-bit activations, and is a plain value that host and device take alike.
//
// Values to codes by a codebook, and back to levels, in host memory (FORMAT.md, A9).

#include "furl/config.hpp"
#include "furl/types.hpp"

#if !defined(__CUDACC_RTC__)
#include "furl/plan.hpp"
#include "furl/thread_pool.hpp"
#endif

namespace furl {

inline namespace v0_1 {

inline constexpr int max_levels = 256;                 // of a codebook
inline constexpr float smallest_positive = 0x1p-149f;  // x is above 0 if it is at least this

/// How values become codes and what codes stand for. Entries beyond num_levels are not used.
struct codebook {
  int num_levels = 0;  // 2..256
  /// nearest: the code of x is the number of thresholds that are at most x. stochastic: one of the
  /// two levels around x, right on average; thresholds are not used. NaN gets code 0 either way.
  furl::rounding rounding = rounding::nearest;
  bool of_magnitudes = false;            // whether |x| is coded in place of x
  float threshold[max_levels - 1] = {};  // num_levels - 1 of them, ascending, none NaN
  float level[max_levels] = {};          // finite; for stochastic rounding ascending

  /// Bits that a code needs: 1..8.
  FURL_HD constexpr int bits() const {
    int b = 1;
    while (b < max_bits && (1 << b) < num_levels) ++b;
    return b;
  }
};

}  // namespace v0_1

#if !defined(__CUDACC_RTC__)

FURL_HIDDEN_BEGIN

// ---- Making codebooks -------------------------------------------------------------------------
// num_levels is not checked here: calls refuse a codebook whose num_levels is not 2..256.

/// Code 1 where x > 0, and 0 for everything else, -0 and NaN included. With levels 0 and 1 it is
/// the mask of a ReLU, with -a and a the sign of auxiliary activation learning (Woo and Jeon,
/// ICLR 2023).
constexpr codebook positive_codebook(float low = 0.0f, float high = 1.0f) {
  codebook book;
  book.num_levels = 2;
  book.threshold[0] = smallest_positive;
  book.level[0] = low;
  book.level[1] = high;
  return book;
}

/// Each x becomes the nearest of the levels; half-way goes up.
/// levels : num_levels numbers, finite and ascending.
constexpr codebook nearest_codebook(const float* levels, int num_levels) {
  codebook book;
  book.num_levels = num_levels;
  for (int i = 0; i < num_levels && i < max_levels; ++i) {
    book.level[i] = levels[i];
    if (i > 0) book.threshold[i - 1] = float((double(levels[i - 1]) + double(levels[i])) / 2);
  }
  return book;
}

/// Each x becomes one of its two neighbouring levels at random, so that it is right on average;
/// what lies beyond the levels becomes the first or the last.
/// levels : num_levels numbers, finite and ascending, neighbours at least 2^-126 apart.
constexpr codebook stochastic_codebook(const float* levels, int num_levels) {
  codebook book;
  book.num_levels = num_levels;
  book.rounding = rounding::stochastic;
  for (int i = 0; i < num_levels && i < max_levels; ++i) book.level[i] = levels[i];
  return book;
}

FURL_HIDDEN_END

#endif

}  // namespace furl

#if !defined(__CUDACC_RTC__)

FURL_HIDDEN_BEGIN

namespace furl::host {

/// Codes the values of x by a codebook.
/// x    : host, plan.num_elements() elements of any dtype, at any alignment.
/// book : at most 2^bits levels for a plan of `bits` bits.
/// blob : host, plan.size_bytes() bytes or more; aligned to 16 bytes; apart from x.
/// key  : of the random stream; each call takes another. Not used by nearest rounding.
/// Errors: see status. The plan must come from plan::make_codes. Allocates nothing.
inline status pack(const plan& p, const_values x, const codebook& book, bytes blob, random_key key,
                   thread_pool* pool = nullptr);

/// Writes the levels of packed codes, a code that names no level as 0. Values beyond the largest
/// finite f16 or bf16 become that one.
/// blob : host, the plan.size_bytes() bytes that pack wrote; aligned to 16 bytes.
/// y    : host, plan.num_elements() elements of any dtype, at any alignment; all of them are
///        written; apart from the blob.
/// Errors: see status. The plan must come from plan::make_codes. Allocates nothing.
inline status unpack(const plan& p, const_bytes blob, const codebook& book, values y,
                     thread_pool* pool = nullptr);

/// Multiplies each element of g by the level of its code, in f32, and rounds the product once to
/// g's dtype. A level of 0 gives +0, whatever g is: an infinity or NaN too. This is the backward
/// pass of everything that multiplies gradients by a few numbers: ReLU, dropout, few-bit
/// activations.
/// g   : host, plan.num_elements() elements of any dtype, at any alignment; apart from the blob.
/// out : likewise, of g's dtype; g itself, or apart from it.
/// blob, book, errors: as unpack.
inline status unpack_multiply(const plan& p, const_bytes blob, const codebook& book, const_values g,
                              values out, thread_pool* pool = nullptr);

}  // namespace furl::host

FURL_HIDDEN_END

#include "furl/detail/extra/codebook.hpp"

#endif
