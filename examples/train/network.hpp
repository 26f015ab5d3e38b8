// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The network that is trained, and its optimiser.

#include <random>
#include <vector>

#include "layers.hpp"
#include "tape.hpp"

namespace trainer {

/// Two convolutions, the second beside a shortcut that reads the same activation, and a third; each
/// with batch normalisation; max pooling twice; a linear layer.
class network {
 public:
  /// Random initial weights.
  explicit network(std::mt19937_64& random);
  network(const network&) = delete;
  network& operator=(const network&) = delete;

  /// Images in, one logit per class out.
  variable logits(tape& t, const tensor& images);

  std::vector<parameter*> parameters();

 private:
  parameter first_;
  parameter second_;
  parameter shortcut_;
  parameter third_;
  batch_norm first_norm_;
  batch_norm second_norm_;
  batch_norm shortcut_norm_;
  batch_norm third_norm_;
  linear_layer classifier_;
};

/// Stochastic gradient descent with momentum and weight decay. Clears the gradients.
void update(const std::vector<parameter*>& parameters, float rate);

}  // namespace trainer
