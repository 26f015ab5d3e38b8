// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// The calls for host memory, and the sizes of blobs, which Python needs before there is any data.

#include "handlers.hpp"

#include <atomic>
#include <cstdio>
#include <cstring>
#include <memory>

namespace furl_jax {
namespace {

/// Shares of one call. A thread that comes late finds none left and leaves; so the caller, which
/// works too, only waits for shares that somebody has begun.
class shares {
 public:
  shares(int count, void (*call)(const void*, int), const void* function)
      : count_(count), call_(call), function_(function) {}

  void work() {
    for (int share; (share = next_.fetch_add(1)) < count_;) {
      call_(function_, share);
      if (done_.fetch_add(1) + 1 == count_) done_.notify_all();
    }
  }
  void wait() const {
    for (int done; (done = done_.load()) < count_;) done_.wait(done);
  }

 private:
  int count_;
  void (*call_)(const void*, int);
  const void* function_;
  std::atomic<int> next_{0};
  std::atomic<int> done_{0};
};

void lend_threads(void* pool, int num_shares, void (*call)(const void*, int),
                  const void* function) {
  const auto work = std::make_shared<shares>(num_shares, call, function);
  for (int helper = 1; helper < num_shares; ++helper)
    static_cast<ffi::ThreadPool*>(pool)->Schedule([work] { work->work(); });
  work->work();
  work->wait();
}

class host_engine {
 public:
  using context_tag = ffi::ThreadPool;
  using context = ffi::ThreadPool;

  /// With XLA's own threads, where there are elements enough.
  host_engine(context& threads, const furl::plan& p) {
    constexpr std::int64_t least_elements = 1 << 16;
    const int num_threads = int(threads.num_threads());
    if (p.num_elements() >= least_elements && num_threads > 1)
      pool_ = std::make_unique<furl::host::thread_pool>(num_threads, lend_threads, &threads);
  }

  furl::status compress(const furl::plan& p, furl::values x, furl::bytes blob,
                        const furl::random_key* key) const {
    return furl::host::compress(p, x, blob, read(key), {pool_.get()});
  }
  furl::status decompress(const furl::plan& p, furl::bytes blob, furl::values y,
                          const furl::random_key* key) const {
    return furl::host::decompress(p, blob, y, read(key), {pool_.get()});
  }
  furl::status pack(const furl::plan& p, furl::bytes codes, furl::bytes blob) const {
    return furl::host::pack(p, codes, blob, pool_.get());
  }
  furl::status unpack(const furl::plan& p, furl::bytes blob, furl::bytes codes) const {
    return furl::host::unpack(p, blob, codes, pool_.get());
  }

 private:
  static furl::random_key read(const furl::random_key* words) {
    furl::random_key key;
    std::memcpy(&key, words, sizeof key);  // aligned to 4 bytes
    return key;
  }

  std::unique_ptr<furl::host::thread_pool> pool_;
};

using host = handlers<host_engine>;

}  // namespace
}  // namespace furl_jax

XLA_FFI_DEFINE_HANDLER_SYMBOL(furl_jax_compress_cpu, furl_jax::host::compress,
                              furl_jax::compress_binding<furl_jax::host_engine>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(furl_jax_decompress_cpu, furl_jax::host::decompress,
                              furl_jax::decompress_binding<furl_jax::host_engine>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(furl_jax_pack_cpu, furl_jax::host::pack,
                              furl_jax::pack_binding<furl_jax::host_engine>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(furl_jax_unpack_cpu, furl_jax::host::unpack,
                              furl_jax::unpack_binding<furl_jax::host_engine>());

/// Bytes of the blob of so many elements; of codes that are packed as they are, or of values. Below
/// 0: refused, and why is in `message`, of `capacity` bytes.
extern "C" std::int64_t furl_jax_blob_bytes(std::int64_t num_elements, std::int64_t bits,
                                            int are_codes, char* message, std::int64_t capacity) {
  const auto plan = are_codes != 0 ? furl_jax::code_plan(num_elements, bits)
                                   : furl_jax::value_plan(num_elements, bits);
  if (plan) return std::int64_t(plan->size_bytes());
  std::snprintf(message, std::size_t(capacity), "%s", furl::to_string(plan.status()).c_str());
  return -1;
}
