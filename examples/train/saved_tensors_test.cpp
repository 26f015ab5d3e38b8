// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
// The hooks: what is kept, what is counted, what comes back.

#include "saved_tensors.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace trainer {
namespace {

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
    if (s.codec.coding == furl::coding::rotated) continue;  // no bound of an element's error
    saver hooks(s, *store, 1);
    const tensor y = hooks.load(hooks.save(x));
    const float span = s.codec.window.rank > 0 ? 4.1F : 2.1F;  // means move values apart
    const int least_bits = s.method == method::mixed_bits ? 1 : s.codec.bits;
    const float step = s.folds() ? span / float((1 << least_bits) - 1) : 0.0F;
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
    EXPECT_EQ(hooks.saved_bytes(), s.folds() ? 1024U : 4096U) << s.name;
  }
}

TEST_F(saver_test, rotated_codes_have_few_bits_and_the_error_of_a_normal_law) {
  const tensor x = waves(dims);
  const double most[] = {0.65, 0.16};  // of the squares, on average .57 and .134
  for (const int bits : {1, 2}) {
    saver hooks(scheme_named("rotated" + std::to_string(bits)), *store, 1);
    const tensor y = hooks.load(hooks.save(x));
    double squares = 0.0;
    double errors = 0.0;
    for (index i = 0; i < x.values.size(); ++i) {
      squares += std::pow(double(x.values.data()[i]), 2.0);
      errors += std::pow(double(y.values.data()[i]) - double(x.values.data()[i]), 2.0);
    }
    EXPECT_LT(errors, most[bits - 1] * squares) << bits;
    const index scales_and_means = dims.size() / 256 + dims.size() / 64;
    EXPECT_EQ(hooks.saved_bytes(), u64(dims.size() * bits / 8 + 2 * scales_and_means)) << bits;
  }
}

TEST_F(saver_test, rotated_codes_keep_zeros_by_a_mask_that_is_there) {
  const tensor x = waves(dims);
  const codes positive(dims.size());
  for (index i = 0; i < x.values.size(); ++i) {
    positive.data()[i] = u8(x.values.data()[i] > 0.0F ? 1 : 0);
    x.values.data()[i] = std::max(x.values.data()[i], 0.0F);
  }
  for (const scheme& s : all_schemes()) {
    saver hooks(s, *store, 1);
    const saved_tensor first = hooks.save(x);
    const u64 bytes = hooks.saved_bytes();
    const tensor y = hooks.load(hooks.save(x, {}, [&] { return positive; }));
    EXPECT_EQ(hooks.saved_bytes(), bytes) << s.name;  // kept once, with or without a mask
    if (s.codec.coding != furl::coding::rotated) continue;
    for (index i = 0; i < x.values.size(); ++i)
      EXPECT_TRUE(positive.data()[i] != 0 || y.values.data()[i] == 0.0F) << s.name;
    EXPECT_LT(*std::min_element(y.values.begin(), y.values.end()), 0.0F);  // right on average
  }
}

TEST_F(saver_test, takes_the_ranges_of_channels) {
  const tensor x = waves(dims);
  buffer<float> ranges(2 * dims.c);
  for (index c = 0; c < dims.c; ++c) {
    ranges.data()[2 * c] = -0.25F * float(c + 1);
    ranges.data()[2 * c + 1] = 0.5F;
  }
  saver hooks(scheme_named("blpa4"), *store, 1);
  const tensor y = hooks.load(hooks.save(x, ranges));
  for (index i = 0; i < dims.n; ++i)
    for (index c = 0; c < dims.c; ++c) {
      const float* const plane = y.plane(i, c);  // of one group
      const auto [least, most] = std::minmax_element(plane, plane + dims.plane());
      EXPECT_NEAR(*least, ranges.data()[2 * c], 0.01F);
      EXPECT_NEAR(*most, 0.5F, 0.01F);
    }
  saver others(scheme_named("flat8"), *store, 1);
  const tensor z = others.load(others.save(x, ranges));
  EXPECT_NEAR(*std::max_element(z.values.begin(), z.values.end()), 1.0F, 0.01F);
}

TEST_F(saver_test, keeps_levels_in_the_bits_of_the_codebook) {
  const tensor x = waves(dims);
  const furl::codebook signs = furl::positive_codebook(-2.0F, 3.0F);
  saver hooks(scheme_named("asa"), *store, 1);
  const saved_tensor saved = hooks.save_levels(x, signs);
  EXPECT_EQ(hooks.saved_bytes(), u64(dims.size()) / 8);
  const tensor y = hooks.load(saved);
  const tensor g(dims);
  std::fill(g.values.begin(), g.values.end(), 0.5F);
  hooks.multiply_by_levels(saved, g);
  for (index i = 0; i < x.values.size(); ++i) {
    const float level = x.values.data()[i] > 0.0F ? 3.0F : -2.0F;
    EXPECT_EQ(y.values.data()[i], level);
    EXPECT_EQ(g.values.data()[i], 0.5F * level);
  }
}

TEST_F(saver_test, adds_what_it_keeps) {
  const tensor x = waves(dims);
  for (const scheme& s : all_schemes()) {
    saver hooks(s, *store, 1);
    const saved_tensor saved = hooks.save(x);
    const tensor sum = waves(dims);
    hooks.load_add(saved, sum);
    const tensor y = hooks.load(saved);
    for (index i = 0; i < x.values.size(); ++i)
      EXPECT_NEAR(sum.values.data()[i], x.values.data()[i] + y.values.data()[i], 1e-6F) << s.name;
  }
}

TEST_F(saver_test, gives_bits_to_what_the_last_step_needed_them_for) {
  saver hooks(scheme_named("actnn-mixed"), *store, 1);
  const auto mean_error = [](const tensor& x, const tensor& y) {
    double sum = 0.0;
    for (index i = 0; i < x.values.size(); ++i)
      sum += std::abs(double(x.values.data()[i]) - double(y.values.data()[i]));
    return sum / double(x.values.size());
  };
  double errors[2][2];  // of step and tensor
  u64 bytes[2];
  for (int step = 0; step < 2; ++step) {
    hooks.begin_step();
    const tensor first = waves(dims);
    const tensor second = waves(dims);
    const saved_tensor a = hooks.save(first);
    const saved_tensor b = hooks.save(second);
    errors[step][0] = mean_error(first, hooks.load(a));
    errors[step][1] = mean_error(second, hooks.load(b));
    bytes[step] = hooks.saved_bytes();
    hooks.report(a, [] { return 1e-3; });
    hooks.report(b, [] { return 1.0; });
  }
  EXPECT_EQ(bytes[0], bytes[1]);  // the mean holds
  EXPECT_NEAR(errors[0][0] / errors[0][1], 1.0, 0.1);
  EXPECT_GT(errors[1][0], 1.5 * errors[0][0]);
  EXPECT_LT(errors[1][1], 0.6 * errors[0][1]);
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
