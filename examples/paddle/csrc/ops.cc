// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// The operators, for tensors in host memory, and, where nvcc compiles this file (ops_cuda.cu), in
// device memory too. They have no gradients: hooks call them outside of autograd. Elements are
// taken as one row, and results are made by Paddle's allocator.

#include <paddle/extension.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#if defined(__CUDACC__)
#include "furl/furl.cuh"
#else
#include "furl/furl.hpp"
#endif

namespace {

using paddle::Tensor;

furl::dtype dtype_of(paddle::DataType type) {
  if (type == paddle::DataType::FLOAT16) return furl::dtype::f16;
  if (type == paddle::DataType::BFLOAT16) return furl::dtype::bf16;
  PD_CHECK(type == paddle::DataType::FLOAT32, "furl: dtype is ", phi::DataTypeToString(type),
           ": must be float32, float16 or bfloat16");
  return furl::dtype::f32;
}

paddle::DataType dtype_named(const std::string& name) {
  if (name == "float16") return paddle::DataType::FLOAT16;
  if (name == "bfloat16") return paddle::DataType::BFLOAT16;
  PD_CHECK(name == "float32", "furl: dtype is ", name, ": must be float32, float16 or bfloat16");
  return paddle::DataType::FLOAT32;
}

void check(const furl::status& s) {
  PD_CHECK(s.ok(), "furl: ", furl::to_string(s));
}
furl::plan value_of(const furl::result<furl::plan>& plan) {
  check(plan.status());
  return *plan;
}

/// Group 0 means rotated codes. What is beyond every limit stays beyond it as an int.
furl::plan value_plan(std::int64_t num_elements, std::int64_t bits, std::int64_t group) {
  const auto to_int = [](std::int64_t n) {
    return int(std::clamp<std::int64_t>(n, -1, std::numeric_limits<int>::max()));
  };
  furl::codec codec;
  codec.bits = to_int(bits);
  if (group == 0) {
    codec.coding = furl::coding::rotated;
  } else {
    codec.group = to_int(group);
  }
  return value_of(furl::plan::make(codec, {num_elements}));
}
furl::plan mask_plan(std::int64_t num_elements) {
  return value_of(furl::plan::make_codes(1, {num_elements}));
}

furl::const_values values_of(const Tensor& x) {
  return {x.data(), dtype_of(x.dtype()), x.numel()};
}
furl::values values_of(Tensor& x) {
  return {x.data(), dtype_of(x.dtype()), x.numel()};
}
furl::bytes bytes_of(Tensor& blob) {
  return {blob.data(), furl::u64(blob.numel())};
}
furl::const_bytes bytes_of(const Tensor& blob) {
  return {blob.data(), furl::u64(blob.numel())};
}
furl::random_key key_of(std::int64_t seed, std::int64_t offset) {
  return {furl::u64(seed), furl::u64(offset)};
}

Tensor new_blob(const furl::plan& p, const Tensor& like) {
  return paddle::empty({std::int64_t(p.size_bytes())}, paddle::DataType::UINT8, like.place());
}
Tensor new_tensor(const std::vector<std::int64_t>& shape, const std::string& dtype,
                  const Tensor& blob) {
  return paddle::empty(shape, dtype_named(dtype), blob.place());
}
void check_blob(const furl::plan& p, const Tensor& blob) {
  PD_CHECK(blob.dtype() == paddle::DataType::UINT8, "furl: the blob's dtype is ",
           phi::DataTypeToString(blob.dtype()), ": must be uint8");
  PD_CHECK(blob.numel() == std::int64_t(p.size_bytes()), "furl: the blob has ", blob.numel(),
           " bytes, and this shape and codec need ", p.size_bytes());
}

std::vector<Tensor> compress(const Tensor& x, std::int64_t bits, std::int64_t group,
                             std::int64_t seed, std::int64_t offset) {
  const furl::const_values values = values_of(x);
  const furl::plan p = value_plan(x.numel(), bits, group);
  Tensor blob = new_blob(p, x);
#if defined(__CUDACC__)
  if (x.is_gpu()) {
    check(furl::compress(p, values, bytes_of(blob), key_of(seed, offset), x.stream()));
    return {blob};
  }
#endif
  check(furl::host::compress(p, values, bytes_of(blob), key_of(seed, offset)));
  return {blob};
}

std::vector<Tensor> decompress(const Tensor& blob, const std::vector<std::int64_t>& shape,
                               const std::string& dtype, std::int64_t bits, std::int64_t group,
                               std::int64_t seed, std::int64_t offset) {
  Tensor y = new_tensor(shape, dtype, blob);
  const furl::plan p = value_plan(y.numel(), bits, group);
  check_blob(p, blob);
#if defined(__CUDACC__)
  if (blob.is_gpu()) {
    check(furl::decompress(p, bytes_of(blob), values_of(y), key_of(seed, offset), blob.stream()));
    return {y};
  }
#endif
  check(furl::host::decompress(p, bytes_of(blob), values_of(y), key_of(seed, offset)));
  return {y};
}

/// One bit for each element: whether it is above 0.
std::vector<Tensor> pack_positive(const Tensor& x) {
  const furl::const_values values = values_of(x);
  const furl::plan p = mask_plan(x.numel());
  Tensor blob = new_blob(p, x);
#if defined(__CUDACC__)
  if (x.is_gpu()) {
    check(furl::pack(p, values, furl::positive_codebook(), bytes_of(blob), {}, x.stream()));
    return {blob};
  }
#endif
  check(furl::host::pack(p, values, furl::positive_codebook(), bytes_of(blob), {}));
  return {blob};
}

/// 1 where an element was above 0, else 0.
std::vector<Tensor> unpack_positive(const Tensor& blob, const std::vector<std::int64_t>& shape,
                                    const std::string& dtype) {
  Tensor y = new_tensor(shape, dtype, blob);
  const furl::plan p = mask_plan(y.numel());
  check_blob(p, blob);
#if defined(__CUDACC__)
  if (blob.is_gpu()) {
    check(furl::unpack(p, bytes_of(blob), furl::positive_codebook(), values_of(y), blob.stream()));
    return {y};
  }
#endif
  check(furl::host::unpack(p, bytes_of(blob), furl::positive_codebook(), values_of(y)));
  return {y};
}

// Graphs are built with shapes and dtypes alone. -1 is a size that is known later.

using Shape = std::vector<std::int64_t>;

std::int64_t known_elements(const Shape& shape) {
  std::int64_t n = 1;
  for (const std::int64_t size : shape) n = n < 0 || size < 0 ? -1 : n * size;
  return n;
}
std::vector<Shape> shape_of_compressed(const Shape& x, std::int64_t bits, std::int64_t group,
                                       std::int64_t, std::int64_t) {
  const std::int64_t n = known_elements(x);
  return {{n < 0 ? -1 : std::int64_t(value_plan(n, bits, group).size_bytes())}};
}
std::vector<Shape> shape_of_mask(const Shape& x) {
  const std::int64_t n = known_elements(x);
  return {{n < 0 ? -1 : std::int64_t(mask_plan(n).size_bytes())}};
}
std::vector<Shape> shape_of_decompressed(const Shape&, const Shape& shape, const std::string&,
                                         std::int64_t, std::int64_t, std::int64_t, std::int64_t) {
  return {shape};
}
std::vector<Shape> shape_of_unpacked(const Shape&, const Shape& shape, const std::string&) {
  return {shape};
}
std::vector<paddle::DataType> bytes_of_values(const paddle::DataType&) {
  return {paddle::DataType::UINT8};
}

}  // namespace

PD_BUILD_OP(furl_compress)
    .Inputs({"X"})
    .Outputs({"Blob"})
    .Attrs({"bits: int64_t", "group: int64_t", "seed: int64_t", "offset: int64_t"})
    .SetKernelFn(PD_KERNEL(compress))
    .SetInferShapeFn(PD_INFER_SHAPE(shape_of_compressed))
    .SetInferDtypeFn(PD_INFER_DTYPE(bytes_of_values));

PD_BUILD_OP(furl_decompress)
    .Inputs({"Blob"})
    .Outputs({"Y"})
    .Attrs({"shape: std::vector<int64_t>", "dtype: std::string", "bits: int64_t", "group: int64_t",
            "seed: int64_t", "offset: int64_t"})
    .SetKernelFn(PD_KERNEL(decompress))
    .SetInferShapeFn(PD_INFER_SHAPE(shape_of_decompressed));

PD_BUILD_OP(furl_pack_positive)
    .Inputs({"X"})
    .Outputs({"Blob"})
    .SetKernelFn(PD_KERNEL(pack_positive))
    .SetInferShapeFn(PD_INFER_SHAPE(shape_of_mask))
    .SetInferDtypeFn(PD_INFER_DTYPE(bytes_of_values));

PD_BUILD_OP(furl_unpack_positive)
    .Inputs({"Blob"})
    .Outputs({"Y"})
    .Attrs({"shape: std::vector<int64_t>", "dtype: std::string"})
    .SetKernelFn(PD_KERNEL(unpack_positive))
    .SetInferShapeFn(PD_INFER_SHAPE(shape_of_unpacked));
