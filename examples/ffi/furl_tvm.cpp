// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// The functions of furl.h as functions of apache-tvm-ffi, which gives them the tensors of NumPy,
// PyTorch, JAX, Paddle and others without a copy:
//   m = tvm_ffi.load_module("libfurl_tvm.so")
//   plan = m.plan((64, 256), {"bits": 2})             # 96 bytes
//   m.compress(plan, x, (seed, offset), blob)         # blob: m.blob_bytes(plan) bytes
//   m.decompress(plan, blob, (seed, offset), y)
// A key is a pair of integers, or a tensor of 16 bytes, seed and offset, in the memory of the other
// tensors: uint32[4] in JAX. Work on a device goes to the stream that tvm_ffi knows. A refusal is a
// ValueError.

#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/container/shape.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/container/variant.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>

#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <limits>

#include "furl.h"

namespace {

namespace ffi = tvm::ffi;

static_assert(sizeof(furl_tensor) == sizeof(DLTensor));
static_assert(offsetof(furl_tensor, device) == offsetof(DLTensor, device));
static_assert(offsetof(furl_tensor, rank) == offsetof(DLTensor, ndim));
static_assert(offsetof(furl_tensor, dtype) == offsetof(DLTensor, dtype));
static_assert(offsetof(furl_tensor, shape) == offsetof(DLTensor, shape));
static_assert(offsetof(furl_tensor, strides) == offsetof(DLTensor, strides));
static_assert(offsetof(furl_tensor, byte_offset) == offsetof(DLTensor, byte_offset));

const furl_tensor* tensor_of(const DLTensor* t) {
  return reinterpret_cast<const furl_tensor*>(t);
}

/// The line of text of a call, and its end: an exception if the call was refused.
struct outcome {
  char text[FURL_TEXT_BYTES];

  void require(int32_t code) const {
    if (code != FURL_OK) TVM_FFI_THROW(ValueError) << "furl: " << text;
  }
};

/// 96 bytes, or 96 numbers, which is how an attribute of JAX arrives.
using any_plan = ffi::Variant<ffi::Bytes, ffi::Array<int64_t>>;

furl_plan plan_of(const any_plan& given) {
  furl_plan p;
  const auto bytes = given.as<ffi::Bytes>();
  const auto numbers = given.as<ffi::Array<int64_t>>();
  const std::size_t size = bytes ? bytes->size() : numbers->size();
  if (size != sizeof p.bytes)
    TVM_FFI_THROW(ValueError) << "furl: plan has " << size << " bytes: must have 96";
  if (bytes) {
    std::memcpy(p.bytes, bytes->data(), size);
  } else {
    for (std::size_t i = 0; i < size; ++i) {
      const int64_t number = (*numbers)[static_cast<int64_t>(i)];
      p.bytes[i] = static_cast<uint8_t>(number);
      if (p.bytes[i] != number)
        TVM_FFI_THROW(ValueError) << "furl: plan has a number " << number << ": must be 0..255";
    }
  }
  return p;
}

ffi::Bytes to_bytes(const furl_plan& p) {
  return {reinterpret_cast<const char*>(p.bytes), sizeof p.bytes};
}

bool is_on_device(const DLTensor* t) {
  return t->device.device_type == kDLCUDA || t->device.device_type == kDLCUDAManaged;
}

/// Where a call runs: on a device, on the stream that tvm-ffi knows.
furl_options options_of(const DLTensor* t) {
  furl_options o{};
  o.struct_bytes = sizeof o;
  if (is_on_device(t)) o.stream = TVMFFIEnvGetStream(kDLCUDA, t->device.device_id);
  return o;
}

/// Seed and offset: numbers, or where a device has them.
struct key {
  uint64_t number[2] = {};
  const uint64_t* on_device = nullptr;

  explicit key(ffi::AnyView given) {
    if (const auto pair = given.try_cast<ffi::Array<int64_t>>(); pair && pair->size() == 2) {
      for (int i = 0; i < 2; ++i) number[i] = static_cast<uint64_t>((*pair)[i]);
      return;
    }
    DLTensor* const tensor = given.try_cast<DLTensor*>().value_or(nullptr);
    int64_t bits = tensor == nullptr ? 0 : tensor->dtype.bits * tensor->dtype.lanes;
    for (int d = 0; tensor != nullptr && d < tensor->ndim; ++d) bits *= tensor->shape[d];
    if (bits != 128 || !ffi::IsContiguous(*tensor))
      TVM_FFI_THROW(ValueError)
          << "furl: key must be a pair of integers of 64 bits, or a tensor of 16 bytes";
    const char* const data = static_cast<const char*>(tensor->data) + tensor->byte_offset;
    if (is_on_device(tensor)) {
      on_device = reinterpret_cast<const uint64_t*>(data);
    } else {
      std::memcpy(number, data, sizeof number);
    }
  }
};

/// A number that the library refuses, by the name of its field, where it does not fit.
int32_t to_i32(int64_t number) {
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  return static_cast<int32_t>(number >= 0 && number < most ? number : -1);
}

/// A number, or the place of a name among names.
int32_t number_of(const ffi::Any& given, std::initializer_list<const char*> names) {
  if (const auto number = given.try_cast<int64_t>()) return to_i32(*number);
  const auto name = given.cast<ffi::String>();
  int32_t index = 0;
  for (const char* const each : names) {
    if (name == each) return index;
    ++index;
  }
  return -1;
}

furl_codec codec_of(const ffi::Map<ffi::String, ffi::Any>& given) {
  furl_codec c;
  furl_codec_init(&c, sizeof c);
  for (const auto& [name, value] : given) {
    if (name == "bits") {
      c.bits = to_i32(value.cast<int64_t>());
    } else if (name == "group") {
      c.group = to_i32(value.cast<int64_t>());
    } else if (name == "meta") {
      c.meta = number_of(value, {"f32", "f16", "bf16"});
    } else if (name == "rounding") {
      c.rounding = number_of(value, {"stochastic", "nearest", "dithered"});
    } else if (name == "coding") {
      c.coding = number_of(value, {"min_max", "rotated", "positives"});
    } else if (name == "by_lines") {
      c.by_lines = value.cast<bool>() ? 1 : 0;
    } else if (name == "window") {
      const auto window = value.cast<ffi::Array<int64_t>>();
      c.window_rank = to_i32(window.size());
      for (int32_t d = 0; d < c.window_rank && d < 8; ++d) c.window[d] = to_i32(window[d]);
    } else {
      TVM_FFI_THROW(ValueError) << "furl: codec has no field \"" << name << "\"";
    }
  }
  return c;
}

ffi::Bytes make_plan(const ffi::Shape& shape, const ffi::Map<ffi::String, ffi::Any>& codec) {
  const furl_codec c = codec_of(codec);
  furl_plan p;
  outcome o;
  o.require(furl_plan_make(&c, shape.data(), static_cast<int32_t>(shape.size()), &p, o.text));
  return to_bytes(p);
}

ffi::Bytes make_plan_of_codes(const ffi::Shape& shape, int64_t bits) {
  furl_plan p;
  outcome o;
  o.require(furl_plan_make_codes(to_i32(bits), shape.data(), static_cast<int32_t>(shape.size()), &p,
                                 o.text));
  return to_bytes(p);
}

int64_t blob_bytes(const any_plan& plan) {
  const furl_plan p = plan_of(plan);
  furl_sizes sizes{};
  sizes.struct_bytes = sizeof sizes;
  outcome o;
  o.require(furl_plan_sizes(&p, &sizes, o.text));
  return sizes.blob_bytes;
}

/// A function of furl.h with a plan, two tensors and a key.
template <class Function>
void call_with_key(Function function, const any_plan& plan, const DLTensor* from,
                   ffi::AnyView key_given, const DLTensor* to) {
  const furl_plan p = plan_of(plan);
  const key k(key_given);
  furl_options options = options_of(from);
  options.device_key = k.on_device;
  outcome o;
  o.require(
      function(&p, tensor_of(from), tensor_of(to), k.number[0], k.number[1], &options, o.text));
}

/// The same without a key.
template <class Function, class... Tensors>
void call(Function function, const any_plan& plan, const DLTensor* first, const Tensors*... rest) {
  const furl_plan p = plan_of(plan);
  const furl_options options = options_of(first);
  outcome o;
  o.require(function(&p, tensor_of(first), tensor_of(rest)..., &options, o.text));
}

void compress(const any_plan& plan, DLTensor* x, ffi::AnyView key, DLTensor* blob) {
  call_with_key(furl_compress, plan, x, key, blob);
}
void decompress(const any_plan& plan, DLTensor* blob, ffi::AnyView key, DLTensor* y) {
  call_with_key(furl_decompress, plan, blob, key, y);
}
void decompress_add(const any_plan& plan, DLTensor* blob, ffi::AnyView key, DLTensor* y) {
  call_with_key(furl_decompress_add, plan, blob, key, y);
}
void pack(const any_plan& plan, DLTensor* codes, DLTensor* blob) {
  call(furl_pack, plan, codes, blob);
}
void unpack(const any_plan& plan, DLTensor* blob, DLTensor* codes) {
  call(furl_unpack, plan, blob, codes);
}
void relu(const any_plan& plan, DLTensor* x, ffi::AnyView key_given, DLTensor* y, DLTensor* blob) {
  const furl_plan p = plan_of(plan);
  const key k(key_given);
  furl_options options = options_of(x);
  options.device_key = k.on_device;
  outcome o;
  o.require(furl_relu(&p, tensor_of(x), tensor_of(y), tensor_of(blob), k.number[0], k.number[1],
                      &options, o.text));
}
void relu_backward(const any_plan& plan, DLTensor* blob, DLTensor* g, DLTensor* out) {
  call(furl_relu_backward, plan, blob, g, out);
}

}  // namespace

TVM_FFI_DLL_EXPORT_TYPED_FUNC(plan, make_plan)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(plan_of_codes, make_plan_of_codes)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(blob_bytes, blob_bytes)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(compress, compress)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(decompress, decompress)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(decompress_add, decompress_add)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(pack, pack)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(unpack, unpack)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(relu, relu)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(relu_backward, relu_backward)
