// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checks of codebooks, and of calls between values and codes, for host and for device memory. They
// read no array.

#include "furl/arguments.hpp"
#include "furl/codebook.hpp"
#include "furl/config.hpp"
#include "furl/element/arithmetic.hpp"
#include "furl/element/quantize.hpp"
#include "furl/plan.hpp"
#include "furl/status.hpp"
#include "furl/view.hpp"

#if !defined(__CUDACC_RTC__)
#include "furl/host/float_environment.hpp"

FURL_HIDDEN_BEGIN

namespace furl::detail {

inline status check_thresholds(const codebook& book) {
  for (int i = 0; i < book.num_levels - 1; ++i) {
    const float t = book.threshold[i];
    if (is_nan(t) || (i > 0 && book.threshold[i - 1] > t))
      return {error::out_of_range, "book.threshold", i, "must be ascending, none NaN (by index)"};
  }
  return {};
}

inline status check_gaps(const codebook& book) {
  for (int i = 1; i < book.num_levels; ++i) {
    const float gap = book.level[i] - book.level[i - 1];
    if (!(gap >= smallest_normal) || !is_finite(gap))
      return {error::out_of_range, "book.level", i,
              "must be at least 2^-126 above the level before, by a finite difference (by index)"};
  }
  return {};
}

/// What a codebook must be for codes of a number of bits.
inline status check_codebook(const codebook& book, int bits) {
  const host::float_environment environment;
  if (book.num_levels < 2 || book.num_levels > (1 << bits))
    return {error::out_of_range, "book.num_levels", book.num_levels,
            "must be at least 2 and fit in the plan's bits"};
  if (book.rounding != rounding::stochastic && book.rounding != rounding::nearest)
    return {error::out_of_range, "book.rounding", i64(book.rounding),
            "must be rounding::stochastic or rounding::nearest"};
  for (int i = 0; i < book.num_levels; ++i)
    if (!is_finite(book.level[i]))
      return {error::out_of_range, "book.level", i, "must be finite (by index)"};
  return book.rounding == rounding::nearest ? check_thresholds(book) : check_gaps(book);
}

/// The checks of calls between an array of values and codes in a blob.
inline status check_coded_values(const plan& p, const_values array, const char* argument,
                                 const_bytes blob) {
  if (const status s = check_kind(p, true); !s) return s;
  if (const status s = check_elements(p, array.data, array.num_elements, array.type, argument); !s)
    return s;
  if (const status s = check_blob(p, blob.data, blob.size_bytes); !s) return s;
  return check_apart(p, blob.data, array.data, array.size_bytes(), argument);
}

/// An output that is made element by element from an input of the same size: of the same dtype, and
/// the same array or one apart.
inline status check_elementwise(const_values input, values output, const char* argument) {
  if (output.num_elements != input.num_elements)
    return {error::wrong_size, argument, output.num_elements,
            "must have as many elements as the input"};
  if (output.type != input.type)
    return {error::out_of_range, argument, i64(output.type), "must have the dtype of the input"};
  if (output.data == nullptr && output.num_elements > 0)
    return {error::null_pointer, argument, 0, "must not be null"};
  if (output.num_elements > 0 && output.data != input.data &&
      overlap(output.data, output.size_bytes(), input.data, input.size_bytes()))
    return {error::overlap, argument, 0, "must be the input itself or not overlap it"};
  return {};
}

/// Codes in a blob, an array, and an output that is made of both.
inline status check_coded_output(const plan& p, const_values input, const char* input_name,
                                 values output, const char* output_name, const_bytes blob) {
  if (const status s = check_coded_values(p, input, input_name, blob); !s) return s;
  if (const status s = check_elementwise(input, output, output_name); !s) return s;
  return check_apart(p, blob.data, output.data, output.size_bytes(), output_name);
}

/// An input, an output, and a mask of one bit that is made along with it.
inline status check_masked(const plan& p, const_values x, values y, const_bytes blob) {
  if (const status s = check_coded_output(p, x, "x", y, "y", blob); !s) return s;
  if (p.codec().bits == 1) return {};
  return {error::wrong_plan, "plan", 0, "must come from plan::make_codes with 1 bit"};
}

}  // namespace furl::detail

FURL_HIDDEN_END

#endif
