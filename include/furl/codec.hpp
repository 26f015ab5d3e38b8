// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What to do with a tensor, and the sizes that say so.

#include "furl/config.hpp"
#include "furl/dtype.hpp"
#include "furl/element/quantize.hpp"

#if !defined(__CUDACC_RTC__)
#include <initializer_list>
#endif

namespace furl {
inline namespace v0_1 {

/// Up to eight sizes, outermost first: a shape, or the window widths that go with one.
struct extents {
  i64 size[max_rank] = {};  // outermost first
  int rank = 0;             // as given: a plan refuses more than max_rank

  constexpr extents() = default;
  /// Copies `count` sizes of any integer type, or the first max_rank of them.
  template <class Integer>
  constexpr extents(const Integer* sizes, int count) : rank(count) {
    for (int d = 0; d < count && d < max_rank; ++d) size[d] = static_cast<i64>(sizes[d]);
  }
#if !defined(__CUDACC_RTC__)
  /// As {64, 128, 56, 56}.
  constexpr extents(std::initializer_list<i64> sizes)
      : extents(sizes.begin(), static_cast<int>(sizes.size())) {}
#endif
  /// Pre: 0 <= d < max_rank.
  constexpr i64 operator[](int d) const {
    return size[d];
  }
};

constexpr bool operator==(const extents& a, const extents& b) {
  if (a.rank != b.rank) return false;
  for (int d = 0; d < max_rank; ++d)
    if (a.size[d] != b.size[d]) return false;
  return true;
}
constexpr bool operator!=(const extents& a, const extents& b) {
  return !(a == b);
}

/// What to do with a tensor. The defaults are ActNN's; window = {1, 1, 8, 8} makes it DIVISION on
/// NCHW.
struct codec {
  int bits = 2;              // 1..8, of a code
  int group = 256;           // elements that share lo and step: 32, 64, 128, 256, 512 or 1024
  dtype meta = dtype::bf16;  // type of lo, step and the LFC: bf16 or f32
  furl::rounding rounding = rounding::stochastic;  // unbiased, or nearest
  extents window = {};  // elements per cell along each dimension; none, or all 1: no LFC
};

constexpr bool operator==(const codec& a, const codec& b) {
  return a.bits == b.bits && a.group == b.group && a.meta == b.meta && a.rounding == b.rounding &&
         a.window == b.window;
}
constexpr bool operator!=(const codec& a, const codec& b) {
  return !(a == b);
}

}  // namespace v0_1
}  // namespace furl
