// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Max pooling that keeps the index of each maximum in its window, in as few bits as it needs, for
// its backward pass (FORMAT.md, A11). Calls for host memory; extra/max_pool.cuh has them for device
// memory.

#include "furl/config.hpp"
#include "furl/detail/cells.hpp"
#include "furl/detail/extra/max_pool.hpp"
#include "furl/plan.hpp"
#include "furl/types.hpp"

#if !defined(__CUDACC_RTC__)
#include <algorithm>

#include "furl/detail/checks.hpp"
#include "furl/detail/host/max_pool_rows.hpp"
#include "furl/detail/host/tile.hpp"
#include "furl/detail/host/work.hpp"
#include "furl/detail/number.hpp"
#include "furl/thread_pool.hpp"
#endif

namespace furl {
inline namespace v0_2 {

/// The windows of a max pooling over the last two dimensions of a tensor: of height and width, in
/// elements.
struct pool_window {
  int kernel[2] = {2, 2};   // at most 256 elements together
  int stride[2] = {2, 2};   // from window to window
  int padding[2] = {0, 0};  // around the image, never chosen; at most half of the kernel
};

/// The sizes of a max pooling. They can be copied as bytes, and are made by make() only, so that a
/// plan at hand is a valid one.
class max_pool_plan {
 public:
  /// Makes a plan, or says what is wrong with a size.
  /// shape  : of the input, whose images are the last two dimensions. An image has fewer than 2^30
  ///          elements. Along each dimension there are (size + 2 padding - kernel) / stride + 1
  ///          windows, rounded down.
  /// window : the same for all images.
  static constexpr result<max_pool_plan> make(const extents& shape, const pool_window& window);

  /// No images.
  constexpr max_pool_plan() = default;

  /// Elements of the input.
  constexpr i64 num_inputs() const {
    return geometry_.num_planes * geometry_.rows.input * geometry_.columns.input;
  }
  constexpr i64 num_outputs() const { return codes_.num_elements(); }       // windows
  constexpr const extents& output_shape() const { return codes_.shape(); }  // the last two pooled
  /// Of the blob of window indices.
  constexpr const plan& codes() const { return codes_; }
  constexpr const pool_geometry& geometry() const { return geometry_; }  // for kernels

 private:
  pool_geometry geometry_{};
  plan codes_{};
};

}  // namespace v0_2

FURL_HIDDEN_BEGIN

namespace detail {

inline constexpr int max_window_positions = 256;

constexpr result<pooled_dimension> make_pooled_dimension(i64 size, int kernel, int stride,
                                                         int padding) {
  if (kernel < 1 || kernel > max_window_positions)
    return status{error::out_of_range, "window.kernel", kernel, "must be 1..256"};
  if (stride < 1) return status{error::out_of_range, "window.stride", stride, "must be positive"};
  if (padding < 0 || padding > kernel / 2)
    return status{error::out_of_range, "window.padding", padding,
                  "must be 0 to half of the kernel"};
  if (size < 0 || size >= i64(1) << 30)
    return status{error::out_of_range, "shape", size, "an image must have 0 to 2^30 - 1 elements"};
  if (size + 2 * padding < kernel)
    return status{error::out_of_range, "window.kernel", kernel,
                  "must not exceed the image and its padding"};
  pooled_dimension d{};
  d.input = int(size);
  d.output = int((size + 2 * padding - kernel) / stride) + 1;
  d.kernel = kernel;
  d.stride = stride;
  d.padding = padding;
  d.by_stride = divisor32(u32(stride));
  return d;
}

}  // namespace detail

FURL_HIDDEN_END

constexpr result<max_pool_plan> max_pool_plan::make(const extents& shape,
                                                    const pool_window& window) {
  if (shape.rank < 2 || shape.rank > max_rank)
    return status{error::out_of_range, "shape.rank", shape.rank, "must be 2..8"};
  const i64 height = shape[shape.rank - 2];
  const i64 width = shape[shape.rank - 1];
  const auto rows =
      detail::make_pooled_dimension(height, window.kernel[0], window.stride[0], window.padding[0]);
  if (!rows) return rows.status();
  const auto columns =
      detail::make_pooled_dimension(width, window.kernel[1], window.stride[1], window.padding[1]);
  if (!columns) return columns.status();
  const int positions = window.kernel[0] * window.kernel[1];
  if (positions > detail::max_window_positions)
    return status{error::out_of_range, "window.kernel", positions,
                  "a window must have at most 256 elements"};
  if (width > 0 && height > ((i64(1) << 30) - 1) / width)
    return status{error::out_of_range, "shape", height,
                  "an image must have 0 to 2^30 - 1 elements"};
  const auto input = plan::make_codes(1, shape);  // checks the shape
  if (!input) return input.status();
  int bits = 1;
  while ((1 << bits) < positions) ++bits;
  extents output = shape;
  output.size[shape.rank - 2] = rows->output;
  output.size[shape.rank - 1] = columns->output;
  const auto codes = plan::make_codes(bits, output);
  if (!codes) return codes.status();
  max_pool_plan p;
  p.geometry_.rows = *rows;
  p.geometry_.columns = *columns;
  p.geometry_.num_planes = codes->num_elements() / rows->output / columns->output;
  p.geometry_.bits = bits;
  p.codes_ = *codes;
  return p;
}

}  // namespace furl

#if !defined(__CUDACC_RTC__)

FURL_HIDDEN_BEGIN

namespace furl {

namespace detail {

/// The arrays of both passes: one of the inputs' size, one of the outputs', and the blob, all
/// apart.
inline status check_max_pool(const max_pool_plan& p, const_values inputs, const char* inputs_name,
                             const_values outputs, const char* outputs_name, const_bytes blob) {
  const plan& codes = p.codes();
  if (inputs.num_elements != p.num_inputs())
    return {error::wrong_size, inputs_name, inputs.num_elements,
            "must have as many elements as the input's shape"};
  if (const status s = check_not_null(inputs.data, inputs.num_elements > 0, inputs_name); !s)
    return s;
  if (const status s = check_elements(codes, outputs, outputs_name); !s) return s;
  if (inputs.type != outputs.type)
    return {error::out_of_range, inputs_name, i64(inputs.type), "must have the other's dtype"};
  if (const status s = check_blob(codes, blob); !s) return s;
  const named_bytes input_bytes = bytes_of(inputs, inputs_name);
  const named_bytes output_bytes = bytes_of(outputs, outputs_name);
  if (const status s = check_apart(bytes_of(codes, blob), {input_bytes, output_bytes},
                                   "must not overlap the blob");
      !s)
    return s;
  return check_apart(input_bytes, {output_bytes}, "must not overlap the other array");
}

}  // namespace detail

namespace host {

namespace detail {

/// A tile of outputs and their codes.
template <class T>
void pool_tile(const max_pool_plan& p, const image_list& outputs, const void* x, void* y, i64 tile,
               u8* codes) {
  const pool_geometry& g = p.geometry();
  const int count = elements_in_tile(p.codes(), tile);
  float best[tile_elements];
  u32 index[tile_elements];
  for (int i = 0; i < count;) {
    const image_list::place at = outputs.place_of(tile * tile_elements + i);
    const u8* const image =
        static_cast<const u8*>(x) + at.plane * g.rows.input * g.columns.input * i64(sizeof(T));
    const int left = (::std::min)(count - i, g.columns.output - at.column);
    const int run = whole_windows(g.columns, at.column, left);
    if (run > 0) {
      pool_run<T>(g, image, at.row, at.column, run, best + i, index + i);
    } else {
      const window_max one = max_of_window(g, at.row, at.column, [&](int row, int column) {
        return to_f32(load_at<T>(image, i64(row) * g.columns.input + column));
      });
      best[i] = one.value;
      index[i] = u32(one.index);
    }
    i += (::std::max)(run, 1);
  }
  for (int i = 0; i < count; ++i) {
    store_at(y, tile * tile_elements + i, round_to<T>(best[i]));
    codes[i] = u8(index[i]);
  }
}

/// Gradients of the inputs of a few rows of an image.
template <class T>
void gather_rows(const max_pool_plan& p, const u8* blob, const void* g, void* out, i64 image,
                 int row) {
  const pool_geometry& geometry = p.geometry();
  const int width = geometry.columns.input;
  const i64 first_output = image * geometry.rows.output * geometry.columns.output;
  const int rows = (::std::min)(gathered_rows, geometry.rows.input - row);
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

/// Writes to y the maximum of each window of x, and to the blob its index in the window, row by
/// row, in one pass. Of equal elements the first is chosen, of several NaN the last. NaN is above
/// all.
/// p    : from max_pool_plan::make.
/// x    : host, p.num_inputs() elements of any dtype, at any alignment.
/// y    : host, p.num_outputs() elements of x's dtype, disjoint from x.
/// blob : host, p.codes().size_bytes() bytes or more, at any alignment, disjoint from x and y.
/// pool : threads to work with; none: the calling thread alone.
/// A bad argument is refused before anything is written: see status. Nothing is allocated.
inline status max_pool(const max_pool_plan& p, const_values x, values y, bytes blob,
                       thread_pool* pool = nullptr) {
  if (const status s = furl::detail::check_max_pool(p, x, "x", y, "y", blob); !s) return s;
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

/// Writes the gradient of the input of a max pooling. At each maximum that is the sum of the
/// gradients of the windows that chose it, added in f32 in the order of windows and rounded once;
/// elsewhere it is +0.
/// p    : from max_pool_plan::make.
/// blob : host, what max_pool wrote, at any alignment. Indices beyond the window are ignored.
/// g    : host, the gradient of y: p.num_outputs() elements of any dtype, at any alignment.
/// out  : host, p.num_inputs() elements of g's dtype, disjoint from g and the blob.
/// pool : threads to work with; none: the calling thread alone.
/// A bad argument is refused before anything is written: see status. Nothing is allocated.
inline status max_pool_backward(const max_pool_plan& p, const_bytes blob, const_values g,
                                values out, thread_pool* pool = nullptr) {
  if (const status s = furl::detail::check_max_pool(p, out, "out", g, "g", blob); !s) return s;
  const i64 strips = furl::detail::ceil_div(p.geometry().rows.input, gathered_rows);
  with_type(g.type, [&](auto element) {
    detail::for_each_unit(p.geometry().num_planes * strips, pool, [&](i64 strip) {
      detail::gather_rows<decltype(element)>(p, static_cast<const u8*>(blob.data), g.data, out.data,
                                             strip / strips, int(strip % strips) * gathered_rows);
    });
  });
  return {};
}

}  // namespace host

}  // namespace furl

FURL_HIDDEN_END

#endif
