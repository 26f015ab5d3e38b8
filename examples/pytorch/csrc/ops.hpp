// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The operators, for any engine. Tensors are taken in the order of their memory, so that
// channels-last images are read and written as they lie; a window is given in the order of the
// dimensions and follows them. Outputs and blobs are made by torch's allocator.

#include <torch/version.h>

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <vector>

#include "arguments.hpp"
#include "engines.hpp"

namespace furl_torch {

template <class Engine>
struct ops {
  static Tensor compress(const Tensor& x, std::int64_t bits, IntArrayRef window, std::int64_t group,
                         std::int64_t seed, std::int64_t offset) {
    return compress_by(x, {bits, window, group}, key_of(seed, offset), {});
  }

  /// For graphs that are compiled once and run many times: with a key that no other call has. Codes
  /// and bools are packed; -1 bits are for which elements are above 0.
  static Tensor graph_pack(const Tensor& x, std::int64_t bits, IntArrayRef window,
                           std::int64_t group) {
    if (is_code(x.scalar_type())) return pack(x, bits);
    if (bits < 0) return pack_positive(x);
    return compress(x, bits, window, group, noise().seed, noise().offset++);
  }

  /// The inverse; signs are restored as 0 and 1.
  static Tensor graph_unpack(const Tensor& blob, IntArrayRef size, IntArrayRef stride,
                             at::ScalarType dtype, std::int64_t bits, IntArrayRef window,
                             std::int64_t group) {
    if (is_code(dtype)) return unpack(blob, size, stride, dtype, bits);
    if (bits < 0) return unpack_levels(blob, size, stride, dtype, 1.0);
    return decompress(blob, size, stride, dtype, bits, window, group);
  }

  static Tensor decompress(const Tensor& blob, IntArrayRef size, IntArrayRef stride,
                           at::ScalarType dtype, std::int64_t bits, IntArrayRef window,
                           std::int64_t group) {
    dtype_of(dtype);
    const Engine engine(blob);
    const furl::plan p = value_plan(size, stride, {bits, window, group});
    check_blob(p, blob, blob);
    const Tensor y = new_tensor(blob, size, stride, dtype);
    check(engine.decompress(p, blob, y));
    return y;
  }

  /// Rotated codes of x in which every token, the elements along its last dimension, is normalised
  /// by numbers of its own.
  static Tensor compress_tokens(const Tensor& x, std::int64_t bits, const Tensor& mean,
                                const Tensor& inverse_deviation, std::int64_t seed,
                                std::int64_t offset) {
    TORCH_CHECK(x.is_contiguous(), "furl: x must be contiguous");
    return compress_by(x, {bits, {}, 0}, key_of(seed, offset),
                       statistics_of(x, mean, inverse_deviation));
  }

  static Tensor decompress_tokens(const Tensor& blob, IntArrayRef size, at::ScalarType dtype,
                                  std::int64_t bits, const Tensor& mean,
                                  const Tensor& inverse_deviation) {
    dtype_of(dtype);
    const Engine engine(blob);
    const Tensor y = at::empty(size, blob.options().dtype(dtype));
    const furl::plan p = value_plan(size, y.strides(), {bits, {}, 0});
    check_blob(p, blob, blob);
    check(engine.decompress(p, blob, y, statistics_of(y, mean, inverse_deviation)));
    return y;
  }

  static void decompress_add_(const Tensor& y, const Tensor& blob, std::int64_t bits,
                              IntArrayRef window, std::int64_t group) {
    dtype_of(y.scalar_type());
    TORCH_CHECK(y.is_non_overlapping_and_dense(), "furl: y must have no gaps in memory");
    const Engine engine(y);
    const furl::plan p = value_plan(y.sizes(), y.strides(), {bits, window, group});
    check_blob(p, blob, y);
    check(engine.decompress_add(p, blob, y));
  }

  static Tensor pack(const Tensor& codes, std::int64_t bits) {
    TORCH_CHECK_TYPE(is_code(codes.scalar_type()), "furl: dtype of codes is ", codes.scalar_type(),
                     ": must be uint8 or bool");
    const Engine engine(codes);
    const Tensor bytes = dense(codes);
    const furl::plan p = code_plan(codes.numel(), bits);
    const Tensor blob = new_blob(p, codes);
    check(engine.pack(p, bytes, blob));
    return blob;
  }

  static Tensor unpack(const Tensor& blob, IntArrayRef size, IntArrayRef stride,
                       at::ScalarType dtype, std::int64_t bits) {
    TORCH_CHECK_TYPE(is_code(dtype), "furl: dtype is ", dtype, ": must be uint8 or bool");
    const Engine engine(blob);
    const Tensor codes = new_tensor(blob, size, stride, dtype);
    const furl::plan p = code_plan(codes.numel(), bits);
    check_blob(p, blob, blob);
    check(engine.unpack(p, blob, codes));
    return codes;
  }

  static Tensor pack_positive(const Tensor& x) { return pack_by(x, 1, furl::positive_codebook()); }

  /// Gives y the signs that pack_positive saw: what was not above 0 becomes 0, what was and no
  /// longer is becomes a small positive number. It is not the smallest: products with gradients
  /// would be subnormal, with which a CPU takes a hundred times as long.
  static void restore_positive_(const Tensor& y, const Tensor& blob) {
    TORCH_CHECK(y.is_non_overlapping_and_dense(), "furl: y must have no gaps in memory");
    y.clamp_min_(y.scalar_type() == at::kHalf ? 0x1p-14 : 0x1p-64);
    const Engine engine(y);
    const furl::plan p = code_plan(y.numel(), 1);
    check_blob(p, blob, y);
    check(engine.unpack_multiply(p, blob, furl::positive_codebook(), y, y));
  }

  /// 0 where the mask is not set, `level` where it is.
  static Tensor unpack_levels(const Tensor& blob, IntArrayRef size, IntArrayRef stride,
                              at::ScalarType dtype, double level) {
    dtype_of(dtype);
    const Engine engine(blob);
    const Tensor y = new_tensor(blob, size, stride, dtype);
    const furl::plan p = code_plan(y.numel(), 1);
    check_blob(p, blob, blob);
    check(engine.unpack(p, blob, furl::positive_codebook(0.0f, float(level)), y));
    return y;
  }

  static std::tuple<Tensor, Tensor> relu(const Tensor& x) {
    const Engine engine(x);
    const Tensor values = dense(x);
    const furl::plan p = code_plan(x.numel(), 1);
    const Tensor blob = new_blob(p, x);
    const Tensor y = at::empty_like(values);
    check(engine.relu(p, values, y, blob));
    return {y, blob};
  }

  static Tensor relu_backward(const Tensor& g, const Tensor& blob) {
    return multiply(g, blob, 1, furl::positive_codebook());
  }

  /// The same call takes gradients to their inputs.
  static Tensor dropout(const Tensor& x, double p, std::int64_t seed, std::int64_t offset) {
    const Engine engine(x);
    const Tensor values = dense(x);
    const Tensor y = at::empty_like(values);
    check(engine.dropout(values, p, y, key_of(seed, offset)));
    return y;
  }

  static Tensor pack_gelu(const Tensor& x, std::int64_t bits) {
    return pack_by(x, bits, gelu_codebook(bits));
  }

  static Tensor gelu_backward(const Tensor& g, const Tensor& blob, std::int64_t bits) {
    return multiply(g, blob, bits, gelu_codebook(bits));
  }

  static std::tuple<Tensor, Tensor> max_pool2d(const Tensor& x, IntArrayRef kernel,
                                               IntArrayRef stride, IntArrayRef padding) {
    const Engine engine(x);
    const Tensor values = x.contiguous();
    const furl::max_pool_plan p = pool_plan(x.sizes(), kernel, stride, padding);
    const furl::extents& shape = p.output_shape();
    const std::vector<std::int64_t> sizes(shape.size, shape.size + shape.rank);
    const Tensor y = at::empty(sizes, values.options().memory_format(at::MemoryFormat::Contiguous));
    const Tensor blob = new_blob(p.codes(), x);
    check(engine.max_pool(p, values, y, blob));
    return {y, blob};
  }

  static Tensor max_pool2d_backward(const Tensor& g, const Tensor& blob, IntArrayRef size,
                                    IntArrayRef kernel, IntArrayRef stride, IntArrayRef padding) {
    const Engine engine(g);
    const Tensor gradient = g.contiguous();
    const furl::max_pool_plan p = pool_plan(size, kernel, stride, padding);
    check_blob(p.codes(), blob, g);
    const Tensor out = at::empty(size, gradient.options());
    check(engine.max_pool_backward(p, blob, gradient, out));
    return out;
  }

 private:
  static Tensor compress_by(const Tensor& x, const settings& how, furl::random_key key,
                            const furl::statistics& statistics) {
    dtype_of(x.scalar_type());
    const Engine engine(x);
    const Tensor values = dense(x);
    const furl::plan p = value_plan(values.sizes(), values.strides(), how);
    const Tensor blob = new_blob(p, values);
    check(engine.compress(p, values, blob, key, statistics));
    return blob;
  }

  static furl::statistics statistics_of(const Tensor& x, const Tensor& mean,
                                        const Tensor& inverse_deviation) {
    const std::int64_t width = x.dim() > 0 ? x.size(-1) : 1;
    for (const Tensor& of_tokens : {mean, inverse_deviation}) {
      TORCH_CHECK(of_tokens.scalar_type() == at::kFloat && of_tokens.is_contiguous() &&
                      of_tokens.device() == x.device() && of_tokens.numel() * width == x.numel(),
                  "furl: mean and inverse_deviation must have one float32 for each token, without "
                  "gaps, on the device of the tensor");
    }
    if (x.numel() == 0) return {};
    return {static_cast<const float*>(mean.data_ptr()),
            static_cast<const float*>(inverse_deviation.data_ptr()), mean.numel(), width};
  }

  static bool is_code(at::ScalarType type) { return type == at::kByte || type == at::kBool; }

  static const furl::codebook& gelu_codebook(std::int64_t bits) {
    TORCH_CHECK(bits >= 1 && bits <= 4, "furl: bits is ", bits, ": must be 1..4");
    static const std::vector<furl::codebook> books = [] {
      std::vector<furl::codebook> made;
      for (int b = 1; b <= 4; ++b)
        made.push_back(value_of(furl::host::derivative_codebook(furl::host::activation::gelu, b)));
      return made;
    }();
    return books[std::size_t(bits - 1)];
  }

  static Tensor pack_by(const Tensor& x, std::int64_t bits, const furl::codebook& book) {
    const Engine engine(x);
    const Tensor values = dense(x);
    const furl::plan p = code_plan(x.numel(), bits);
    const Tensor blob = new_blob(p, x);
    check(engine.pack(p, values, book, blob));
    return blob;
  }

  static Tensor multiply(const Tensor& g, const Tensor& blob, std::int64_t bits,
                         const furl::codebook& book) {
    TORCH_CHECK(g.is_non_overlapping_and_dense(), "furl: g must have no gaps in memory");
    const Engine engine(g);
    const furl::plan p = code_plan(g.numel(), bits);
    check_blob(p, blob, g);
    const Tensor out = at::empty_like(g);
    check(engine.unpack_multiply(p, blob, book, g, out));
    return out;
  }

  static furl::max_pool_plan pool_plan(IntArrayRef sizes, IntArrayRef kernel, IntArrayRef stride,
                                       IntArrayRef padding) {
    TORCH_CHECK(kernel.size() == 2 && stride.size() == 2 && padding.size() == 2,
                "furl: kernel, stride and padding must have two numbers each");
    furl::pool_window window;
    for (std::size_t d = 0; d < 2; ++d) {
      const auto bounded = [](std::int64_t v) {
        return int(std::clamp<std::int64_t>(v, -1, 1 << 30));
      };
      window.kernel[d] = bounded(kernel[d]);
      window.stride[d] = bounded(stride[d]);
      window.padding[d] = bounded(padding[d]);
    }
    return value_of(furl::max_pool_plan::make({sizes.data(), int(sizes.size())}, window));
  }
};

/// Registers the operators for one engine.
template <class Engine, class Library>
void register_ops(Library& m) {
  using all = ops<Engine>;
  m.impl("compress", &all::compress);
#if TORCH_VERSION_MAJOR >= 2
  if (!std::is_same_v<Engine, meta_engine>) {  // graph.py has their shapes
    m.impl("graph_pack", &all::graph_pack);
    m.impl("graph_unpack", &all::graph_unpack);
  }
#endif
  m.impl("decompress", &all::decompress);
  m.impl("decompress_add_", &all::decompress_add_);
  m.impl("compress_tokens", &all::compress_tokens);
  m.impl("decompress_tokens", &all::decompress_tokens);
  m.impl("pack", &all::pack);
  m.impl("unpack", &all::unpack);
  m.impl("pack_positive", &all::pack_positive);
  m.impl("restore_positive_", &all::restore_positive_);
  m.impl("unpack_levels", &all::unpack_levels);
  m.impl("relu", &all::relu);
  m.impl("relu_backward", &all::relu_backward);
  m.impl("dropout", &all::dropout);
  m.impl("pack_gelu", &all::pack_gelu);
  m.impl("gelu_backward", &all::gelu_backward);
  m.impl("max_pool2d", &all::max_pool2d);
  m.impl("max_pool2d_backward", &all::max_pool2d_backward);
}

}  // namespace furl_torch
