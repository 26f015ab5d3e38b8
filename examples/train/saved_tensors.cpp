// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#include "saved_tensors.hpp"

#include <utility>

namespace trainer {
namespace {

furl::codec flat(int bits) {
  furl::codec c;
  c.bits = bits;
  return c;
}

furl::codec with_means() {
  furl::codec c;
  c.window = {1, 1, 8, 8};
  return c;
}

u64 size_in_bytes(const tensor& x) {
  return u64(x.values.size()) * sizeof(float);
}

}  // namespace

std::vector<scheme> all_schemes() {
  return {{"none", "uncompressed", false, {}},
          {"flat8", "8 bits", true, flat(8)},
          {"flat4", "4 bits", true, flat(4)},
          {"flat2", "2 bits", true, flat(2)},
          {"lfc2", "2 bits + 8x8 means", true, with_means()}};
}

void saver::begin_step() {
  known_.clear();
  saved_bytes_ = plain_bytes_ = 0;
}

saved_tensor saver::save(const tensor& x) {
  if (auto kept = find(x)) return {x.shape, std::move(kept)};
  saved_tensor s{x.shape, nullptr};
  if (scheme_.folds) {
    std::unique_ptr<const folded> small = fold(x);
    count(small->size_bytes(), size_in_bytes(x));
    s.kept = std::make_shared<const saved_tensor::content>(std::move(small));
  } else {
    count(size_in_bytes(x), size_in_bytes(x));
    s.kept = std::make_shared<const saved_tensor::content>(x.values);
  }
  known_.push_back({x.values.owner(), s.kept});
  return s;
}

saved_codes saver::save(const codes& c, int bits) {
  if (!scheme_.folds) return save_exact(c);
  const furl::plan plan = value_of(furl::plan::make_codes(bits, {c.size()}));
  count(plan.size_bytes(), u64(c.size()));
  return {c.size(), std::make_shared<const saved_codes::content>(store_.pack(plan, c))};
}

saved_tensor saver::save_exact(const tensor& x) {
  count(size_in_bytes(x), size_in_bytes(x));
  return {x.shape, std::make_shared<const saved_tensor::content>(x.values)};
}

saved_codes saver::save_exact(const codes& c) {
  count(u64(c.size()), u64(c.size()));
  return {c.size(), std::make_shared<const saved_codes::content>(c)};
}

tensor saver::load(const saved_tensor& s) const {
  tensor x;
  x.shape = s.shape;
  if (const auto* const plain = std::get_if<buffer<float>>(s.kept.get())) {
    x.values = *plain;
  } else {
    x.values = buffer<float>(s.shape.size());
    std::get<std::unique_ptr<const folded>>(*s.kept)->restore(x.values);
  }
  return x;
}

codes saver::load(const saved_codes& s) const {
  if (const auto* const plain = std::get_if<codes>(s.kept.get())) return *plain;
  codes c(s.size);
  std::get<std::unique_ptr<const folded>>(*s.kept)->unpack(c);
  return c;
}

std::shared_ptr<const saved_tensor::content> saver::find(const tensor& x) const {
  const auto& owner = x.values.owner();
  for (const known_activation& a : known_) {
    const bool is_same = !a.original.owner_before(owner) && !owner.owner_before(a.original);
    if (auto kept = is_same ? a.kept.lock() : nullptr) return kept;
  }
  return nullptr;
}

std::unique_ptr<const folded> saver::fold(const tensor& x) {
  const trainer::shape& s = x.shape;
  const furl::plan plan = value_of(furl::plan::make(scheme_.codec, {s.n, s.c, s.h, s.w}));
  const furl::random_key key{seed_, num_compressions_++};
  return store_.compress(plan, x.values, key);
}

void saver::count(u64 saved, u64 plain) {
  saved_bytes_ += saved;
  plain_bytes_ += plain;
}

}  // namespace trainer
