// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

#include "support/backend.hpp"

namespace furl::test {
namespace {

class host_backend final : public backend {
 public:
  explicit host_backend(int num_threads) : pool_(num_threads) {}
  const char* name() const override { return pool_.num_threads() == 1 ? "host" : "host_threads"; }
  status compress(const plan& p, const_values x, bytes blob, random_key key, const_bytes widths,
                  const given_ranges& ranges, const statistics& given) override {
    return host::compress(p, x, blob, key, {&pool_, widths, ranges, given});
  }
  status decompress(const plan& p, const_bytes blob, values y, const_bytes widths,
                    const maybe_key& key, const statistics& given) override {
    const host::options o{&pool_, widths, {}, given};
    return key ? host::decompress(p, blob, y, *key, o) : host::decompress(p, blob, y, o);
  }
  status decompress_add(const plan& p, const_bytes blob, values y, const_bytes widths,
                        const maybe_key& key, const statistics& given) override {
    const host::options o{&pool_, widths, {}, given};
    return key ? host::decompress_add(p, blob, y, *key, o) : host::decompress_add(p, blob, y, o);
  }
  batch_status compress_batch(span<const compress_entry> batch, random_key key) override {
    return host::compress_batch(batch, key, &pool_);
  }
  batch_status decompress_batch(span<const decompress_entry> batch, random_key key) override {
    return host::decompress_batch(batch, key, &pool_);
  }
  status pack(const plan& p, const_bytes codes, bytes blob) override {
    return host::pack(p, codes, blob, &pool_);
  }
  status unpack(const plan& p, const_bytes blob, bytes codes) override {
    return host::unpack(p, blob, codes, &pool_);
  }
  status squared_ranges(const plan& p, const_values x, span<double> squared) override {
    return host::squared_ranges(p, x, squared, &pool_);
  }
  status squared_ranges(const plan& p, const_bytes blob, span<double> squared,
                        const_bytes widths) override {
    return host::squared_ranges(p, blob, squared, {&pool_, widths});
  }
  status expand_sensitivity(const plan& p, span<const float> of_parts,
                            span<float> of_tiles) override {
    return host::expand_sensitivity(p, of_parts, of_tiles);
  }
  status allocate_bits(u64 sum_of_bits, span<const float> sensitivity,
                       span<const double> squared_range, bytes tile_bits) override {
    return host::allocate_bits(sum_of_bits, sensitivity, squared_range, tile_bits);
  }
  status pack(const plan& p, const_values x, const codebook& book, bytes blob,
              random_key key) override {
    return host::pack(p, x, book, blob, key, &pool_);
  }
  status pack(const plan& p, const_values x, const codebook& book, span<const float> scales,
              bytes blob, random_key key) override {
    return host::pack(p, x, book, scales, blob, key, &pool_);
  }
  status unpack(const plan& p, const_bytes blob, const codebook& book, values y) override {
    return host::unpack(p, blob, book, y, &pool_);
  }
  status unpack_multiply(const plan& p, const_bytes blob, const codebook& book, const_values g,
                         values out) override {
    return host::unpack_multiply(p, blob, book, g, out, &pool_);
  }
  status relu(const plan& p, const_values x, values y, bytes blob) override {
    return host::relu(p, x, y, blob, &pool_);
  }
  status relu(const plan& p, const_values x, values y, bytes blob, random_key key) override {
    return host::relu(p, x, y, blob, key, &pool_);
  }
  status dropout(const_values x, double p, values y, random_key key) override {
    return host::dropout(x, p, y, key, &pool_);
  }
  status max_pool(const max_pool_plan& p, const_values x, values y, bytes blob) override {
    return host::max_pool(p, x, y, blob, &pool_);
  }
  status max_pool_backward(const max_pool_plan& p, const_bytes blob, const_values g,
                           values out) override {
    return host::max_pool_backward(p, blob, g, out, &pool_);
  }
  status dropout(const plan& codes, const_values x, double p, values y, bytes blob,
                 random_key key) override {
    return host::dropout(codes, x, p, y, blob, key, &pool_);
  }
  status measure(const plan& p, const_values x, const_bytes blob, span<quality> groups,
                 quality* total, const_bytes widths) override {
    return host::measure(p, x, blob, groups, total, {&pool_, widths});
  }

 private:
  host::thread_pool pool_;
};

}  // namespace

std::unique_ptr<backend> make_host_backend(int num_threads) {
  return std::make_unique<host_backend>(num_threads);
}

}  // namespace furl::test
