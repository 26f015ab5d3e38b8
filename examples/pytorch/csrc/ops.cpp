// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

#include "ops.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/library.h>

#include <mutex>
#include <string>

#include "consumer.hpp"
#include "inspect.hpp"

namespace {

/// The next 63 bits of torch's generator of the CPU.
std::int64_t draw_number() {
  auto* const generator =
      at::get_generator_or_default<at::CPUGeneratorImpl>({}, at::detail::getDefaultCPUGenerator());
  const std::lock_guard<std::mutex> lock(generator->mutex_);
  return std::int64_t(generator->random64() >> 1);
}

}  // namespace

// clang-format off
TORCH_LIBRARY(furl, m) {
  m.def("compress(Tensor x, int bits, int[] window, int group, int seed, int offset) -> Tensor");
#if TORCH_VERSION_MAJOR >= 2
  m.def("graph_pack(Tensor x, int bits, int[] window, int group) -> Tensor", {at::Tag::nondeterministic_seeded});
  m.def("graph_unpack(Tensor blob, SymInt[] size, SymInt[] stride, ScalarType dtype, int bits, int[] window, int group) -> Tensor");
#endif
  m.def("torch_version() -> str", [] { return std::string(TORCH_VERSION); });
  m.def("draw_number() -> int", &draw_number);
  m.def("set_next_key(int seed, int offset) -> ()", &furl_torch::set_next_key);
  m.def("decompress(Tensor blob, int[] size, int[] stride, ScalarType dtype, int bits, int[] window, int group) -> Tensor");
  m.def("compress_tokens(Tensor x, int bits, Tensor mean, Tensor inverse_deviation, int seed, int offset) -> Tensor");
  m.def("decompress_tokens(Tensor blob, int[] size, ScalarType dtype, int bits, Tensor mean, Tensor inverse_deviation) -> Tensor");
  m.def("decompress_add_(Tensor(a!) y, Tensor blob, int bits, int[] window, int group) -> ()");
  m.def("pack(Tensor codes, int bits) -> Tensor");
  m.def("unpack(Tensor blob, int[] size, int[] stride, ScalarType dtype, int bits) -> Tensor");
  m.def("pack_positive(Tensor x) -> Tensor");
  m.def("restore_positive_(Tensor(a!) y, Tensor blob) -> ()");
  m.def("unpack_levels(Tensor blob, int[] size, int[] stride, ScalarType dtype, float level) -> Tensor");
  m.def("relu(Tensor x) -> (Tensor, Tensor)");
  m.def("relu_backward(Tensor g, Tensor blob) -> Tensor");
  m.def("dropout(Tensor x, float p, int seed, int offset) -> Tensor");
  m.def("pack_gelu(Tensor x, int bits) -> Tensor");
  m.def("gelu_backward(Tensor g, Tensor blob, int bits) -> Tensor");
  m.def("max_pool2d(Tensor x, int[] kernel, int[] stride, int[] padding) -> (Tensor, Tensor)");
  m.def("max_pool2d_backward(Tensor g, Tensor blob, int[] size, int[] kernel, int[] stride, int[] padding) -> Tensor");
  m.def("inspect(Tensor x, int min_elements) -> (int, int)", &furl_torch::inspect);
  m.def("watch_operators(bool on) -> ()", &furl_torch::watch_operators);
  m.def("consumers(Tensor x) -> (str[], int)", &furl_torch::consumers);
  m.def("operator_settings() -> int[]", &furl_torch::operator_settings);
  m.def("cast_parameter(Tensor x) -> Tensor[]", &furl_torch::cast_parameter);
  m.def("hash_elements(Tensor x) -> int", &furl_torch::hash_elements);
  m.def("pack_two_values(Tensor x) -> (Tensor, float)", &furl_torch::pack_two_values);
  m.def("dense_stride(Tensor x) -> int[]", &furl_torch::dense_stride);
}
// clang-format on

TORCH_LIBRARY_IMPL(furl, CPU, m) {
  furl_torch::register_ops<furl_torch::host_engine>(m);
}

TORCH_LIBRARY_IMPL(furl, Meta, m) {
  furl_torch::register_ops<furl_torch::meta_engine>(m);
}

// None has a derivative of its own: autograd Functions give them one.
TORCH_LIBRARY_IMPL(furl, Autograd, m) {
  for (const char* const name :
       {"compress", "decompress", "decompress_add_", "compress_tokens", "decompress_tokens", "pack",
        "unpack", "pack_positive", "restore_positive_", "unpack_levels", "relu", "relu_backward",
        "dropout", "pack_gelu", "gelu_backward", "max_pool2d", "max_pool2d_backward"})
    m.impl(name, torch::CppFunction::makeFallthrough());
#if TORCH_VERSION_MAJOR >= 2
  for (const char* const name : {"graph_pack", "graph_unpack"})
    m.impl(name, torch::CppFunction::makeFallthrough());
#endif
}
