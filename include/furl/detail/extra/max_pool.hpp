// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE THREAD. Max pooling of images: an output with its index in the window, and the gradients of a
// few inputs, gathered from the outputs that they may have given (FORMAT.md, A11).

#include "furl/config.hpp"
#include "furl/detail/cells.hpp"
#include "furl/detail/number.hpp"
#include "furl/detail/quantize.hpp"

namespace furl {

/// One of the two dimensions of an image that are pooled. Sizes are in elements.
struct pooled_dimension {
  int input;            // size of the image
  int output;           // number of windows
  int kernel;           // size of a window
  int stride;           // from window to window
  int padding;          // what the first window reaches beyond the image; never chosen
  divisor32 by_stride;  // the stride as a divisor

  /// @{
  /// First element of a window that lies in the image, and the first behind.
  FURL_HD int begin(int window) const {
    const int at = window * stride - padding;
    return at < 0 ? 0 : at;
  }
  FURL_HD int end(int window) const {
    const int at = window * stride - padding + kernel;
    return at < input ? at : input;
  }
  /// @}
  /// @{
  /// First window that holds an element, and the first behind.
  FURL_HD int first_window(int element) const {
    const int at = element + padding - kernel;  // the last element that it must begin behind
    return at < 0 ? 0 : int(by_stride.divide(u32(at))) + 1;
  }
  FURL_HD int end_window(int element) const {
    const int at = int(by_stride.divide(u32(element + padding))) + 1;
    return at < output ? at : output;
  }
  /// @}
  /// Position of an element in a window.
  FURL_HD int place(int element, int window) const { return element - (window * stride - padding); }
};

/// Images of one size, and the way from an element to its place in them.
struct image_list {
  divisor64 plane;   // elements of an image
  divisor32 row;     // elements of a row
  i64 num_elements;  // of all images

  /// `planes` images of rows x columns elements.
  FURL_HD constexpr image_list(i64 planes, int rows, int columns)
      : plane(u64(rows) * u64(columns)),
        row(u32(columns)),
        num_elements(planes * i64(rows) * columns) {}

  /// Where an element is.
  struct place {
    i64 plane;   // its image
    int row;     // in the image
    int column;  // likewise
  };
  /// Of the element `index`.
  FURL_HD place place_of(i64 index) const {
    const u64 image = plane.divide(u64(index));
    const u32 rest = u32(u64(index) - image * plane.value);
    const u32 line = row.divide(rest);
    return {i64(image), int(line), int(rest - line * row.value)};
  }
};

/// What a pooling does to each of its images.
struct pool_geometry {
  pooled_dimension rows;     // the last dimension but one
  pooled_dimension columns;  // the last
  i64 num_planes;            // images
  int bits;                  // of a code
};

/// What a window gives.
struct window_max {
  float value;  // the maximum
  int index;    // where it is, row-major in the window
};

/// The largest element of a window: the first of equal ones, the last NaN if there is any.
/// load(row, column) gives an element of the image, as f32.
#if defined(__CUDACC__) && !defined(__clang__)
#pragma nv_exec_check_disable  // a function of the host or of the device, as the caller is
#endif
template <class Load>
FURL_HD window_max max_of_window(const pool_geometry& g, int out_row, int out_column,
                                 const Load& load) {
  const int row_begin = g.rows.begin(out_row);
  const int row_end = g.rows.end(out_row);
  const int column_begin = g.columns.begin(out_column);
  const int column_end = g.columns.end(out_column);
  // Where all are -infinity, the first is chosen.
  window_max best{float_of(0xff800000u), g.rows.place(row_begin, out_row) * g.columns.kernel +
                                             g.columns.place(column_begin, out_column)};
  FURL_NO_UNROLL
  for (int row = row_begin; row < row_end; ++row) {
    const int line = g.rows.place(row, out_row) * g.columns.kernel;
    FURL_NO_UNROLL
    for (int column = column_begin; column < column_end; ++column) {
      const float value = load(row, column);
      if (is_above(value, best.value) || is_nan(value))
        best = {value, line + g.columns.place(column, out_column)};
    }
  }
  return best;
}

/// Inputs of a column that are gathered at once: they share most of their windows.
inline constexpr int gathered_rows = 4;

/// The gradients of inputs row .. row + 3 of a column: of the outputs whose index names them, added
/// in the order of outputs. Those of rows behind the image have no meaning.
/// code_of(output) and gradient_of(output) take the position of an output in its image.
#if defined(__CUDACC__) && !defined(__clang__)
#pragma nv_exec_check_disable  // a function of the host or of the device, as the caller is
#endif
template <class Code, class Gradient>
FURL_HD void gather_gradients(const pool_geometry& g, int row, int column, const Code& code_of,
                              const Gradient& gradient_of, float (&sum)[gathered_rows]) {
  const int last_row =
      row + gathered_rows < g.rows.input ? row + gathered_rows - 1 : g.rows.input - 1;
  const int row_end = g.rows.end_window(last_row);
  const int column_begin = g.columns.first_window(column);
  const int column_end = g.columns.end_window(column);
  const int num_places = g.rows.kernel * g.columns.kernel;
  FURL_UNROLL
  for (float& each : sum) each = 0.0f;
  FURL_NO_UNROLL
  for (int r = g.rows.first_window(row); r < row_end; ++r) {
    const int line = g.rows.place(row, r) * g.columns.kernel;
    FURL_NO_UNROLL
    for (int c = column_begin; c < column_end; ++c) {
      const int output = r * g.columns.output + c;
      const int code = int(code_of(output));
      if (code >= num_places) continue;  // of no element, from a blob that max_pool did not write
      const float gradient = gradient_of(output);
      const int place = line + g.columns.place(column, c);  // of the first row; the others' follow
      FURL_UNROLL
      for (int k = 0; k < gathered_rows; ++k)
        if (code == place + k * g.columns.kernel) sum[k] = add_rn(sum[k], gradient);
    }
  }
}

/// One code of a blob of codes.
FURL_HD u32 code_at(const u8* blob, i64 index, int bits) {
  const u32 in_tile = u32(index) % tile_elements;
  const u32 position = in_tile / row_elements * u32(bits);  // in the bits of the column
  const u64 tile = u64(index) / tile_elements;
  const u8* const byte = blob + tile * u64(bits * row_elements) +
                         (position / 8 * row_elements + in_tile % row_elements);
  const u32 shift = position % 8;
  u32 code = u32(*byte) >> shift;
  if (shift + u32(bits) > 8) code |= u32(byte[row_elements]) << (8 - shift);
  return code & low_bits(bits);
}

}  // namespace furl
