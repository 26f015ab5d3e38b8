// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// How far what a blob decodes to is from what was compressed.

#include "furl/config.hpp"
#include "furl/element/arithmetic.hpp"

namespace furl {
inline namespace v0_1 {

/// Sums over some elements x and the values a that stand in for them.
struct quality {
  double sum_error = 0;          // of a - x, each rounded to f32
  double sum_squared_error = 0;  // of the squares of those
  double sum_squares = 0;        // of x^2

  /// Of `num_elements` elements: the mean of a - x.
  FURL_HD double bias(i64 num_elements) const { return sum_error / double(num_elements); }
  /// Of `num_elements` elements: the mean of (a - x)^2.
  FURL_HD double mean_squared_error(i64 num_elements) const {
    return sum_squared_error / double(num_elements);
  }
  /// 1 - |x - a|^2 / |x|^2: above 0, training on a in place of x can work (auxiliary-activation
  /// learning, Woo and Jeon, ICLR 2023). 1 where a is x.
  FURL_HD double learning_indicator() const {
    return sum_squared_error == 0 ? 1.0 : 1.0 - sum_squared_error / sum_squares;
  }
};

}  // namespace v0_1

/// @{
/// Of all three sums.
FURL_HD constexpr bool operator==(const quality& a, const quality& b) {
  return a.sum_error == b.sum_error && a.sum_squared_error == b.sum_squared_error &&
         a.sum_squares == b.sum_squares;
}
FURL_HD constexpr bool operator!=(const quality& a, const quality& b) {
  return !(a == b);
}
/// @}

/// Sums over the elements of both.
FURL_HD quality combine(const quality& a, const quality& b) {
  return {add(a.sum_error, b.sum_error), add(a.sum_squared_error, b.sum_squared_error),
          add(a.sum_squares, b.sum_squares)};
}

/// Sums over those of q and one element more. The squares are exact, so that they need no rounding
/// of their own.
FURL_HD quality add_element(const quality& q, float x, float a) {
  const double error = to_f64(sub(a, x));
  return {add(q.sum_error, error), add_square(q.sum_squared_error, error),
          add_square(q.sum_squares, to_f64(x))};
}

/// Over four elements: over two each, added.
FURL_HD quality quality_of(const float (&x)[4], const float (&a)[4]) {
  const quality none;
  return combine(add_element(add_element(none, x[0], a[0]), x[1], a[1]),
                 add_element(add_element(none, x[2], a[2]), x[3], a[3]));
}

/// As it is written: any NaN is furl's own.
FURL_HD quality canonical(const quality& q) {
  return {canonical(q.sum_error), canonical(q.sum_squared_error), canonical(q.sum_squares)};
}

}  // namespace furl
