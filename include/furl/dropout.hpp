// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What dropout in host and in device memory share: the rate, and its checks (README, A10).

#include "furl/arguments.hpp"
#include "furl/codebook.hpp"
#include "furl/codebook_arguments.hpp"
#include "furl/config.hpp"
#include "furl/element/arithmetic.hpp"
#include "furl/element/dropout.hpp"
#include "furl/status.hpp"
#include "furl/view.hpp"

#if !defined(__CUDACC_RTC__)
#include "furl/host/float_environment.hpp"

FURL_HIDDEN_BEGIN

namespace furl {

namespace detail {

/// p : of dropping: 0 or more, and less than 1 after rounding.
inline result<dropout_rate> make_dropout_rate(double p) {
  const host::float_environment environment;
  const double scaled = p * 65536.0 + 0.5;
  if (!(p >= 0.0) || !(scaled < 65536.0))
    return status{error::out_of_range, "p", p >= 1.0 ? 1 : 0,
                  "must be at least 0 and below 1 - 2^-17"};
  const u32 threshold = u32(scaled);
  return dropout_rate{threshold, div(65536.0f, float(int(65536 - threshold)))};
}

/// The arrays of a dropout that keeps no mask.
inline status check_dropout(const_values x, values y) {
  if (x.num_elements < 0)
    return {error::wrong_size, "x", x.num_elements, "must not have a negative number of elements"};
  if (x.type != dtype::f32 && x.type != dtype::f16 && x.type != dtype::bf16)
    return {error::out_of_range, "x", i64(x.type), "dtype must be f32, f16 or bf16"};
  if (x.data == nullptr && x.num_elements > 0)
    return {error::null_pointer, "x", 0, "must not be null"};
  return check_elementwise(x, y, "y");
}

}  // namespace detail

/// For the backward pass of a dropout that kept its mask: unpack_multiply with this codebook. A
/// rate that dropout would refuse gives a codebook that is refused.
inline codebook dropout_codebook(double p) {
  codebook book = positive_codebook();
  if (const auto rate = detail::make_dropout_rate(p)) {
    book.level[1] = rate->scale;
  } else {
    book.num_levels = 0;
  }
  return book;
}

}  // namespace furl

FURL_HIDDEN_END

#endif
