// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

#include <utility>

#include "fold_store.hpp"
#include "furl/stash.hpp"

namespace trainer {
namespace {

class host_folded final : public folded {
 public:
  host_folded(furl::host::stash kept, thread_pool& pool) : kept_(std::move(kept)), pool_(pool) {}

  u64 size_bytes() const override { return kept_.plan().size_bytes(); }
  void restore(const buffer<float>& values) const override {
    check(kept_.restore(values, {&pool_}));
  }
  void unpack(const codes& c) const override { check(kept_.unpack(c, &pool_)); }

 private:
  furl::host::stash kept_;
  thread_pool& pool_;
};

class host_store final : public fold_store {
 public:
  explicit host_store(thread_pool& pool) : pool_(pool) {}

  std::unique_ptr<const folded> compress(const furl::plan& p, const buffer<float>& values,
                                         furl::random_key key) override {
    return std::make_unique<host_folded>(
        value_of(furl::host::stash::compress(p, values, key, {&pool_})), pool_);
  }
  std::unique_ptr<const folded> pack(const furl::plan& p, const codes& c) override {
    return std::make_unique<host_folded>(value_of(furl::host::stash::pack(p, c, &pool_)), pool_);
  }

 private:
  thread_pool& pool_;
};

}  // namespace

std::unique_ptr<fold_store> make_host_store(thread_pool& pool) {
  return std::make_unique<host_store>(pool);
}

}  // namespace trainer
