// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

#include "fold_hooks.hpp"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <functional>
#include <string>

namespace fold_hooks {
namespace {

using at::Tensor;

Tensor values(at::IntArrayRef sizes) {
  return torch::randn(sizes).set_requires_grad(true);
}

/// The gradients of sum(weight * f(x)) without hooks and with f's nodes folded.
struct gradients {
  Tensor exact, folded;
};
gradients gradients_of(const std::function<Tensor(const Tensor&)>& f, Tensor x, folder& folds) {
  const Tensor y = f(x);
  const Tensor weight = torch::randn_like(y);
  (y * weight).sum().backward();
  const Tensor exact = x.grad().clone();
  x.mutable_grad().reset();
  const Tensor again = f(x);
  folds.fold(again);
  again.backward(weight);
  return {exact, x.grad()};
}

TEST(NodeHooks, ReluKeepsSignsExactly) {
  folder folds({});
  const gradients g =
      gradients_of([](const Tensor& x) { return torch::relu(x); }, values({3, 1001}), folds);
  EXPECT_TRUE(g.exact.equal(g.folded));
  EXPECT_EQ(folds.state().original_bytes, 4 * 3003);
  EXPECT_EQ(folds.state().kept_bytes, 128 * 3);  // three tiles of one bit
}

TEST(NodeHooks, MaxPoolingKeepsPlacesExactly) {
  for (const std::int64_t window : {2, 3, 5}) {
    folder folds({});
    const gradients g = gradients_of(
        [&](const Tensor& x) {
          return torch::max_pool2d(x, {window, 2});
        },
        values({2, 3, 31, 20}), folds);
    EXPECT_TRUE(g.exact.equal(g.folded)) << window;
    EXPECT_LT(folds.state().kept_bytes * 8, folds.state().original_bytes);
  }
}

TEST(NodeHooks, MaxPoolingOfOverlappingWindowsIsLeftAlone) {
  folder folds({});
  const gradients g = gradients_of(
      [](const Tensor& x) {
        return torch::max_pool2d(x, {3, 3}, {2, 2}, {1, 1});
      },
      values({2, 3, 31, 20}), folds);
  EXPECT_TRUE(g.exact.equal(g.folded));
}

TEST(NodeHooks, WeightGradientIsRightOnAverage) {
  settings how;
  how.window = 1;
  const Tensor x = torch::randn({32, 256});
  Tensor weight = torch::randn({16, 256}).set_requires_grad(true);
  const Tensor g = torch::randn({32, 16});
  torch::linear(x, weight, torch::zeros(16)).backward(g);
  const Tensor exact = weight.grad().clone();
  folder folds(how);
  Tensor sum = torch::zeros_like(exact);
  constexpr int num_draws = 64;
  double first_error = 0;
  for (int i = 0; i < num_draws; ++i) {
    folds.begin_step();
    weight.mutable_grad().reset();
    const Tensor y = torch::linear(x, weight, torch::zeros(16));
    folds.fold(y);
    y.backward(g);
    sum += weight.grad();
    if (i == 0) first_error = (weight.grad() - exact).norm().item<double>();
  }
  EXPECT_GT(first_error, 0);
  // The error of the mean of 64 independent draws is an eighth; noise that repeats would not
  // shrink.
  EXPECT_LT((sum / num_draws - exact).norm().item<double>(), first_error / 6);
}

TEST(NodeHooks, GraphCanBeUsedTwice) {
  folder folds({});
  Tensor weight = values({8, 2048});
  const Tensor x = torch::randn({4, 2048});
  const Tensor y = torch::relu(torch::linear(x, weight, torch::zeros(8)));
  folds.fold(y);
  folds.fold(y);  // has nothing left to do
  const Tensor sum = y.sum();
  sum.backward({}, /*retain_graph=*/true);
  const Tensor once = weight.grad().clone();
  sum.backward();
  EXPECT_TRUE(weight.grad().equal(2 * once));
}

TEST(NodeHooks, GlobalGeneratorIsUntouched) {
  folder folds({});
  const Tensor y = torch::linear(torch::randn({4, 2048}), values({8, 2048}), torch::zeros(8));
  torch::manual_seed(5);
  const Tensor before = torch::randn(10);
  torch::manual_seed(5);
  folds.fold(y);
  EXPECT_TRUE(torch::randn(10).equal(before));
}

/// While it lives, everything that is saved goes through hooks.
class engine_hooks {
 public:
  engine_hooks() { fold_everything(state); }
  ~engine_hooks() { fold_everything(nullptr); }
  std::shared_ptr<shared_state> state = std::make_shared<shared_state>();
};

TEST(EngineHooks, ResultsOfReluKeepTheirSign) {
  Tensor x = values({4, 1024});
  torch::relu(x).sum().backward();
  const Tensor exact = x.grad().clone();
  x.mutable_grad().reset();
  const engine_hooks hooks;
  torch::relu(x).sum().backward();
  EXPECT_TRUE(x.grad().equal(exact));
  EXPECT_EQ(hooks.state->num_folded, 1u);
}

TEST(EngineHooks, ParametersLogSoftmaxAndIntegersPass) {
  Tensor weight = values({1024, 64});
  const Tensor target = torch::randint(1024, {64}, torch::kLong);
  const engine_hooks hooks;
  const Tensor logits = torch::linear(torch::randn({64, 64}), weight, torch::zeros(1024));
  EXPECT_EQ(hooks.state->num_folded, 1u);  // its input, of 4096 elements
  const Tensor loss = torch::nll_loss(torch::log_softmax(logits, 1), target);
  EXPECT_EQ(hooks.state->num_folded, 1u);
}

TEST(EngineHooks, ChangeOfWhatPassedIsFound) {
  Tensor x = values({10});  // too small to be folded
  const engine_hooks hooks;
  Tensor y = x.exp();
  y.mul_(3);
  try {
    y.sum().backward();
    FAIL() << "the gradient is wrong, and nobody knows";
  } catch (const c10::Error& problem) {
    EXPECT_NE(std::string(problem.what()).find("modified by an inplace operation"),
              std::string::npos);
  }
}

TEST(EngineHooks, AreGoneAfterwards) {
  { const engine_hooks hooks; }
  Tensor x = values({4, 1024});
  x.exp().sum().backward();
  EXPECT_TRUE(x.grad().equal(x.exp()));
}

}  // namespace
}  // namespace fold_hooks
