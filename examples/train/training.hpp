// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// One training run: a model of the same random weights on the same batches, whatever the scheme.

#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "idx.hpp"
#include "network.hpp"
#include "parallel.hpp"
#include "saved_tensors.hpp"

namespace trainer {

struct run_settings {
  int epochs = 1;
  int batch = 128;
  u64 seed = 1;
  int most_steps = 0;  // 0: no limit
};

struct run_result {
  scheme kept_as;
  double accuracy = 0.0;   // on the test set, 0..1
  float last_loss = 0.0F;  // in training
  u64 saved_bytes = 0;     // per step
  u64 plain_bytes = 0;     // per step, had nothing been compressed
  double seconds_per_step = 0.0;

  double ratio() const { return double(plain_bytes) / double(saved_bytes); }
};

/// Where a run is: steps done of all, and the last loss.
using progress_function = std::function<void(int done, int all, float loss)>;

/// Makes a model with random weights.
using model_factory = std::function<std::unique_ptr<model>(std::mt19937_64& random)>;

/// Trains and tests. The result, times aside, depends on data, model, scheme and settings only: not
/// on the number of threads, nor on where folded tensors are stored.
run_result train(const dataset& data, const model_factory& make, const scheme& kept_as,
                 const run_settings& settings, thread_pool& pool, fold_store& store,
                 const progress_function& progress);

struct gradient_error {
  scheme kept_as;
  double error = 0.0;   // squared, in parts of the square of the exact gradient of all weights
  u64 saved_bytes = 0;  // per step
};

/// What some schemes do to the gradient of a model that was trained for a while without
/// compression: means of eight keys. Steps of the training: settings.most_steps, or 60.
std::vector<gradient_error> measure_gradients(const dataset& data, const model_factory& make,
                                              const std::vector<scheme>& schemes,
                                              const run_settings& settings, thread_pool& pool,
                                              fold_store& store);

}  // namespace trainer
