// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where an operator runs. Each engine has the same calls over tensors whose memory torch owns;
// ops.hpp is written once for all of them.

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>

#include "furl/furl.hpp"

namespace furl_torch {

inline furl::dtype dtype_of(at::ScalarType type) {
  TORCH_CHECK_TYPE(type == at::kFloat || type == at::kHalf || type == at::kBFloat16,
                   "furl: dtype is ", type, ": must be float32, float16 or bfloat16");
  if (type == at::kHalf) return furl::dtype::f16;
  return type == at::kBFloat16 ? furl::dtype::bf16 : furl::dtype::f32;
}
inline furl::values values_of(const at::Tensor& x) {
  return {x.data_ptr(), dtype_of(x.scalar_type()), x.numel()};
}
inline furl::bytes bytes_of(const at::Tensor& x) {
  return {x.data_ptr(), furl::u64(x.numel()) * furl::u64(x.element_size())};
}

/// Where the key stands that rotated codes are decoded with: behind the blob.
inline void* key_place(const furl::plan& p, const at::Tensor& blob) {
  return static_cast<char*>(blob.data_ptr()) + p.size_bytes();
}

/// Torch's own threads for a tensor, or null where it is too small for them. Others would compete
/// with these, which wait for work without sleeping. Never destroyed: somebody may be using them.
inline furl::host::thread_pool* threads_for(const at::Tensor& x) {
  constexpr std::int64_t least_elements = 1 << 16;
  const int wanted = at::get_num_threads();
  if (x.numel() < least_elements || wanted < 2 || at::in_parallel_region()) return nullptr;
  static std::mutex mutex;
  static std::map<int, furl::host::thread_pool*> pools;
  const auto lend = [](void*, int num_shares, void (*call)(const void*, int),
                       const void* function) {
    at::parallel_for(0, num_shares, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t share = begin; share < end; ++share) call(function, int(share));
    });
  };
  const std::lock_guard<std::mutex> lock(mutex);
  furl::host::thread_pool*& pool = pools[wanted];
  if (pool == nullptr) pool = new furl::host::thread_pool(wanted, lend);
  return pool;
}

/// Host memory.
struct host_engine {
  explicit host_engine(const at::Tensor&) {}

  furl::status compress(const furl::plan& p, const at::Tensor& x, const at::Tensor& blob,
                        furl::random_key key, const furl::statistics& statistics = {}) const {
    if (p.needs_key()) std::memcpy(key_place(p, blob), &key, sizeof key);
    return furl::host::compress(p, values_of(x), bytes_of(blob), key,
                                {threads_for(x), {}, {}, statistics});
  }
  furl::status decompress(const furl::plan& p, const at::Tensor& blob, const at::Tensor& y,
                          const furl::statistics& statistics = {}) const {
    return furl::host::decompress(p, bytes_of(blob), values_of(y), key_in(p, blob),
                                  {threads_for(y), {}, {}, statistics});
  }
  furl::status decompress_add(const furl::plan& p, const at::Tensor& blob,
                              const at::Tensor& y) const {
    return furl::host::decompress_add(p, bytes_of(blob), values_of(y), key_in(p, blob),
                                      {threads_for(y), {}});
  }
  furl::status pack(const furl::plan& p, const at::Tensor& codes, const at::Tensor& blob) const {
    return furl::host::pack(p, bytes_of(codes), bytes_of(blob), threads_for(codes));
  }
  furl::status unpack(const furl::plan& p, const at::Tensor& blob, const at::Tensor& codes) const {
    return furl::host::unpack(p, bytes_of(blob), bytes_of(codes), threads_for(codes));
  }
  furl::status pack(const furl::plan& p, const at::Tensor& x, const furl::codebook& book,
                    const at::Tensor& blob) const {
    return furl::host::pack(p, values_of(x), book, bytes_of(blob), {}, threads_for(x));
  }
  furl::status unpack(const furl::plan& p, const at::Tensor& blob, const furl::codebook& book,
                      const at::Tensor& y) const {
    return furl::host::unpack(p, bytes_of(blob), book, values_of(y), threads_for(y));
  }
  furl::status unpack_multiply(const furl::plan& p, const at::Tensor& blob,
                               const furl::codebook& book, const at::Tensor& g,
                               const at::Tensor& out) const {
    return furl::host::unpack_multiply(p, bytes_of(blob), book, values_of(g), values_of(out),
                                       threads_for(g));
  }
  furl::status relu(const furl::plan& p, const at::Tensor& x, const at::Tensor& y,
                    const at::Tensor& blob) const {
    return furl::host::relu(p, values_of(x), values_of(y), bytes_of(blob), threads_for(x));
  }
  furl::status dropout(const at::Tensor& x, double p, const at::Tensor& y,
                       furl::random_key key) const {
    return furl::host::dropout(values_of(x), p, values_of(y), key, threads_for(x));
  }
  furl::status max_pool(const furl::max_pool_plan& p, const at::Tensor& x, const at::Tensor& y,
                        const at::Tensor& blob) const {
    return furl::host::max_pool(p, values_of(x), values_of(y), bytes_of(blob), threads_for(x));
  }
  furl::status max_pool_backward(const furl::max_pool_plan& p, const at::Tensor& blob,
                                 const at::Tensor& g, const at::Tensor& out) const {
    return furl::host::max_pool_backward(p, bytes_of(blob), values_of(g), values_of(out),
                                         threads_for(out));
  }

 private:
  static furl::random_key key_in(const furl::plan& p, const at::Tensor& blob) {
    furl::random_key key;
    if (p.needs_key()) std::memcpy(&key, key_place(p, blob), sizeof key);
    return key;
  }
};

/// No memory: results have their shapes and dtypes, and no contents.
struct meta_engine {
  explicit meta_engine(const at::Tensor&) {}

  template <class... Arguments>
  furl::status compress(const Arguments&...) const {
    return {};
  }
  template <class... Arguments>
  furl::status decompress(const Arguments&...) const {
    return {};
  }
  template <class... Arguments>
  furl::status decompress_add(const Arguments&...) const {
    return {};
  }
  template <class... Arguments>
  furl::status pack(const Arguments&...) const {
    return {};
  }
  template <class... Arguments>
  furl::status unpack(const Arguments&...) const {
    return {};
  }
  template <class... Arguments>
  furl::status unpack_multiply(const Arguments&...) const {
    return {};
  }
  template <class... Arguments>
  furl::status relu(const Arguments&...) const {
    return {};
  }
  template <class... Arguments>
  furl::status dropout(const Arguments&...) const {
    return {};
  }
  template <class... Arguments>
  furl::status max_pool(const Arguments&...) const {
    return {};
  }
  template <class... Arguments>
  furl::status max_pool_backward(const Arguments&...) const {
    return {};
  }
};

}  // namespace furl_torch
