// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What XLA calls, for any engine. The memory is XLA's. A call works on a batch: the dimensions of
// the blobs but the last one count them, and each has its own key and an equal share of the
// elements.

#include <algorithm>
#include <cstdint>
#include <string>

#include "furl/furl.hpp"
#include "xla/ffi/api/ffi.h"

namespace furl_jax {

namespace ffi = xla::ffi;

/// Codes of 1 to 4 bits are rotated ones, those of more bits have a minimum and a step for each 256
/// values.
inline furl::result<furl::plan> value_plan(std::int64_t num_elements, std::int64_t bits) {
  furl::codec codec;
  codec.bits = int(std::clamp<std::int64_t>(bits, -1, furl::max_bits + 1));
  if (codec.bits <= 4) codec.coding = furl::coding::rotated;
  return furl::plan::make(codec, {num_elements});
}

inline furl::result<furl::plan> code_plan(std::int64_t num_elements, std::int64_t bits) {
  return furl::plan::make_codes(int(std::clamp<std::int64_t>(bits, -1, 9)), {num_elements});
}

using blob_buffer = ffi::Buffer<ffi::U8>;
using key_buffer = ffi::Buffer<ffi::U32>;

inline ffi::Error refuse(const std::string& why) {
  return ffi::Error::InvalidArgument("furl: " + why);
}
inline ffi::Error error_of(const furl::status& s) {
  return s ? ffi::Error::Success() : refuse(furl::to_string(s));
}

/// Calls work(plan, index) for each blob of a batch, after the checks that all calls share.
template <class MakePlan, class Work>
ffi::Error for_each_blob(const ffi::AnyBuffer& elements, const blob_buffer& blobs,
                         MakePlan make_plan, std::int64_t bits, Work work) {
  const auto dimensions = blobs.dimensions();
  if (dimensions.size() == 0) return refuse("blob has no dimension: must have one or more");
  const std::int64_t num_bytes = dimensions.back();
  if (blobs.element_count() == 0 && elements.element_count() == 0) return ffi::Error::Success();
  if (num_bytes == 0) return refuse("blob has 0 bytes: must have some for elements");
  const std::int64_t num_blobs = std::int64_t(blobs.element_count()) / num_bytes;
  const std::int64_t all_elements = std::int64_t(elements.element_count());
  if (num_blobs == 0 || all_elements % num_blobs != 0)
    return refuse(std::to_string(all_elements) + " elements for " + std::to_string(num_blobs) +
                  " blobs: must be equally many for each");
  const auto plan = make_plan(all_elements / num_blobs, bits);
  if (!plan) return error_of(plan.status());
  if (std::int64_t(plan->size_bytes()) != num_bytes)
    return refuse("blob has " + std::to_string(num_bytes) + " bytes: must have " +
                  std::to_string(plan->size_bytes()));
  for (std::int64_t i = 0; i < num_blobs; ++i)
    if (const furl::status s = work(*plan, i); !s) return error_of(s);
  return ffi::Error::Success();
}

template <class Engine>
struct handlers {
  using context = typename Engine::context;

  static ffi::Error compress(context c, ffi::AnyBuffer x, key_buffer key,
                             ffi::Result<blob_buffer> blob, std::int64_t bits) {
    return for_each_value_blob(
        x, key, *blob, bits,
        [&](const furl::plan& p, furl::values v, furl::bytes b, const furl::random_key* k) {
          return Engine(c, p).compress(p, v, b, k);
        });
  }

  /// The buffer without a name is not read: the call waits for what computes it.
  static ffi::Error decompress(context c, blob_buffer blob, key_buffer key, ffi::AnyBuffer,
                               ffi::Result<ffi::AnyBuffer> y, std::int64_t bits) {
    return for_each_value_blob(
        *y, key, blob, bits,
        [&](const furl::plan& p, furl::values v, furl::bytes b, const furl::random_key* k) {
          return Engine(c, p).decompress(p, b, v, k);
        });
  }

  static ffi::Error pack(context c, ffi::AnyBuffer codes, ffi::Result<blob_buffer> blob,
                         std::int64_t bits) {
    return for_each_code_blob(codes, *blob, bits,
                              [&](const furl::plan& p, furl::bytes bytes, furl::bytes b) {
                                return Engine(c, p).pack(p, bytes, b);
                              });
  }

  static ffi::Error unpack(context c, blob_buffer blob, ffi::AnyBuffer,
                           ffi::Result<ffi::AnyBuffer> codes, std::int64_t bits) {
    return for_each_code_blob(*codes, blob, bits,
                              [&](const furl::plan& p, furl::bytes bytes, furl::bytes b) {
                                return Engine(c, p).unpack(p, b, bytes);
                              });
  }

 private:
  template <class Buffer>
  static char* at(const Buffer& buffer, std::int64_t byte) {
    return static_cast<char*>(buffer.untyped_data()) + byte;
  }

  template <class Work>
  static ffi::Error for_each_value_blob(const ffi::AnyBuffer& x, const key_buffer& key,
                                        const blob_buffer& blob, std::int64_t bits, Work work) {
    furl::dtype type = furl::dtype::f32;
    if (x.element_type() == ffi::F16) {
      type = furl::dtype::f16;
    } else if (x.element_type() == ffi::BF16) {
      type = furl::dtype::bf16;
    } else if (x.element_type() != ffi::F32) {
      return refuse("dtype must be float32, float16 or bfloat16");
    }
    constexpr std::int64_t words = sizeof(furl::random_key) / 4;
    if (std::int64_t(key.element_count()) * std::max<std::int64_t>(blob.dimensions().back(), 1) !=
        words * std::int64_t(blob.element_count()))
      return refuse("key must have 4 words for each blob");
    const auto* const first_key = reinterpret_cast<const furl::random_key*>(key.typed_data());
    return for_each_blob(x, blob, value_plan, bits, [&](const furl::plan& p, std::int64_t i) {
      const std::int64_t bytes = p.num_elements() * std::int64_t(furl::size_bytes(type));
      return work(p, furl::values{at(x, i * bytes), type, p.num_elements()},
                  furl::bytes{at(blob, i * std::int64_t(p.size_bytes())), p.size_bytes()},
                  first_key + i);
    });
  }

  template <class Work>
  static ffi::Error for_each_code_blob(const ffi::AnyBuffer& codes, const blob_buffer& blob,
                                       std::int64_t bits, Work work) {
    if (codes.element_type() != ffi::U8 && codes.element_type() != ffi::PRED)
      return refuse("dtype of codes must be uint8 or bool");
    return for_each_blob(codes, blob, code_plan, bits, [&](const furl::plan& p, std::int64_t i) {
      return work(p, furl::bytes{at(codes, i * p.num_elements()), furl::u64(p.num_elements())},
                  furl::bytes{at(blob, i * std::int64_t(p.size_bytes())), p.size_bytes()});
    });
  }
};

/// How XLA passes the arguments of each call.
template <class Engine>
auto compress_binding() {
  return ffi::Ffi::Bind()
      .Ctx<typename Engine::context_tag>()
      .template Arg<ffi::AnyBuffer>()
      .template Arg<key_buffer>()
      .template Ret<blob_buffer>()
      .template Attr<std::int64_t>("bits");
}
template <class Engine>
auto decompress_binding() {
  return ffi::Ffi::Bind()
      .Ctx<typename Engine::context_tag>()
      .template Arg<blob_buffer>()
      .template Arg<key_buffer>()
      .template Arg<ffi::AnyBuffer>()
      .template Ret<ffi::AnyBuffer>()
      .template Attr<std::int64_t>("bits");
}
template <class Engine>
auto pack_binding() {
  return ffi::Ffi::Bind()
      .Ctx<typename Engine::context_tag>()
      .template Arg<ffi::AnyBuffer>()
      .template Ret<blob_buffer>()
      .template Attr<std::int64_t>("bits");
}
template <class Engine>
auto unpack_binding() {
  return ffi::Ffi::Bind()
      .Ctx<typename Engine::context_tag>()
      .template Arg<blob_buffer>()
      .template Arg<ffi::AnyBuffer>()
      .template Ret<ffi::AnyBuffer>()
      .template Attr<std::int64_t>("bits");
}

}  // namespace furl_jax
