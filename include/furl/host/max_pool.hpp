// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Max pooling that keeps the index of each maximum in its window, in as few bits as it needs, in
// host memory (README, A11).

#include <algorithm>

#include "furl/config.hpp"
#include "furl/dtype.hpp"
#include "furl/element/max_pool.hpp"
#include "furl/host/arguments.hpp"
#include "furl/host/codes.hpp"
#include "furl/host/shares.hpp"
#include "furl/host/tile.hpp"
#include "furl/max_pool.hpp"
#include "furl/status.hpp"
#include "furl/view.hpp"

FURL_HIDDEN_BEGIN

namespace furl::host {

namespace detail {

/// A tile of outputs and their codes.
template <class T>
void pool_tile(const max_pool_plan& p, const image_list& outputs, const void* x, void* y, i64 tile,
               u8* codes) {
  const pool_geometry& g = p.geometry();
  const i64 plane_inputs = i64(g.rows.input) * g.columns.input;
  const int count = elements_in_tile(p.codes(), tile);
  for (int i = 0; i < count; ++i) {
    const i64 output = tile * tile_elements + i;
    const image_list::place at = outputs.place_of(output);
    const window_max best = max_of_window(g, at.row, at.column, [&](int row, int column) {
      const i64 input = at.plane * plane_inputs + i64(row) * g.columns.input + column;
      return to_f32(load_at<T>(x, input));
    });
    store_at(y, output, round_to<T>(best.value));
    codes[i] = u8(best.index);
  }
}

/// Gradients of the inputs of a few rows of an image.
template <class T>
void gather_rows(const max_pool_plan& p, const u8* blob, const void* g, void* out, i64 image,
                 int row) {
  const pool_geometry& geometry = p.geometry();
  const int width = geometry.columns.input;
  const i64 first_output = image * geometry.rows.output * geometry.columns.output;
  const int rows = (std::min)(gathered_rows, geometry.rows.input - row);
  for (int column = 0; column < width; ++column) {
    float sum[gathered_rows];
    gather_gradients(
        geometry, row, column,
        [&](int output) { return code_at(blob, first_output + output, geometry.bits); },
        [&](int output) { return to_f32(load_at<T>(g, first_output + output)); }, sum);
    for (int k = 0; k < rows; ++k)
      store_at(out, (image * geometry.rows.input + row + k) * width + column, round_to<T>(sum[k]));
  }
}

}  // namespace detail

/// y = the maximum of each window of x, and its index in the window, row-major, in the same pass.
/// Of equal elements the first is chosen, of several NaN the last; NaN is above all.
/// x    : host, p.num_inputs() elements of any dtype, at any alignment.
/// y    : host, p.num_outputs() elements of x's dtype; apart from x.
/// blob : host, p.codes().size_bytes() bytes or more; aligned to 16 bytes; apart from x and y.
/// Errors: see status. Allocates nothing.
inline status max_pool(const max_pool_plan& p, const_values x, values y, bytes blob,
                       thread_pool* pool = nullptr) {
  const const_values out{y.data, y.type, y.num_elements};
  if (const status s =
          furl::detail::check_max_pool(p, x, "x", out, "y", {blob.data, blob.size_bytes});
      !s)
    return s;
  if (p.num_outputs() == 0) return {};
  const pool_geometry& g = p.geometry();
  const image_list outputs(g.num_planes, g.rows.output, g.columns.output);
  with_type(x.type, [&](auto element) {
    detail::for_each_unit(p.codes().num_tiles(), pool, [&](i64 tile) {
      detail::tile_bytes codes{};
      detail::pool_tile<decltype(element)>(p, outputs, x.data, y.data, tile,
                                           reinterpret_cast<u8*>(codes.word));
      detail::store_tile(p.codes(), tile, codes, blob);
    });
  });
  return {};
}

/// The gradient of the input: at each maximum those of the windows that chose it, added in f32 in
/// the order of windows and rounded once; +0 elsewhere.
/// blob : host, what max_pool wrote; aligned to 16 bytes. Indices beyond the window are ignored.
/// g    : host, p.num_outputs() elements of any dtype, at any alignment; the gradient of y.
/// out  : host, p.num_inputs() elements of g's dtype; apart from g and the blob.
/// Errors: see status. Allocates nothing.
inline status max_pool_backward(const max_pool_plan& p, const_bytes blob, const_values g,
                                values out, thread_pool* pool = nullptr) {
  const const_values inputs{out.data, out.type, out.num_elements};
  if (const status s = furl::detail::check_max_pool(p, inputs, "out", g, "g", blob); !s) return s;
  const i64 strips = furl::detail::ceil_div(p.geometry().rows.input, gathered_rows);
  with_type(g.type, [&](auto element) {
    detail::for_each_unit(p.geometry().num_planes * strips, pool, [&](i64 strip) {
      detail::gather_rows<decltype(element)>(p, static_cast<const u8*>(blob.data), g.data, out.data,
                                             strip / strips, int(strip % strips) * gathered_rows);
    });
  });
  return {};
}

}  // namespace furl::host

FURL_HIDDEN_END
