// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// The calls for device memory, on XLA's stream. Keys stay where XLA has computed them.

#include <cuda_runtime.h>

#include "furl/furl.cuh"
#include "handlers.hpp"

namespace furl_jax {
namespace {

class device_engine {
 public:
  using context_tag = ffi::PlatformStream<cudaStream_t>;
  using context = cudaStream_t;

  device_engine(context stream, const furl::plan&) : stream_(stream) {}

  furl::status compress(const furl::plan& p, furl::values x, furl::bytes blob,
                        const furl::random_key* key) const {
    return furl::compress(p, x, blob, {}, stream_, with_key(key));
  }
  furl::status decompress(const furl::plan& p, furl::bytes blob, furl::values y,
                          const furl::random_key* key) const {
    return furl::decompress(p, blob, y, {}, stream_,
                            p.needs_key() ? with_key(key) : furl::options{});
  }
  furl::status pack(const furl::plan& p, furl::bytes codes, furl::bytes blob) const {
    return furl::pack(p, codes, blob, stream_);
  }
  furl::status unpack(const furl::plan& p, furl::bytes blob, furl::bytes codes) const {
    return furl::unpack(p, blob, codes, stream_);
  }

 private:
  static furl::options with_key(const furl::random_key* key) {
    furl::options o;
    o.device_key = key;
    return o;
  }

  cudaStream_t stream_;
};

using device = handlers<device_engine>;

}  // namespace
}  // namespace furl_jax

XLA_FFI_DEFINE_HANDLER_SYMBOL(furl_jax_compress_cuda, furl_jax::device::compress,
                              furl_jax::compress_binding<furl_jax::device_engine>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(furl_jax_decompress_cuda, furl_jax::device::decompress,
                              furl_jax::decompress_binding<furl_jax::device_engine>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(furl_jax_pack_cuda, furl_jax::device::pack,
                              furl_jax::pack_binding<furl_jax::device_engine>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(furl_jax_unpack_cuda, furl_jax::device::unpack,
                              furl_jax::unpack_binding<furl_jax::device_engine>());
