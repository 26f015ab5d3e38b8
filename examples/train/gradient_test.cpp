// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
// The gradient of every operation against finite differences, activations uncompressed; and that
// folding leaves the gradients alone where it must.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <set>
#include <utility>

#include "layers.hpp"
#include "saved_tensors.hpp"
#include "tape.hpp"

namespace trainer {
namespace {

using operation = std::function<variable(tape&, const variable&)>;

tensor random_tensor(const shape& s, unsigned seed) {
  std::mt19937 random(seed);
  tensor t(s);
  for (float& v : t.values) v = float(random() >> 8) * 0x1p-23F - 1.0F;
  return t;
}

void randomize(parameter& p, unsigned seed) {
  p.value = random_tensor(p.value.shape, seed);
}

void expect_same(const tensor& a, const tensor& b) {
  ASSERT_EQ(a.values.size(), b.values.size());
  for (index i = 0; i < a.values.size(); ++i)
    EXPECT_EQ(a.values.data()[i], b.values.data()[i]) << "element " << i;
}

/// One operation, and as loss the sum of its output times fixed random weights.
class gradient_test : public testing::Test {
 protected:
  double loss(const operation& op, const tensor& x) {
    saver hooks(plain, *store, 0);
    tape t(pool, &hooks);  // recording: batch norm works otherwise when it is not
    const tensor y = op(t, t.leaf(x)).value;
    const tensor weights = random_tensor(y.shape, 99);
    double sum = 0.0;
    for (index i = 0; i < y.values.size(); ++i)
      sum += double(y.values.data()[i]) * double(weights.values.data()[i]);
    return sum;
  }

  /// Of the loss by x; parameters get theirs.
  tensor gradient(const operation& op, const tensor& x, const scheme& kept_as, u64 seed = 0) {
    saver hooks(kept_as, *store, seed);
    tape t(pool, &hooks);
    const variable input = t.leaf(x);
    const variable y = op(t, input);
    t.backward(y, random_tensor(y.value.shape, 99));
    return t.gradient(input);
  }

  /// Moves each of the values and compares what the loss does with the gradient.
  void expect_slopes(const operation& op, const tensor& x, const tensor& moved,
                     const tensor& expected, float step) {
    for (index i = 0; i < moved.values.size(); ++i) {
      float& value = moved.values.data()[i];
      const float original = value;
      value = original + step;
      const double above = loss(op, x);
      value = original - step;
      const double below = loss(op, x);
      value = original;
      EXPECT_NEAR((above - below) / (2.0 * double(step)), double(expected.values.data()[i]), 2e-3)
          << "element " << i;
    }
  }

  void check(const operation& op, const tensor& x, const std::vector<parameter*>& parameters,
             float step) {
    const tensor dx = gradient(op, x, plain);
    expect_slopes(op, x, x, dx, step);
    for (const parameter* p : parameters) expect_slopes(op, x, p->value, p->gradient, step);
  }

  thread_pool pool{2};
  const std::unique_ptr<fold_store> store = make_host_store(pool);
  const scheme plain = scheme_named("none");
};

TEST_F(gradient_test, convolution) {
  for (const index kernel : {1, 3, 5}) {
    parameter weight({3, 2, kernel, kernel});
    randomize(weight, 1);
    const operation op = [&](tape& t, const variable& x) { return convolve(t, x, weight); };
    check(op, random_tensor({3, 2, 4, 5}, 2), {&weight}, 0.5F);  // linear: any step will do
  }
}

TEST_F(gradient_test, more_samples_than_chunks) {
  parameter weight({1, 1, 3, 3});
  randomize(weight, 1);
  const operation op = [&](tape& t, const variable& x) { return convolve(t, x, weight); };
  check(op, random_tensor({19, 1, 2, 3}, 2), {&weight}, 0.5F);
}

TEST_F(gradient_test, linear) {
  linear_layer layer(2 * 2 * 3, 4);
  randomize(layer.weight, 1);
  randomize(layer.bias, 2);
  const operation op = [&](tape& t, const variable& x) { return linear(t, x, layer); };
  check(op, random_tensor({5, 2, 2, 3}, 3), {&layer.weight, &layer.bias}, 0.5F);
}

TEST_F(gradient_test, batch_norm) {
  batch_norm layer(2);
  randomize(layer.scale, 1);
  randomize(layer.offset, 2);
  const operation op = [&](tape& t, const variable& x) { return normalize(t, x, layer); };
  check(op, random_tensor({3, 2, 2, 3}, 3), {&layer.scale, &layer.offset}, 0.01F);
}

TEST_F(gradient_test, rectify_and_add) {
  const operation op = [](tape& t, const variable& x) { return add(t, rectify(t, x), x); };
  tensor x = random_tensor({2, 2, 3, 3}, 1);
  for (float& v : x.values) v += v > 0.0F ? 0.1F : -0.1F;  // away from the kink
  check(op, x, {}, 0.05F);
}

TEST_F(gradient_test, gelu) {
  const operation op = [](tape& t, const variable& x) { return gelu(t, x); };
  tensor x = random_tensor({2, 2, 3, 3}, 1);
  for (float& v : x.values) v *= 3.0F;
  check(op, x, {}, 0.02F);
}

TEST_F(gradient_test, few_bit_gelu_multiplies_by_a_level) {
  const operation op = [](tape& t, const variable& x) { return gelu(t, x); };
  tensor x = random_tensor({2, 2, 16, 16}, 1);
  for (float& v : x.values) v *= 3.0F;
  const tensor exact = gradient(op, x, plain);
  const tensor folded = gradient(op, x, scheme_named("fewbit"));
  const tensor dy = random_tensor(x.shape, 99);
  std::set<float> levels;
  double squares = 0.0;
  for (index i = 0; i < x.values.size(); ++i) {
    const float g = dy.values.data()[i];
    if (std::abs(g) < 0.01F) continue;
    levels.insert(std::round(1e4F * folded.values.data()[i] / g));
    const double error = double(folded.values.data()[i] - exact.values.data()[i]) / double(g);
    squares += error * error;
  }
  EXPECT_EQ(levels.size(), 8U);
  EXPECT_LT(std::sqrt(squares / double(x.values.size())), 0.06);  // neighbours are 0.2 apart
}

TEST_F(gradient_test, signs_stand_in_for_inputs_in_the_gradient_of_weights_only) {
  parameter weight({2, 2, 3, 3});
  randomize(weight, 1);
  const operation with_signs = [&](tape& t, const variable& x) {
    return convolve(t, add_signs(t, x), weight);
  };
  const operation without = [&](tape& t, const variable& x) { return convolve(t, x, weight); };
  const tensor x = random_tensor({2, 2, 6, 6}, 2);
  tensor signs(x.shape);
  for (index i = 0; i < x.values.size(); ++i)
    signs.values.data()[i] = x.values.data()[i] > 0.0F ? 1.0F : 0.0F;

  const tensor dx = gradient(with_signs, x, scheme_named("asa"));
  const tensor of_signs = std::exchange(weight.gradient, parameter(weight.value.shape).value);
  expect_same(dx, gradient(without, signs, plain));  // a convolution's does not depend on x
  expect_same(of_signs, weight.gradient);
  const double changed = loss(with_signs, x) - loss(without, x);
  EXPECT_NEAR(changed, 0.01 * loss(without, signs), 1e-4);
}

TEST_F(gradient_test, a_run_keeps_what_it_adds) {
  linear_layer layer(12, 3);
  randomize(layer.weight, 1);
  const tensor a = random_tensor({4, 12}, 2);
  const tensor x = random_tensor({4, 12}, 3);
  for (const char* const name : {"none", "flat8"}) {
    saver hooks(scheme_named(name), *store, 1);
    tape t(pool, &hooks);
    const variable first = t.leaf(a);
    const variable second = t.leaf(x);
    const residual added = begin_run(t, first);
    const u64 bytes = hooks.saved_bytes();
    const variable sum = add(t, second, added);
    const variable y = linear(t, sum, layer);
    EXPECT_EQ(hooks.saved_bytes(), bytes) << name;  // nothing but a
    const tensor kept = hooks.load(added.saved);
    for (index i = 0; i < x.values.size(); ++i)  // the very values that are kept are added
      EXPECT_NEAR(sum.value.values.data()[i] - x.values.data()[i], kept.values.data()[i], 1e-6F);
    const tensor dy = random_tensor(y.value.shape, 99);
    t.backward(y, dy);
    expect_same(t.gradient(first), t.gradient(second));
    const tensor with_a = std::exchange(layer.weight.gradient, parameter({3, 12}).value);
    gradient([&](tape& u, const variable& v) { return linear(u, v, layer); }, kept, plain);
    expect_same(with_a, std::exchange(layer.weight.gradient, parameter({3, 12}).value));
  }
}

TEST_F(gradient_test, inference_adds_the_same) {
  const tensor x = random_tensor({2, 3}, 1);
  const tensor a = random_tensor({2, 3}, 2);
  saver hooks(plain, *store, 0);
  tape recording(pool, &hooks);
  tape inference(pool, nullptr);
  expect_same(add(recording, {x}, begin_run(recording, {a})).value,
              add(inference, {x}, begin_run(inference, {a})).value);
  saver signs(scheme_named("asa"), *store, 0);
  tape with_signs(pool, &signs);
  expect_same(add_signs(with_signs, {x}).value, add_signs(inference, {x}).value);
}

TEST_F(gradient_test, max_pool) {
  const operation op = [](tape& t, const variable& x) { return max_pool(t, x); };
  tensor x({2, 2, 4, 5});
  for (index i = 0; i < x.values.size(); ++i)
    x.values.data()[i] = 0.1F * float(i * 37 % 80);  // all apart
  check(op, x, {}, 0.02F);
}

TEST_F(gradient_test, cross_entropy) {
  codes labels(4);
  for (index i = 0; i < labels.size(); ++i) labels.data()[i] = u8(i * 3 % 5);
  const operation op = [&](tape& t, const variable& x) { return cross_entropy(t, x, labels); };
  check(op, random_tensor({4, 5}, 1), {}, 0.01F);
}

TEST_F(gradient_test, folding_does_not_touch_masks_places_and_probabilities) {
  codes labels(3);
  for (u8& label : labels) label = 7;
  const operation op = [&](tape& t, const variable& x) {
    return cross_entropy(t, max_pool(t, rectify(t, x)), labels);
  };
  const tensor x = random_tensor({3, 10, 2, 2}, 1);
  expect_same(gradient(op, x, plain), gradient(op, x, scheme_named("lfc2")));
}

TEST_F(gradient_test, folding_errors_average_out) {
  parameter weight({2, 2, 3, 3});
  randomize(weight, 1);
  const operation op = [&](tape& t, const variable& x) {
    return convolve(t, rectify(t, x), weight);
  };
  const tensor x = random_tensor({2, 2, 6, 6}, 2);
  const auto take_gradient = [&] {
    return std::exchange(weight.gradient, parameter(weight.value.shape).value);
  };
  gradient(op, x, plain);
  const tensor exact = take_gradient();
  constexpr int draws = 2000;
  for (const char* const name : {"flat2", "rotated2", "rotated1"}) {
    for (u64 seed = 0; seed < draws; ++seed) gradient(op, x, scheme_named(name), seed);
    const tensor sum = take_gradient();
    // An element's error is at most 1/3 in root mean square: 2 bits have steps of 1/3, and 1
    // rotated bit loses .57 of squares that are 1/6 on average. A gradient adds 72 of them.
    const double sigma = std::sqrt(72.0 / draws) / 3.0;
    for (index i = 0; i < exact.values.size(); ++i)
      EXPECT_NEAR(double(sum.values.data()[i]) / draws, double(exact.values.data()[i]), 4.0 * sigma)
          << name;
  }
}

TEST_F(gradient_test, a_layer_learns_nothing_from_zeros_of_a_relu) {
  parameter weight({2, 2, 3, 3});
  randomize(weight, 1);
  const operation op = [&](tape& t, const variable& x) {
    return convolve(t, max_pool(t, rectify(t, x)), weight);
  };
  const tensor x = random_tensor({2, 2, 9, 8}, 2);
  for (index i = 0; i < 2; ++i)
    for (index k = 0; k < 72; ++k) x.plane(i, 0)[k] = -0.5F;
  for (const char* const name : {"rotated2", "rotated1"}) {
    gradient(op, x, scheme_named(name));
    const tensor of_weight = std::exchange(weight.gradient, parameter(weight.value.shape).value);
    for (index output = 0; output < 2; ++output)
      for (index tap = 0; tap < 9; ++tap) {
        EXPECT_EQ(of_weight.plane(output, 0)[tap], 0.0F) << name;
        EXPECT_NE(of_weight.plane(output, 1)[tap], 0.0F) << name;
      }
  }
}

}  // namespace
}  // namespace trainer
