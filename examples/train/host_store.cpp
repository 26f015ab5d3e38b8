// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

#include <utility>

#include "fold_store.hpp"
#include "furl/compress.hpp"
#include "furl/extra/allocate_bits.hpp"
#include "furl/extra/codebook.hpp"

namespace trainer {
namespace {

class host_folded final : public folded {
 public:
  /// tile_bits : for a mixed plan; book : for one packed by it.
  host_folded(furl::host::stash kept, thread_pool& pool, codes tile_bits,
              const furl::codebook* book)
      : kept_(std::move(kept)), pool_(pool), tile_bits_(std::move(tile_bits)), book_(book) {}

  u64 size_bytes() const override { return kept_.plan().size_bytes() + u64(tile_bits_.size()); }
  void restore(const buffer<float>& values) const override {
    if (book_ != nullptr) {
      check(furl::host::unpack(kept_.plan(), kept_.blob(), *book_, values, &pool_));
    } else {
      check(kept_.restore(values, options()));
    }
  }
  void restore_add(const buffer<float>& values) const override {
    check(kept_.restore_add(values, options()));
  }
  void unpack(const codes& c) const override { check(kept_.unpack(c, &pool_)); }
  void multiply(const buffer<float>& values) const override {
    check(furl::host::unpack_multiply(kept_.plan(), kept_.blob(), *book_, values, values, &pool_));
  }
  std::vector<double> squared_ranges() const override {
    std::vector<double> squared(static_cast<std::size_t>(kept_.plan().num_tiles()));
    check(furl::host::squared_ranges(kept_.plan(), kept_.blob(), squared, options()));
    return squared;
  }

 private:
  furl::host::options options() const { return {&pool_, tile_bits_}; }

  furl::host::stash kept_;
  thread_pool& pool_;
  codes tile_bits_;
  const furl::codebook* const book_;
};

class host_store final : public fold_store {
 public:
  explicit host_store(thread_pool& pool) : pool_(pool) {}

  std::unique_ptr<const folded> compress(const furl::plan& p, const buffer<float>& values,
                                         furl::random_key key,
                                         const buffer<float>& channel_ranges) override {
    furl::host::options o{&pool_};
    o.ranges = as_ranges(channel_ranges.data(), channel_ranges.size());
    return keep(furl::host::stash::compress(p, values, key, o));
  }
  std::unique_ptr<const folded> compress_mixed(const furl::plan& p, const buffer<float>& values,
                                               furl::random_key key) override {
    const buffer<double> squared(p.num_tiles());
    const buffer<float> sensitivity(p.num_tiles());
    const codes tile_bits(p.num_tiles());
    check(furl::host::squared_ranges(p, values, squared, &pool_));
    const float even = 1.0F;
    check(furl::host::expand_sensitivity(p, {&even, 1}, sensitivity));
    check(furl::host::allocate_bits(p.sum_of_bits(), sensitivity, squared, tile_bits));
    return keep(furl::host::stash::compress(p, values, key, {&pool_, tile_bits}), tile_bits);
  }
  std::unique_ptr<const folded> pack(const furl::plan& p, const codes& c) override {
    return keep(furl::host::stash::pack(p, c, &pool_));
  }
  std::unique_ptr<const folded> pack(const furl::plan& p, const buffer<float>& values,
                                     const furl::codebook& book) override {
    const auto write = [&](furl::host::bytes blob) {
      return furl::host::pack(p, values, book, blob, {}, &pool_);
    };
    return keep(furl::host::stash::make(p, write), {}, &book);
  }

 private:
  std::unique_ptr<const folded> keep(furl::result<furl::host::stash> made, codes tile_bits = {},
                                     const furl::codebook* book = nullptr) {
    return std::make_unique<host_folded>(value_of(std::move(made)), pool_, std::move(tile_bits),
                                         book);
  }

  thread_pool& pool_;
};

}  // namespace

std::unique_ptr<fold_store> make_host_store(thread_pool& pool) {
  return std::make_unique<host_store>(pool);
}

}  // namespace trainer
