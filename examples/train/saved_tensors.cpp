// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#include "saved_tensors.hpp"

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <utility>

namespace trainer {
namespace {

furl::codec flat(int bits) {
  furl::codec c;
  c.bits = bits;
  return c;
}

furl::codec nearest(int bits) {
  furl::codec c = flat(bits);
  c.rounding = furl::rounding::nearest;
  return c;
}

furl::codec with_means(int bits) {
  furl::codec c = flat(bits);
  c.window = {1, 1, 8, 8};
  return c;
}

/// Means too: for a third of a bit they halve the squared error of the gradients.
furl::codec rotated(int bits) {
  furl::codec c = with_means(bits);
  c.coding = furl::coding::rotated;
  return c;
}

u64 size_in_bytes(const tensor& x) {
  return u64(x.values.size()) * sizeof(float);
}

void clear_where_masked(const buffer<float>& values, const codes& mask) {
  std::transform(values.begin(), values.end(), mask.begin(), values.begin(),
                 [](float v, u8 bit) { return bit != 0 ? v : 0.0F; });
}

/// Of what is not kept as it is.
template <class Saved>
const folded& folded_form(const Saved& s) {
  return *std::get<std::unique_ptr<const folded>>(*s.kept);
}

}  // namespace

std::vector<scheme> all_schemes() {
  return {{"none", "uncompressed"},
          {"flat8", "8 bits", method::fold, flat(8)},
          {"flat4", "4 bits", method::fold, flat(4)},
          {"flat2", "2 bits", method::fold, flat(2)},
          {"lfc2", "2 bits + 8x8 means", method::fold, with_means(2)},
          {"rotated2", "2 bits, rotated", method::fold, rotated(2)},
          {"rotated1", "1 bit, rotated", method::fold, rotated(1)},
          {"actnn-mixed", "2 bits, mixed", method::mixed_bits, flat(2)},
          {"blpa4", "4 bits, given ranges", method::given_ranges, nearest(4)},
          {"fewbit", "2 bits + few-bit GELU", method::few_bit, flat(2)},
          {"asa", "2 bits + signs", method::signs, flat(2)}};
}

std::vector<scheme> schemes_by_bits() {
  std::vector<scheme> all;
  for (int bits = 1; bits <= 4; ++bits) {
    furl::codec dithered = flat(bits);
    dithered.rounding = furl::rounding::dithered;
    const std::string title = std::to_string(bits) + (bits == 1 ? " bit" : " bits");
    all.push_back({"min-max", title, method::fold, flat(bits)});
    all.push_back({"dithered", title, method::fold, dithered});
    all.push_back({"means", title, method::fold, with_means(bits)});
    all.push_back({"rotated", title, method::fold, rotated(bits)});
  }
  return all;
}

scheme scheme_named(const std::string& name) {
  for (const scheme& s : all_schemes())
    if (s.name == name) return s;
  throw std::invalid_argument("no scheme is named " + name);
}

void saver::begin_step() {
  budget_.begin_step();
  known_.clear();
  saved_bytes_ = plain_bytes_ = 0;
}

saved_tensor saver::save(const tensor& x, const buffer<float>& channel_ranges,
                         const mask_loader& mask) {
  // A rotation spreads its error over zeros too, and so does dither. Other codecs have them among
  // their values.
  const bool needs_mask = scheme_.codec.coding == furl::coding::rotated ||
                          scheme_.codec.rounding == furl::rounding::dithered;
  const mask_loader used_mask = needs_mask ? mask : nullptr;
  if (auto kept = find(x)) return {x.shape, std::move(kept), used_mask};
  saved_tensor s = scheme_.folds() ? keep(x, fold(x, channel_ranges)) : save_exact(x);
  s.mask = used_mask;
  known_.push_back({x.values.owner(), s.kept});
  return s;
}

saved_tensor saver::save_levels(const tensor& x, const furl::codebook& book) {
  const furl::plan plan = value_of(furl::plan::make_codes(book.bits(), {x.values.size()}));
  return keep(x, store_.pack(plan, x.values, book));
}

saved_codes saver::save(const codes& c, int bits) {
  if (!scheme_.folds()) return save_exact(c);
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
    folded_form(s).restore(x.values);
  }
  if (s.mask != nullptr) clear_where_masked(x.values, s.mask());
  return x;
}

codes saver::load(const saved_codes& s) const {
  if (const auto* const plain = std::get_if<codes>(s.kept.get())) return *plain;
  codes c(s.size);
  folded_form(s).unpack(c);
  return c;
}

void saver::load_add(const saved_tensor& s, const tensor& sum) const {
  if (const auto* const plain = std::get_if<buffer<float>>(s.kept.get())) {
    std::transform(sum.values.begin(), sum.values.end(), plain->begin(), sum.values.begin(),
                   std::plus<>());
  } else {
    folded_form(s).restore_add(sum.values);
  }
}

void saver::multiply_by_levels(const saved_tensor& s, const tensor& gradient) const {
  folded_form(s).multiply(gradient.values);
}

void saver::add_report(const saved_tensor& s, double sensitivity) {
  for (std::size_t i = 0; i < known_.size(); ++i)
    if (known_[i].kept.lock() == s.kept)
      budget_.report(i, sensitivity, folded_form(s).squared_ranges());
}

std::shared_ptr<const saved_tensor::content> saver::find(const tensor& x) const {
  const auto& owner = x.values.owner();
  for (const known_activation& a : known_) {
    const bool is_same = !a.original.owner_before(owner) && !owner.owner_before(a.original);
    if (auto kept = is_same ? a.kept.lock() : nullptr) return kept;
  }
  return nullptr;
}

std::unique_ptr<const folded> saver::fold(const tensor& x, const buffer<float>& channel_ranges) {
  const furl::extents shape{x.shape.n, x.shape.c, x.shape.h, x.shape.w};
  const furl::random_key key{seed_, num_compressions_++};
  const furl::plan plan = value_of(furl::plan::make(scheme_.codec, shape));
  if (scheme_.method == method::mixed_bits) {
    const u64 sum = budget_.sum_of_bits(known_.size(), u64(plan.num_tiles()));
    return store_.compress_mixed(value_of(furl::plan::make_mixed(scheme_.codec, shape, sum)),
                                 x.values, key);
  }
  const bool is_given = scheme_.method == method::given_ranges;
  return store_.compress(plan, x.values, key, is_given ? channel_ranges : buffer<float>());
}

saved_tensor saver::keep(const tensor& x, std::unique_ptr<const folded> small) {
  count(small->size_bytes(), size_in_bytes(x));
  return {x.shape, std::make_shared<const saved_tensor::content>(std::move(small))};
}

void saver::count(u64 saved, u64 plain) {
  saved_bytes_ += saved;
  plain_bytes_ += plain;
}

}  // namespace trainer
