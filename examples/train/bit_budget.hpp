// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Bits shared out among the activations of a step (ActNN, Chen et al., ICML 2021).

#include <vector>

#include "tensor.hpp"

namespace trainer {

/// Gives each activation its part of a number of bits per value, so that the variance of the
/// gradients, as the last step had it, is the smallest. Activations are numbered in the order they
/// are saved in, which is the same in every step. Within an activation, its tiles share the part.
class bit_budget {
 public:
  explicit bit_budget(int mean_bits) : mean_bits_(mean_bits) {}

  /// Shares out anew, by what has been called since the last time.
  void begin_step();

  /// What the bits of an activation's tiles add up to. Where nothing is known: the mean.
  u64 sum_of_bits(std::size_t activation, u64 num_tiles);

  /// That an error of variance v in each element of an activation adds sensitivity * v to the
  /// variance of a gradient. Of several reports of one activation the sum counts. One without a
  /// report is taken to be like that before it: so are, as in ActNN, the inputs of batch
  /// normalisation, whose errors reach weights by way of the gradient that it passes on.
  /// squared_ranges : of its tiles.
  void report(std::size_t activation, double sensitivity, std::vector<double> squared_ranges);

 private:
  struct share {
    u64 num_tiles = 0;
    u64 sum_of_bits = 0;  // 0: the mean
    double sensitivity = 0.0;
    std::vector<double> squared_ranges;  // empty: not reported
  };

  const int mean_bits_;
  std::vector<share> shares_;
};

}  // namespace trainer
