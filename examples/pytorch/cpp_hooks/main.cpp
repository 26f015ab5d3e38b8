// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Trains a small network on Fashion-MNIST three times from the same weights: without furl, with
// hooks that are registered with every node, and with hooks of an engine.

#include <torch/nn.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>

#include "fold_hooks.hpp"
#include "idx.hpp"

namespace {

namespace nn = torch::nn;
using at::Tensor;

constexpr std::int64_t batch_size = 64;

/// 28 x 28 images to 10 classes. `fold` is called after every block, if given.
struct network : nn::Module {
  nn::Conv2d first{nullptr}, second{nullptr}, third{nullptr};
  nn::BatchNorm2d first_norm{nullptr}, second_norm{nullptr}, third_norm{nullptr};
  nn::Linear last{nullptr};

  network() {
    const auto conv = [](std::int64_t in, std::int64_t out) {
      return nn::Conv2d(nn::Conv2dOptions(in, out, 3).padding(1).bias(false));
    };
    first = register_module("first", conv(1, 16));
    second = register_module("second", conv(16, 32));
    third = register_module("third", conv(32, 32));
    first_norm = register_module("first_norm", nn::BatchNorm2d(16));
    second_norm = register_module("second_norm", nn::BatchNorm2d(32));
    third_norm = register_module("third_norm", nn::BatchNorm2d(32));
    last = register_module("last", nn::Linear(32 * 7 * 7, 10));
  }

  Tensor forward(const Tensor& images, fold_hooks::folder* folder) {
    const auto block = [&](nn::Conv2d& conv, nn::BatchNorm2d& norm, const Tensor& x, bool pool) {
      Tensor y = torch::relu(norm(conv(x)));
      if (pool) y = torch::max_pool2d(y, 2);
      if (folder != nullptr && is_training()) folder->fold(y);
      return y;
    };
    Tensor x = block(first, first_norm, images, false);
    x = block(second, second_norm, x, true);
    x = block(third, third_norm, x, true);
    x = last(x.flatten(1));
    if (folder != nullptr && is_training()) folder->fold(x);
    return x;
  }
};

struct labelled {
  Tensor images;  // {count, 1, 28, 28}, f32, about 0 mean
  Tensor labels;  // {count}, i64
};

labelled tensors_of(const trainer::image_set& set) {
  const std::int64_t count = set.size();
  const Tensor pixels =
      torch::from_blob(const_cast<trainer::u8*>(set.pixels.data()),
                       {count, 1, trainer::image_width, trainer::image_width}, torch::kByte);
  const Tensor labels =
      torch::from_blob(const_cast<trainer::u8*>(set.labels.data()), {count}, torch::kByte);
  return {pixels.to(torch::kFloat).div_(128.0).sub_(0.57), labels.to(torch::kLong)};
}

double accuracy(network& net, const labelled& test) {
  const torch::NoGradGuard no_gradients;
  net.eval();
  std::int64_t right = 0;
  constexpr std::int64_t at_once = 1000;
  for (std::int64_t i = 0; i < test.labels.size(0); i += at_once)
    right += net.forward(test.images.narrow(0, i, at_once), nullptr)
                 .argmax(1)
                 .eq(test.labels.narrow(0, i, at_once))
                 .sum()
                 .item<std::int64_t>();
  return 100.0 * double(right) / double(test.labels.size(0));
}

struct outcome {
  double loss = 0;  // mean over the last quarter of the steps
  double accuracy = 0;
  double seconds_per_step = 0;
};

/// folder : hooks for every node, or null.
/// state  : of an engine's hooks, whose counts are to begin anew with every step, or null.
outcome train(const labelled& training, const labelled& test, int num_steps,
              fold_hooks::folder* folder, fold_hooks::shared_state* state) {
  torch::manual_seed(1);
  network net;
  torch::optim::SGD optimizer(net.parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  outcome result;
  const auto begin = std::chrono::steady_clock::now();
  for (int step = 0; step < num_steps; ++step) {
    if (folder != nullptr) folder->begin_step();
    if (state != nullptr) state->begin_step();
    const Tensor chosen = torch::randint(training.labels.size(0), {batch_size});
    const Tensor output = net.forward(training.images.index_select(0, chosen), folder);
    const Tensor loss = nn::functional::cross_entropy(output, training.labels.index({chosen}));
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    if (step >= num_steps - (num_steps + 3) / 4) result.loss += loss.item<double>();
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  result.loss /= (num_steps + 3) / 4;
  result.seconds_per_step = seconds.count() / num_steps;
  result.accuracy = accuracy(net, test);
  return result;
}

void print(const char* name, const outcome& r, const fold_hooks::shared_state* state) {
  std::printf("%-20s %8.4f %12.2f %% %17.4f", name, r.loss, r.accuracy, r.seconds_per_step);
  if (state != nullptr)
    std::printf(" %10.2f MB -> %6.2f MB", 1e-6 * double(state->original_bytes),
                1e-6 * double(state->kept_bytes));
  std::printf("\n");
}

/// Whether training with hooks went as well as without: by the loss, since few steps tell little by
/// the accuracy. Seeds differ by a tenth; folding log-softmax or losing signs costs far more.
bool as_good(const outcome& with, const outcome& without) {
  return with.loss < 1.25 * without.loss;
}

int run(int num_steps, const char* directory) {
  torch::set_num_threads(2);
  const trainer::dataset data = trainer::read_dataset(directory);
  const labelled training = tensors_of(data.training);
  const labelled test = tensors_of(data.test);

  std::printf("%-20s %8s %14s %17s   %s\n", "hooks", "loss", "test accuracy", "seconds per step",
              "kept per step");
  const outcome plain = train(training, test, num_steps, nullptr, nullptr);
  print("none", plain, nullptr);
  fold_hooks::folder folder({});
  const outcome by_node = train(training, test, num_steps, &folder, nullptr);
  print("of every node", by_node, &folder.state());
  const auto state = std::make_shared<fold_hooks::shared_state>();
  fold_hooks::fold_everything(state);
  const outcome by_engine = train(training, test, num_steps, nullptr, state.get());
  fold_hooks::fold_everything(nullptr);
  print("of an engine", by_engine, state.get());
  if (as_good(by_node, plain) && as_good(by_engine, plain)) return EXIT_SUCCESS;
  std::printf("the loss with hooks is more than a quarter above that without\n");
  return EXIT_FAILURE;
}

}  // namespace

int main(int argc, char** argv) {
  const int num_steps = argc > 1 ? std::atoi(argv[1]) : 200;
  if (num_steps < 1 || argc > 3) {
    std::printf("usage: fold_hooks_train [steps [folder of Fashion-MNIST]]\n");
    return EXIT_FAILURE;
  }
  try {
    return run(num_steps, argc > 2 ? argv[2] : "/usr/share/datasets/fashion-mnist");
  } catch (const std::exception& problem) {
    std::printf("%s\n", problem.what());
    return EXIT_FAILURE;
  }
}
