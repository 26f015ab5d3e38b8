// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Max pooling on the host: many windows of a row at once, by loops that vectorise.

#include <algorithm>
#include <type_traits>

#include "furl/config.hpp"
#include "furl/detail/extra/max_pool.hpp"
#include "furl/detail/host/tile.hpp"
#include "furl/detail/number.hpp"
#include "furl/types.hpp"

FURL_HIDDEN_BEGIN

namespace furl::host::detail {

/// Maxima of windows of a row of an image and their indices, one element of all windows after the
/// other. x: the image. Pre: no window reaches beyond the ends of a row.
template <class T, class Stride>
void pool_run(const pool_geometry& g, const u8* x, int row, int column, int count, Stride stride,
              float* __restrict best, u32* __restrict index) {
  const int begin = g.rows.begin(row);
  const u32 first = u32(g.rows.place(begin, row) * g.columns.kernel);
  ::std::fill(best, best + count, float_of(f32_infinity_bits | 0x80000000u));
  ::std::fill(index, index + count, first);
  for (int r = begin; r < g.rows.end(row); ++r)
    for (int c = 0; c < g.columns.kernel; ++c) {
      const u32 place = u32(g.rows.place(r, row) * g.columns.kernel + c);
      const i64 at = i64(r) * g.columns.input + column * stride - g.columns.padding + c;
      for (int i = 0; i < count; ++i) {
        const float value = to_f32(load_at<T>(x, at + i * stride));
        const bool better = int(is_above(value, best[i])) + int(is_nan(value)) != 0;
        best[i] = float_of(select_bits(better, bits_of(value), bits_of(best[i])));
        index[i] = select_bits(better, place, index[i]);
      }
    }
}

/// The same for any stride: those of nearly all poolings are constants, so that loops vectorise.
template <class T>
void pool_run(const pool_geometry& g, const u8* x, int row, int column, int count, float* best,
              u32* index) {
  using ::std::integral_constant;
  if (g.columns.stride == 2)
    return pool_run<T>(g, x, row, column, count, integral_constant<int, 2>{}, best, index);
  if (g.columns.stride == 1)
    return pool_run<T>(g, x, row, column, count, integral_constant<int, 1>{}, best, index);
  pool_run<T>(g, x, row, column, count, g.columns.stride, best, index);
}

/// Windows from `column` on that reach beyond no end of a row: up to `most`.
inline int whole_windows(const pooled_dimension& d, int column, int most) {
  if (column * d.stride < d.padding) return 0;
  const int last = (d.input + d.padding - d.kernel) / d.stride;  // the last that is whole
  return ::std::clamp(last - column + 1, 0, most);
}

}  // namespace furl::host::detail

FURL_HIDDEN_END
