// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

#include "statistics.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace furl::cli {
namespace {

struct sums {
  double count = 0;
  double error = 0;
  double squared_error = 0;
  double squared_x = 0;
  double largest_error = 0;

  void add(double x, double a) {
    const double e = a - x;
    count += 1;
    error += e;
    squared_error += e * e;
    squared_x += x * x;
    largest_error = std::max(largest_error, std::fabs(e));
  }
  /// Group by group, so that rounding does not grow with the size of the tensor.
  void add(const sums& other) {
    count += other.count;
    error += other.error;
    squared_error += other.squared_error;
    squared_x += other.squared_x;
    largest_error = std::max(largest_error, other.largest_error);
  }
};

template <class T>
double element(const void* x, i64 index) {
  T value;  // which may stand at any address
  std::memcpy(&value, static_cast<const u8*>(x) + index * i64(sizeof(T)), sizeof(T));
  return double(to_f32(value));
}

double element(const_values x, i64 index) {
  if (x.type == dtype::f32) return element<float>(x.data, index);
  if (x.type == dtype::f16) return element<f16>(x.data, index);
  return element<bf16>(x.data, index);
}

/// 1 for a tensor of zeros that came back as zeros.
double fidelity_of(const sums& s, double no_figure) {
  if (s.count == 0) return no_figure;
  if (s.squared_error == 0) return 1;
  return s.squared_x == 0 ? no_figure : 1 - s.squared_error / s.squared_x;
}

}  // namespace

statistics compare(const plan& p, const_values x, const float* a) {
  constexpr double no_figure = std::numeric_limits<double>::quiet_NaN();
  sums total;
  i64 poisoned = 0;
  const i64 group = p.codec().group;
  for (i64 first = 0; first < p.num_elements(); first += group) {
    if (std::isnan(a[first])) {  // a group is poisoned as a whole or not at all
      ++poisoned;
      continue;
    }
    sums part;
    const i64 last = std::min(first + group, p.num_elements());
    for (i64 i = first; i < last; ++i) part.add(element(x, i), double(a[i]));
    total.add(part);
  }
  statistics out;
  const bool some = total.count > 0;
  out.root_mean_square_error = some ? std::sqrt(total.squared_error / total.count) : no_figure;
  out.largest_error = some ? total.largest_error : no_figure;
  out.bias = some ? total.error / total.count : no_figure;
  out.poisoned_share = p.num_groups() > 0 ? double(poisoned) / double(p.num_groups()) : no_figure;
  out.fidelity = fidelity_of(total, no_figure);
  return out;
}

}  // namespace furl::cli
