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
  /// Tile by tile, so that rounding does not grow with the size of the tensor.
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

/// The first element of a group, or of a block of rotated codes.
i64 first_of(const plan& p, i64 group) {
  if (!p.is_rotated()) return group * p.codec().group;
  return group / blocks_per_tile * tile_elements +
         group % blocks_per_tile * (row_elements / blocks_per_tile);
}

/// Of the groups that have elements. A group is poisoned as a whole or not at all.
double poisoned_share(const plan& p, const float* a) {
  i64 groups = 0;
  i64 poisoned = 0;
  for (i64 g = 0; g < p.num_groups(); ++g) {
    const i64 first = first_of(p, g);
    if (first >= p.num_elements()) continue;
    ++groups;
    if (std::isnan(a[first])) ++poisoned;
  }
  return double(poisoned) / double(groups);
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
  for (i64 first = 0; first < p.num_elements(); first += tile_elements) {
    sums part;
    const i64 last = std::min(first + tile_elements, p.num_elements());
    for (i64 i = first; i < last; ++i)
      if (!std::isnan(a[i])) part.add(element(x, i), double(a[i]));
    total.add(part);
  }
  statistics out;
  const bool some = total.count > 0;
  out.root_mean_square_error = some ? std::sqrt(total.squared_error / total.count) : no_figure;
  out.largest_error = some ? total.largest_error : no_figure;
  out.bias = some ? total.error / total.count : no_figure;
  out.poisoned_share = p.num_elements() > 0 ? poisoned_share(p, a) : no_figure;
  out.fidelity = fidelity_of(total, no_figure);
  return out;
}

scales scales_of(const plan& p, const u8* blob) {
  scales out;
  for (i64 block = 0; block < p.num_groups(); ++block) {
    if (first_of(p, block) >= p.num_elements()) continue;
    u16 stored = 0;
    std::memcpy(&stored, blob + p.meta_offset() + u64(block) * sizeof stored, sizeof stored);
    const float scale = f32_from_bf16(stored);
    ++out.blocks;
    if (std::isnan(scale)) {
      ++out.poisoned;
    } else if (scale == 0) {
      ++out.zeros;
    } else {
      out.smallest = out.largest == 0 ? scale : std::min(out.smallest, scale);
      out.largest = std::max(out.largest, scale);
    }
  }
  return out;
}

}  // namespace furl::cli
