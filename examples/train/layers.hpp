// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The operations of the network, forward and backward. Each says in its backward pass which tensors
// it needs, and how exactly: see the calls of save and save_exact.

#include <algorithm>

#include "tape.hpp"
#include "tensor.hpp"

namespace trainer {

/// Something to train.
struct parameter {
  tensor value;
  tensor gradient;  // backward passes add to it
  tensor velocity;  // of the optimiser

  parameter() = default;
  explicit parameter(const shape& s, float fill = 0.0F) : value(s), gradient(s), velocity(s) {
    std::fill(value.values.begin(), value.values.end(), fill);
    std::fill(gradient.values.begin(), gradient.values.end(), 0.0F);
    std::fill(velocity.values.begin(), velocity.values.end(), 0.0F);
  }
};

struct batch_norm {
  parameter scale;
  parameter offset;
  tensor running_mean;      // for inference
  tensor running_variance;  // likewise

  batch_norm() = default;
  explicit batch_norm(index channels)
      : scale({1, channels}, 1.0F),
        offset({1, channels}),
        running_mean(parameter({1, channels}).value),
        running_variance(parameter({1, channels}, 1.0F).value) {}
};

struct linear_layer {
  parameter weight;  // outputs x inputs
  parameter bias;

  linear_layer() = default;
  linear_layer(index inputs, index outputs) : weight({outputs, inputs}), bias({1, outputs}) {}
};

/// Convolution with a weight of output channels x input channels x odd width x the same width;
/// stride 1, zeros around the image.
variable convolve(tape& t, const variable& x, parameter& weight);

/// Batch normalisation: with the statistics of the batch when recording, else the running ones.
variable normalize(tape& t, const variable& x, batch_norm& layer);

/// max(x, 0).
variable rectify(tape& t, const variable& x);

/// x times the probability that a standard normal deviate is below x.
variable gelu(tape& t, const variable& x);

/// Maximum of each 2 x 2 window; an odd last row or column is left out.
variable max_pool(tape& t, const variable& x);

variable add(tape& t, const variable& a, const variable& b);

variable linear(tape& t, const variable& x, linear_layer& layer);

/// Mean over the batch of the cross-entropy between softmax(logits) and the labels: one value.
variable cross_entropy(tape& t, const variable& logits, const codes& labels);

/// x and a hundredth of its signs: of 1 where x is above 0, else 0. Layers that follow keep these,
/// a bit each, in place of their input (ASA, Woo and Jeon, ICLR 2023). For x of a ReLU.
variable add_signs(tape& t, const variable& x);

/// An activation that is added to the inputs of a run of layers.
struct residual {
  tensor value;        // if not recording
  index slot = -1;     // if recording
  saved_tensor saved;  // likewise: what is added is what was kept
};

residual begin_run(tape& t, const variable& a);

/// x + a. The layers of the run that get such sums keep a, once, and no input of their own (ARA,
/// likewise).
variable add(tape& t, const variable& x, const residual& a);

/// Saves what a matrix product's gradient needs of the input: the stand-in, if it has one.
/// Pre: t.is_recording().
saved_tensor save_factor(tape& t, const variable& x);

}  // namespace trainer
