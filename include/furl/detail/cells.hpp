// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE THREAD. Division by a number known beforehand, as a multiplication and a shift (Granlund and
// Montgomery, "Division by invariant integers using multiplication", PLDI 1994).
//
// ONE THREAD. Cells of the low-frequency component (FORMAT.md, A2; DIVISION, Wang et al., ICML
// 2023): which cell an element lies in, which elements a cell has, and the mean of a cell.

#include "furl/config.hpp"
#include "furl/detail/number.hpp"

namespace furl {

namespace detail {

/// Smallest s with d <= 2^s.
FURL_HD constexpr int ceil_log2(u64 d) {
  int s = 0;
  while (s < 63 && (u64(1) << s) < d) ++s;
  return s;
}

/// ceil(2^power / d), which must be below 2^64. Schoolbook division, bit by bit.
FURL_HD constexpr u64 reciprocal(u64 d, int power) {
  u64 quotient = 0;
  u64 rest = 1;  // of the leading 1; below d, but for d == 1
  if (d == 1) return u64(1) << power;
  for (int bit = 0; bit < power; ++bit) {
    const bool carry = rest >= d - rest;  // 2 * rest >= d, without overflow
    rest = carry ? rest - (d - rest) : 2 * rest;
    quotient = 2 * quotient + (carry ? 1 : 0);
  }
  return quotient + (rest != 0 ? 1 : 0);
}

}  // namespace detail

/// The upper half of a product.
FURL_HD u64 high_product(u64 a, u64 b) {
#if defined(__CUDA_ARCH__)
  return __umul64hi(a, b);
#else
  const u64 low = (a & 0xffffffffu) * (b & 0xffffffffu);
  const u64 cross = (a >> 32) * (b & 0xffffffffu) + (low >> 32);
  const u64 other = (a & 0xffffffffu) * (b >> 32) + (cross & 0xffffffffu);
  return (a >> 32) * (b >> 32) + (cross >> 32) + (other >> 32);
#endif
}

/// For n below 2^31: n / value is exact, because the multiplier's error times n stays below 2^31.
struct divisor32 {
  u32 value = 1;                 // the divisor
  u32 multiplier = 0x80000000u;  // ceil(2^(31 + shift) / value)
  u32 shift = 0;                 // ceil(log2(value))

  constexpr divisor32() = default;
  /// Pre: 1 <= d < 2^31.
  FURL_HD explicit constexpr divisor32(u32 d)
      : value(d),
        multiplier(u32(detail::reciprocal(d, 31 + detail::ceil_log2(d)))),
        shift(u32(detail::ceil_log2(d))) {}

  /// n / value.
  FURL_HD u32 divide(u32 n) const {
#if defined(__CUDA_ARCH__)
    return __umulhi(2 * n, multiplier) >> shift;
#else
    return u32((u64(2 * n) * multiplier) >> 32) >> shift;
#endif
  }
};

/// The same for n below 2^63.
struct divisor64 {
  u64 value = 1;                  // the divisor
  u64 multiplier = u64(1) << 63;  // ceil(2^(63 + shift) / value)
  u32 shift = 0;                  // ceil(log2(value))

  constexpr divisor64() = default;
  /// Pre: 1 <= d < 2^63.
  FURL_HD explicit constexpr divisor64(u64 d)
      : value(d),
        multiplier(detail::reciprocal(d, 63 + detail::ceil_log2(d))),
        shift(u32(detail::ceil_log2(d))) {}

  /// n / value.
  FURL_HD u64 divide(u64 n) const { return high_product(2 * n, multiplier) >> shift; }
};

/// A tensor seen as (outer, extent[0], extent[1], extent[2], inner), of which the middle three are
/// pooled. Fewer pooled dimensions fill the last places; the places before have extent, window and
/// cell count 1. The cells form the row-major grid (outer, cells[0], cells[1], cells[2], inner).
struct cell_grid {
  i64 outer = 0;              // product of the dimensions before the pooled ones
  i64 extent[3] = {0, 0, 0};  // of the pooled dimensions
  i64 cells[3] = {0, 0, 0};   // along each of them
  i64 inner = 0;              // product of the dimensions behind them
  int window[3] = {1, 1, 1};  // elements of a cell along each
  int first_pooled = 0;       // place of the outermost pooled dimension

  /// Of the whole grid.
  FURL_HD constexpr i64 num_cells() const { return outer * cells[0] * cells[1] * cells[2] * inner; }

  /// Bands: a band is what one step along the outermost pooled dimension's cells covers. It is
  /// contiguous, and so are its cells.
  FURL_HD constexpr i64 num_bands() const { return outer * cells[first_pooled]; }
  /// Elements in one index of that dimension.
  FURL_HD constexpr i64 band_stride() const {
    i64 stride = inner;
    for (int d = 2; d > first_pooled; --d) stride *= extent[d];
    return stride;
  }
  /// Elements of a band, but for the last of each outer index, which may be smaller.
  FURL_HD constexpr i64 band_elements() const { return window[first_pooled] * band_stride(); }
  /// First element of a band, for band 0..num_bands().
  FURL_HD constexpr i64 band_begin(i64 band) const {
    const i64 plane = band / cells[first_pooled];
    const i64 row = band % cells[first_pooled] * window[first_pooled];
    return (plane * extent[first_pooled] + row) * band_stride();
  }
};

/// The same cells in fewer pooled dimensions where some have one element, and with windows no wider
/// than their dimensions: a grid as narrow as the way to the means can be chosen for.
FURL_HD constexpr cell_grid normalised(const cell_grid& g) {
  cell_grid n = g;
  n.first_pooled = 3;
  for (int d = 2; d >= g.first_pooled; --d) {
    if (g.extent[d] == 1) continue;
    --n.first_pooled;
    n.extent[n.first_pooled] = g.extent[d];
    n.cells[n.first_pooled] = g.cells[d];
    n.window[n.first_pooled] = g.window[d] < g.extent[d] ? g.window[d] : int(g.extent[d]);
  }
  for (int d = 0; d < n.first_pooled; ++d) {
    n.extent[d] = n.cells[d] = 1;
    n.window[d] = 1;
  }
  if (n.first_pooled == 3) n.first_pooled = 2;  // cells of one element
  return n;
}

/// Position of an element in the grid's five dimensions.
struct grid_position {
  i64 outer;      // index before the pooled dimensions
  i64 pooled[3];  // indices in them
  i64 inner;      // index behind them
};

/// Of the element `index`.
FURL_HD grid_position position_of(const cell_grid& grid, i64 index) {
  grid_position p{};
  p.inner = index % grid.inner;
  index /= grid.inner;
  FURL_UNROLL
  for (int d = 2; d >= 0; --d) {
    p.pooled[d] = index % grid.extent[d];
    index /= grid.extent[d];
  }
  p.outer = index;
  return p;
}

/// The cell of an element.
FURL_HD i64 cell_of(const cell_grid& grid, const grid_position& p) {
  i64 cell = p.outer;
  FURL_UNROLL
  for (int d = 0; d < 3; ++d) cell = cell * grid.cells[d] + p.pooled[d] / grid.window[d];
  return cell * grid.inner + p.inner;
}

/// The same of the element `index`.
FURL_HD i64 cell_of(const cell_grid& grid, i64 index) {
  return cell_of(grid, position_of(grid, index));
}

/// Sum of a sequence as a pairwise tree: neighbours first, as if +0 filled it up to a power of two.
/// At most 2^6 terms (max_window). Holds one partial sum per level, so it needs no array of terms.
class pairwise_sum {
 public:
  /// Appends a term.
  FURL_HD void push(float term) {
    int level = 0;
    for (; (count_ >> level & 1) != 0; ++level) term = add_rn(partial_[level], term);
    partial_[level] = term;
    ++count_;
  }
  /// The sum of all terms so far.
  FURL_HD float total() const {
    float sum = 0.0f;
    for (int level = 0; level <= 6; ++level)
      if ((count_ >> level & 1) != 0) sum = add_rn(partial_[level], sum);
    return sum;
  }

 private:
  float partial_[7] = {};
  int count_ = 0;
};

/// The LFC value of a cell from its sum and number of elements, before it is rounded to f32 or
/// bf16.
FURL_HD float cell_mean(float sum, int count) {
  return div_rn(sum, float(count));
}

/// A mean as it is stored and subtracted: in the metadata type, finite, and never -0.
FURL_HD float lfc_value(float mean, dtype meta) {
  mean = float_of(select_bits(meta == dtype::bf16, bits_of(round_to_bf16(mean)), bits_of(mean)));
  return float_of(select_bits(is_finite(mean), bits_of(add_rn(mean, 0.0f)), 0u));
}

}  // namespace furl
