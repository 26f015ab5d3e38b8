// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

#include <chrono>
#include <cstring>

#include "engine.hpp"
#include "furl/compress.hpp"
#include "timing.hpp"

namespace furl::cli {
namespace {

template <class Function>
double best_seconds(const Function& function) {
  using clock = std::chrono::steady_clock;
  return best_of_several([&] {
    const auto start = clock::now();
    function();
    return std::chrono::duration<double>(clock::now() - start).count();
  });
}

class host_engine final : public engine {
 public:
  explicit host_engine(int num_threads) : pool_(num_threads) {}

  status compress(const plan& p, const_values x, bytes blob, random_key key,
                  const_bytes widths) override {
    return host::compress(p, x, blob, key, {&pool_, widths});
  }
  status decompress(const plan& p, const_bytes blob, values y, random_key key,
                    const_bytes widths) override {
    return host::decompress(p, blob, y, key, {&pool_, widths});
  }
  status decompress_add(const plan& p, const_bytes blob, values y, random_key key,
                        const_bytes widths) override {
    return host::decompress_add(p, blob, y, key, {&pool_, widths});
  }
  status pack(const plan& p, const_bytes codes, bytes blob) override {
    return host::pack(p, codes, blob, &pool_);
  }
  status unpack(const plan& p, const_bytes blob, bytes codes) override {
    return host::unpack(p, blob, codes, &pool_);
  }

  result<timings> measure(const plan& p, const_values x, bytes blob, values y,
                          random_key key) override {
    timings best;
    status last;
    best.compress = best_seconds([&] { last = compress(p, x, blob, key, {}); });
    if (!last) return last;
    best.decompress = best_seconds([&] {
      last = decompress(p, {blob.data, blob.size_bytes}, y, key, {});
    });
    if (!last) return last;
    best.copy = best_seconds([&] { copy(x.data, y.data, x.size_bytes()); });
    return best;
  }

 private:
  /// With as many threads as the rest has, to be compared with it.
  void copy(const void* from, void* to, u64 size) {
    const auto threads = static_cast<u64>(pool_.num_threads());
    pool_.run([&](int share) {
      const auto s = static_cast<u64>(share);
      const u64 begin = size / threads * s + size % threads * s / threads;
      const u64 end = size / threads * (s + 1) + size % threads * (s + 1) / threads;
      if (begin != end)
        std::memcpy(static_cast<u8*>(to) + begin, static_cast<const u8*>(from) + begin,
                    static_cast<std::size_t>(end - begin));
    });
  }

  host::thread_pool pool_;
};

}  // namespace

std::unique_ptr<engine> make_host_engine(int num_threads) {
  return std::make_unique<host_engine>(num_threads);
}

}  // namespace furl::cli
