// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#include "training.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

namespace trainer {
namespace {

constexpr float peak_rate = 0.1F;
constexpr float warm_up = 0.1F;  // of all steps
constexpr index test_batch = 200;

struct batch {
  tensor images;
  codes labels;
};

/// The samples with the given numbers, their pixels with mean 0 and variance 1 over the data set.
batch gather(const image_set& set, const index* numbers, index count) {
  constexpr float mean = 0.2860F * 255.0F;
  constexpr float inverse = 1.0F / (0.3530F * 255.0F);
  batch b{tensor({count, 1, image_width, image_width}), codes(count)};
  for (index i = 0; i < count; ++i) {
    const u8* const pixels = set.pixels.data() + numbers[i] * image_pixels;
    std::transform(pixels, pixels + image_pixels, b.images.sample(i),
                   [=](u8 pixel) { return (float(pixel) - mean) * inverse; });
    b.labels.data()[i] = set.labels[static_cast<std::size_t>(numbers[i])];
  }
  return b;
}

std::vector<index> in_order(index count) {
  std::vector<index> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), index(0));
  return numbers;
}

/// Not std::shuffle, whose result depends on the standard library.
void shuffle(std::vector<index>& numbers, std::mt19937_64& random) {
  for (std::size_t i = numbers.size(); i > 1; --i) std::swap(numbers[i - 1], numbers[random() % i]);
}

/// Up from 0 and down to 0, in straight lines: the first gradients are large.
float rate_at(int step, int all) {
  const float done = (float(step) + 0.5F) / float(all);
  return peak_rate * std::min(done / warm_up, (1.0F - done) / (1.0F - warm_up));
}

/// Adds the gradients of a batch to those of the parameters, and returns its loss.
float add_gradients(const batch& b, model& net, saver& hooks, thread_pool& pool) {
  tape t(pool, &hooks);
  const variable loss = cross_entropy(t, net.logits(t, b.images), b.labels);
  const tensor one({1});
  *one.values.data() = 1.0F;
  t.backward(loss, one);
  return *loss.value.values.data();
}

/// Takes the gradients of all parameters, which are 0 afterwards.
std::vector<float> take_gradients(model& net) {
  std::vector<float> all;
  for (parameter* const p : net.parameters()) {
    all.insert(all.end(), p->gradient.values.begin(), p->gradient.values.end());
    std::fill(p->gradient.values.begin(), p->gradient.values.end(), 0.0F);
  }
  return all;
}

double test(const image_set& set, model& net, thread_pool& pool) {
  const std::vector<index> numbers = in_order(set.size());
  index right = 0;
  for (index first = 0; first < set.size(); first += test_batch) {
    const batch b = gather(set, numbers.data() + first, std::min(test_batch, set.size() - first));
    tape t(pool, nullptr);
    const tensor logits = net.logits(t, b.images).value;
    for (index i = 0; i < logits.shape.n; ++i) {
      const float* const row = logits.sample(i);
      right += std::max_element(row, row + num_classes) - row == b.labels.data()[i] ? 1 : 0;
    }
  }
  return double(right) / double(set.size());
}

}  // namespace

run_result train(const dataset& data, const model_factory& make, const scheme& kept_as,
                 const run_settings& settings, thread_pool& pool, fold_store& store,
                 const progress_function& progress) {
  std::mt19937_64 random(settings.seed);
  const std::unique_ptr<model> net = make(random);
  saver hooks(kept_as, store, settings.seed);
  std::vector<index> numbers = in_order(data.training.size());

  // A last batch of fewer samples is left out, so that all steps save the same.
  const int steps_per_epoch = int(data.training.size() / settings.batch);
  int all = settings.epochs * steps_per_epoch;
  if (settings.most_steps > 0) all = std::min(all, settings.most_steps);

  run_result r;
  r.kept_as = kept_as;
  const auto start = std::chrono::steady_clock::now();
  for (int step = 0; step < all; ++step) {
    if (step % steps_per_epoch == 0) shuffle(numbers, random);
    const index first = index(step % steps_per_epoch) * settings.batch;
    const batch b = gather(data.training, numbers.data() + first, settings.batch);
    r.last_loss = add_gradients(b, *net, hooks, pool);
    update(net->parameters(), rate_at(step, all));
    progress(step + 1, all, r.last_loss);
  }
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;

  r.accuracy = test(data.test, *net, pool);
  r.saved_bytes = hooks.saved_bytes();
  r.plain_bytes = hooks.plain_bytes();
  r.seconds_per_step = time.count() / double(all);
  return r;
}

std::vector<gradient_error> measure_gradients(const dataset& data, const model_factory& make,
                                              const std::vector<scheme>& schemes,
                                              const run_settings& settings, thread_pool& pool,
                                              fold_store& store) {
  constexpr int usual_steps = 60;
  constexpr u64 num_keys = 8;
  const int steps = settings.most_steps > 0 ? settings.most_steps : usual_steps;
  std::mt19937_64 random(settings.seed);
  const std::unique_ptr<model> net = make(random);
  std::vector<index> numbers = in_order(data.training.size());
  shuffle(numbers, random);
  const auto batch_of = [&](int step) {
    const index num_batches = data.training.size() / settings.batch;
    return gather(data.training, numbers.data() + step % num_batches * settings.batch,
                  settings.batch);
  };
  saver exact({"none", "uncompressed"}, store, 0);
  for (int step = 0; step < steps; ++step) {
    add_gradients(batch_of(step), *net, exact, pool);
    update(net->parameters(), rate_at(step, steps));
  }
  const batch b = batch_of(steps);
  add_gradients(b, *net, exact, pool);
  const std::vector<float> expected = take_gradients(*net);
  const auto square = [](double v) { return v * v; };
  double energy = 0.0;
  for (const float g : expected) energy += square(g);

  std::vector<gradient_error> errors;
  for (const scheme& s : schemes) {
    gradient_error of{s};
    for (u64 key = 1; key <= num_keys; ++key) {
      saver hooks(s, store, settings.seed + key);
      add_gradients(b, *net, hooks, pool);
      const std::vector<float> found = take_gradients(*net);
      for (std::size_t i = 0; i < found.size(); ++i)
        of.error += square(double(found[i]) - double(expected[i])) / energy / double(num_keys);
      of.saved_bytes = hooks.saved_bytes();
    }
    errors.push_back(of);
  }
  return errors;
}

}  // namespace trainer
