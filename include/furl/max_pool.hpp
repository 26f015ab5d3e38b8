// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What max pooling in host and in device memory share: sizes, and the checks of calls.

#include "furl/arguments.hpp"
#include "furl/codec.hpp"
#include "furl/config.hpp"
#include "furl/element/max_pool.hpp"
#include "furl/plan.hpp"
#include "furl/status.hpp"
#include "furl/view.hpp"

namespace furl {
inline namespace v0_1 {

/// Windows over the last two dimensions of a tensor: of height and width, in elements.
struct pool_window {
  int kernel[2] = {2, 2};   // at most 256 elements together
  int stride[2] = {2, 2};   // from window to window
  int padding[2] = {0, 0};  // around the image, never chosen; at most half of the kernel
};

/// Sizes of a max pooling. Trivially copyable; made by make() only, so that one at hand is valid.
class max_pool_plan {
 public:
  /// shape : of the input, images in the last two dimensions; (size + 2 padding - kernel) / stride
  ///         + 1 windows along each, rounded down. An image has fewer than 2^30 elements.
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

}  // namespace v0_1

// ---- Making a plan ----------------------------------------------------------------------------

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

#if !defined(__CUDACC_RTC__)

FURL_HIDDEN_BEGIN

namespace detail {

/// The checks of both passes: an array of the inputs' size, one of the outputs', and the blob.
inline status check_max_pool(const max_pool_plan& p, const_values inputs, const char* inputs_name,
                             const_values outputs, const char* outputs_name, const_bytes blob) {
  const plan& codes = p.codes();
  if (inputs.num_elements != p.num_inputs())
    return {error::wrong_size, inputs_name, inputs.num_elements,
            "must have as many elements as the input's shape"};
  if (inputs.data == nullptr && inputs.num_elements > 0)
    return {error::null_pointer, inputs_name, 0, "must not be null"};
  if (const status s =
          check_elements(codes, outputs.data, outputs.num_elements, outputs.type, outputs_name);
      !s)
    return s;
  if (inputs.type != outputs.type)
    return {error::out_of_range, inputs_name, i64(inputs.type), "must have the other's dtype"};
  if (const status s = check_blob(codes, blob.data, blob.size_bytes); !s) return s;
  if (const status s = check_apart(codes, blob.data, inputs.data, inputs.size_bytes(), inputs_name);
      !s)
    return s;
  if (const status s =
          check_apart(codes, blob.data, outputs.data, outputs.size_bytes(), outputs_name);
      !s)
    return s;
  if (p.num_outputs() > 0 &&
      overlap(inputs.data, inputs.size_bytes(), outputs.data, outputs.size_bytes()))
    return {error::overlap, outputs_name, 0, "must not overlap the other array"};
  return {};
}

}  // namespace detail

FURL_HIDDEN_END

#endif

}  // namespace furl
