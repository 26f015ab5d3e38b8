// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which rows there are, and which of them are measured by default.

#include <string>
#include <vector>

#include "axes.hpp"

namespace furl::bench {
namespace detail {

template <class T>
bool contains(const std::vector<T>& list, T value) {
  for (const T each : list)
    if (each == value) return true;
  return false;
}

/// What an axis departs from in the default rows: the usual value, or the first of those without.
template <class T>
T base_of(const std::vector<T>& axis, T usual) {
  return axis.empty() || contains(axis, usual) ? usual : axis[0];
}

inline std::string base_tensor_of(const row& r) {
  switch (r.way) {
    case path::lfc_1d:
      return "transformer_hidden";
    case path::lfc_2d:
      return "resnet50_56x56";
    case path::normalised:
      return "extent_768";
    case path::lines:
      return "lines_1000";
    case path::batch:
      return "100_of_1024";
    case path::window_2x2:
    case path::window_3x3:
      return "resnet50_112x112";
    default:
      break;
  }
  if (r.axes->timed == timing::per_call) return "log2_size:10";
  return r.axes->timed == timing::hot ? "log2_size:20" : "log2_size:26";
}

/// Whether there is a row for this point of the axes.
inline bool exists(const row& r) {
  const bool division =
      r.what() == primitive::division_compress || r.what() == primitive::division_decompress;
  if (division && r.on.window[r.on.window.rank - 1] == 1)
    return false;  // planes must be contiguous
  return r.rounding == rounding::stochastic || (r.bits == 2 && r.group == 256);
}

/// Whether all axes are among the default rows: for what the others are judged by.
inline bool is_swept(const row& r) {
  static const std::vector<primitive> swept = {primitive::copy, primitive::compress,
                                               primitive::decompress, primitive::division_compress,
                                               primitive::actnn_compress};
  return contains(swept, r.what()) && r.way <= path::rotated;
}

}  // namespace detail

/// Whether a row is measured unless others are asked for: one axis at a time departs from f32,
/// 2 bits, groups of 256, stochastic, one large tensor.
/// all_sizes: whether the size is one of those axes.
inline bool is_default(const row& r, bool all_sizes) {
  const int bits = detail::base_of(r.axes->bits, 2);
  const int group = detail::base_of(r.axes->groups, 256);
  const bool other_tensor = r.on.name != detail::base_tensor_of(r);
  if (detail::is_swept(r)) {
    const std::vector<int> sizes =
        all_sizes ? std::vector<int>{0, 16, 20, 24, 26, 28} : std::vector<int>{0, 26};
    if (r.axes->timed == timing::cold && !detail::contains(sizes, r.on.log2_size)) return false;
    if (!detail::contains<int>({1, 2, 3, 4, 8}, r.bits)) return false;
    if (!detail::contains<int>({32, 256, 1024}, r.group)) return false;
  } else {
    if (other_tensor && r.on.log2_size > 0) return false;
    if (r.type == dtype::f16 || r.group != group) return false;
    if (!detail::contains<int>({1, bits, 4}, r.bits)) return false;
  }
  const int departures = int(r.type != dtype::f32) + int(r.bits != bits) + int(r.group != group) +
                         int(r.rounding != rounding::stochastic) + int(other_tensor);
  return departures <= 1;
}

/// All rows of a primitive.
inline std::vector<row> rows_of(primitive what) {
  const auto or_base = [](const auto& list, auto base) {
    return list.empty() ? std::vector<decltype(base)>{base} : list;
  };
  std::vector<row> out;
  for (const primitive_axes& axes : all_axes()) {
    if (axes.what != what) continue;
    for (const path way : axes.paths)
      for (const tensor& on : tensors_of(way, axes.timed))
        for (const dtype type : or_base(axes.types, dtype::f32))
          for (const int bits : or_base(axes.bits, 2))
            for (const int group : or_base(axes.groups, 256))
              for (const furl::rounding rounding : or_base(axes.roundings, rounding::stochastic)) {
                const row r{&axes, way, type, bits, group, rounding, on};
                if (detail::exists(r)) out.push_back(r);
              }
  }
  return out;
}

}  // namespace furl::bench
