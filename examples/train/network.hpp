// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The network that is trained, and its optimiser.

#include <random>
#include <vector>

#include "layers.hpp"
#include "tape.hpp"

namespace trainer {

/// Something that training can improve.
class model {
 public:
  model() = default;
  virtual ~model() = default;
  model(const model&) = delete;
  model& operator=(const model&) = delete;

  /// Images in, one logit per class out.
  virtual variable logits(tape& t, const tensor& images) = 0;
  virtual std::vector<parameter*> parameters() = 0;
};

/// Values that keep the variance through a rectified layer (He et al. 2015).
void randomize(parameter& weight, std::mt19937_64& random);

enum class activation { relu, gelu };

/// Two convolutions, the second beside a shortcut that reads the same activation, and a third; each
/// with batch normalisation and activation; max pooling twice; a linear layer.
class network final : public model {
 public:
  /// Random initial weights.
  /// adds_signs : to the inputs of convolutions and of the linear layer, but not to images.
  network(trainer::activation function, bool adds_signs, std::mt19937_64& random);

  variable logits(tape& t, const tensor& images) override;
  std::vector<parameter*> parameters() override;

 private:
  variable activate(tape& t, const variable& x) const;
  variable factor(tape& t, const variable& x) const;

  const trainer::activation activation_;
  const bool adds_signs_;
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
