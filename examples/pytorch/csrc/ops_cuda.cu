// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// The operators for device memory: on the current stream, which torch's allocator knows, so that
// blobs may be freed as soon as the last operator that reads them is queued.

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/library.h>

#include "furl/furl.cuh"
#include "ops.hpp"

namespace furl_torch {
namespace {

class device_engine {
 public:
  explicit device_engine(const Tensor& x)
      : guard_(x.device()), stream_(at::cuda::getCurrentCUDAStream()) {}

  furl::status compress(const furl::plan& p, const Tensor& x, const Tensor& blob,
                        furl::random_key key, const furl::statistics& statistics = {}) const {
    if (p.needs_key()) {
      const Tensor words = blob.narrow(0, std::int64_t(p.size_bytes()), sizeof key).view(at::kLong);
      words.select(0, 0).fill_(std::int64_t(key.seed));
      words.select(0, 1).fill_(std::int64_t(key.offset));
    }
    furl::options o;
    o.statistics = statistics;
    return furl::compress(p, values_of(x), bytes_of(blob), key, stream_, o);
  }
  furl::status decompress(const furl::plan& p, const Tensor& blob, const Tensor& y,
                          const furl::statistics& statistics = {}) const {
    furl::options o = with_key(p, blob);
    o.statistics = statistics;
    return furl::decompress(p, bytes_of(blob), values_of(y), {}, stream_, o);
  }
  furl::status decompress_add(const furl::plan& p, const Tensor& blob, const Tensor& y) const {
    return furl::decompress_add(p, bytes_of(blob), values_of(y), {}, stream_, with_key(p, blob));
  }
  furl::status pack(const furl::plan& p, const Tensor& codes, const Tensor& blob) const {
    return furl::pack(p, bytes_of(codes), bytes_of(blob), stream_);
  }
  furl::status unpack(const furl::plan& p, const Tensor& blob, const Tensor& codes) const {
    return furl::unpack(p, bytes_of(blob), bytes_of(codes), stream_);
  }
  furl::status pack(const furl::plan& p, const Tensor& x, const furl::codebook& book,
                    const Tensor& blob) const {
    return furl::pack(p, values_of(x), book, bytes_of(blob), {}, stream_);
  }
  furl::status unpack(const furl::plan& p, const Tensor& blob, const furl::codebook& book,
                      const Tensor& y) const {
    return furl::unpack(p, bytes_of(blob), book, values_of(y), stream_);
  }
  furl::status unpack_multiply(const furl::plan& p, const Tensor& blob, const furl::codebook& book,
                               const Tensor& g, const Tensor& out) const {
    return furl::unpack_multiply(p, bytes_of(blob), book, values_of(g), values_of(out), stream_);
  }
  furl::status relu(const furl::plan& p, const Tensor& x, const Tensor& y,
                    const Tensor& blob) const {
    return furl::relu(p, values_of(x), values_of(y), bytes_of(blob), stream_);
  }
  furl::status dropout(const Tensor& x, double p, const Tensor& y, furl::random_key key) const {
    return furl::dropout(values_of(x), p, values_of(y), key, stream_);
  }
  furl::status max_pool(const furl::max_pool_plan& p, const Tensor& x, const Tensor& y,
                        const Tensor& blob) const {
    return furl::max_pool(p, values_of(x), values_of(y), bytes_of(blob), stream_);
  }
  furl::status max_pool_backward(const furl::max_pool_plan& p, const Tensor& blob, const Tensor& g,
                                 const Tensor& out) const {
    return furl::max_pool_backward(p, bytes_of(blob), values_of(g), values_of(out), stream_);
  }

 private:
  static furl::options with_key(const furl::plan& p, const Tensor& blob) {
    furl::options o;
    if (p.needs_key()) o.device_key = static_cast<const furl::random_key*>(key_place(p, blob));
    return o;
  }

  c10::cuda::CUDAGuard guard_;
  cudaStream_t stream_;
};

}  // namespace
}  // namespace furl_torch

TORCH_LIBRARY_IMPL(furl, CUDA, m) {
  furl_torch::register_ops<furl_torch::device_engine>(m);
}
