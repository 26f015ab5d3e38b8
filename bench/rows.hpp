// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which rows there are, and which of them are measured by default.

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

inline bool is_base_tensor(const row& r) {
  if (r.way == path::lfc_1d) return r.on.name == "transformer_hidden";
  if (r.way == path::lfc_2d) return r.on.name == "resnet50_56x56";
  if (r.on.log2_size > 0 && r.axes->timed == timing::cold) return r.on.log2_size == 26;
  return r.on.name == tensors_of(r.way, r.axes->timed)[0].name;
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
  const primitive_axes& axes = *r.axes;
  const int bits = detail::base_of(axes.bits, 2);
  const int group = detail::base_of(axes.groups, 256);
  const bool swept = detail::is_swept(r);
  std::vector<int> sizes = {0, 26};
  if (swept && all_sizes) sizes = {0, 16, 20, 24, 26, 28};
  if (axes.timed == timing::cold && !detail::contains(sizes, r.on.log2_size)) return false;
  if (!swept && (r.type == dtype::f16 || r.group != group)) return false;
  if (!detail::contains(swept ? std::vector<int>{1, 2, 3, 4, 8} : std::vector<int>{1, bits, 4},
                        r.bits))
    return false;
  if (!detail::contains<int>({32, group, 1024}, r.group)) return false;
  const int departures = int(r.type != dtype::f32) + int(r.bits != bits) + int(r.group != group) +
                         int(r.rounding != rounding::stochastic) + int(!detail::is_base_tensor(r));
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
