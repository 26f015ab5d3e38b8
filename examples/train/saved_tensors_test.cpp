// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
// The hooks: what is kept, what is counted, what comes back.

#include "saved_tensors.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace trainer {
namespace {

scheme scheme_named(const std::string& name) {
  for (const scheme& s : all_schemes())
    if (s.name == name) return s;
  throw std::invalid_argument(name);
}

tensor waves(const shape& s) {
  tensor x(s);
  for (index i = 0; i < x.values.size(); ++i) x.values.data()[i] = std::sin(0.37F * float(i));
  return x;
}

template <class T>
bool equal(const buffer<T>& a, const buffer<T>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

class saver_test : public testing::Test {
 protected:
  const shape dims{2, 4, 16, 16};
  thread_pool pool{2};
  const std::unique_ptr<fold_store> store = make_host_store(pool);
  const u64 plain_size = u64(dims.size()) * sizeof(float);
};

TEST_F(saver_test, folds_and_restores_with_small_errors) {
  const tensor x = waves(dims);
  for (const scheme& s : all_schemes()) {
    saver hooks(s, *store, 1);
    const tensor y = hooks.load(hooks.save(x));
    const float span = s.codec.window.rank > 0 ? 4.1F : 2.1F;  // means move values apart
    const float step = s.folds ? span / float((1 << s.codec.bits) - 1) : 0.0F;
    for (index i = 0; i < x.values.size(); ++i)
      EXPECT_LE(std::abs(y.values.data()[i] - x.values.data()[i]), step) << s.name;
  }
}

TEST_F(saver_test, keeps_an_activation_once) {
  const tensor x = waves(dims);
  for (const scheme& s : all_schemes()) {
    saver hooks(s, *store, 1);
    const saved_tensor first = hooks.save(x);
    const u64 bytes = hooks.saved_bytes();
    const saved_tensor second = hooks.save(x);
    EXPECT_EQ(first.kept, second.kept) << s.name;
    EXPECT_EQ(hooks.saved_bytes(), bytes) << s.name;
    EXPECT_EQ(hooks.plain_bytes(), plain_size) << s.name;
  }
}

TEST_F(saver_test, does_not_take_a_new_activation_for_a_freed_one) {
  saver hooks(scheme_named("flat8"), *store, 1);
  std::vector<saved_tensor> kept;
  for (int round = 0; round < 20; ++round) {  // the allocator hands out the same address again
    tensor x(dims);
    std::fill(x.values.begin(), x.values.end(), float(round));
    kept.push_back(hooks.save(x));
  }
  for (int round = 0; round < 20; ++round)
    EXPECT_EQ(*hooks.load(kept[std::size_t(round)]).values.data(), float(round));
  EXPECT_EQ(hooks.plain_bytes(), 20 * plain_size);
}

TEST_F(saver_test, loads_any_number_of_times) {
  saver hooks(scheme_named("lfc2"), *store, 1);
  const saved_tensor s = hooks.save(waves(dims));
  EXPECT_TRUE(equal(hooks.load(s).values, hooks.load(s).values));
}

TEST_F(saver_test, draws_fresh_bits_for_every_tensor_and_step) {
  saver hooks(scheme_named("flat2"), *store, 1);
  const tensor first = hooks.load(hooks.save(waves(dims)));
  const tensor second = hooks.load(hooks.save(waves(dims)));
  hooks.begin_step();
  const tensor third = hooks.load(hooks.save(waves(dims)));
  EXPECT_FALSE(equal(first.values, second.values));
  EXPECT_FALSE(equal(first.values, third.values));
  saver again(scheme_named("flat2"), *store, 1);
  EXPECT_TRUE(equal(first.values, again.load(again.save(waves(dims))).values));
}

TEST_F(saver_test, keeps_codes_exact_in_their_bits) {
  codes places(4096);
  for (index i = 0; i < places.size(); ++i) places.data()[i] = u8(i * i % 7 % 4);
  for (const scheme& s : all_schemes()) {
    saver hooks(s, *store, 1);
    const saved_codes saved = hooks.save(places, 2);
    EXPECT_TRUE(equal(hooks.load(saved), places)) << s.name;
    EXPECT_EQ(hooks.saved_bytes(), s.folds ? 1024U : 4096U) << s.name;
  }
}

TEST_F(saver_test, lets_exact_tensors_through_and_counts_them) {
  const tensor x = waves(dims);
  saver hooks(scheme_named("flat2"), *store, 1);
  EXPECT_TRUE(equal(hooks.load(hooks.save_exact(x)).values, x.values));
  EXPECT_EQ(hooks.saved_bytes(), plain_size);
  hooks.begin_step();
  EXPECT_EQ(hooks.saved_bytes(), 0U);
}

}  // namespace
}  // namespace trainer
