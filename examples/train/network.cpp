// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#include "network.hpp"

#include <cmath>

#include "idx.hpp"

namespace trainer {
namespace {

constexpr index first_channels = 16;
constexpr index second_channels = 32;
constexpr index third_channels = 64;
constexpr index last_pixels = (image_width / 4) * (image_width / 4);
constexpr float momentum = 0.9F;
constexpr float weight_decay = 5e-4F;

/// Uniform in [0, 1), of the same value with every standard library.
float uniform(std::mt19937_64& random) {
  return float(random() >> 40) * 0x1p-24F;
}

}  // namespace

void randomize(parameter& weight, std::mt19937_64& random) {
  const float bound = std::sqrt(6.0F / float(weight.value.shape.sample()));
  for (float& w : weight.value.values) w = bound * (2.0F * uniform(random) - 1.0F);
}

network::network(trainer::activation function, bool adds_signs, std::mt19937_64& random)
    : activation_(function),
      adds_signs_(adds_signs),
      first_({first_channels, 1, 3, 3}),
      second_({second_channels, first_channels, 3, 3}),
      shortcut_({second_channels, first_channels, 1, 1}),
      third_({third_channels, second_channels, 3, 3}),
      first_norm_(first_channels),
      second_norm_(second_channels),
      shortcut_norm_(second_channels),
      third_norm_(third_channels),
      classifier_(third_channels * last_pixels, num_classes) {
  for (parameter* weight : {&first_, &second_, &shortcut_, &third_, &classifier_.weight})
    randomize(*weight, random);
}

variable network::logits(tape& t, const tensor& images) {
  variable x{images};
  x = factor(t, max_pool(t, activate(t, normalize(t, convolve(t, x, first_), first_norm_))));
  const variable main = normalize(t, convolve(t, x, second_), second_norm_);
  const variable side = normalize(t, convolve(t, x, shortcut_), shortcut_norm_);
  x = factor(t, max_pool(t, activate(t, add(t, main, side))));
  x = factor(t, activate(t, normalize(t, convolve(t, x, third_), third_norm_)));
  return linear(t, x, classifier_);
}

variable network::activate(tape& t, const variable& x) const {
  return activation_ == activation::relu ? rectify(t, x) : gelu(t, x);
}

/// An activation that enters products with weights.
variable network::factor(tape& t, const variable& x) const {
  return adds_signs_ ? add_signs(t, x) : x;
}

std::vector<parameter*> network::parameters() {
  std::vector<parameter*> all{&first_, &second_, &shortcut_, &third_};
  for (batch_norm* norm : {&first_norm_, &second_norm_, &shortcut_norm_, &third_norm_}) {
    all.push_back(&norm->scale);
    all.push_back(&norm->offset);
  }
  all.push_back(&classifier_.weight);
  all.push_back(&classifier_.bias);
  return all;
}

void update(const std::vector<parameter*>& parameters, float rate) {
  for (parameter* p : parameters) {
    float* const value = p->value.values.data();
    float* const gradient = p->gradient.values.data();
    float* const velocity = p->velocity.values.data();
    for (index i = 0; i < p->value.values.size(); ++i) {
      velocity[i] = momentum * velocity[i] + gradient[i] + weight_decay * value[i];
      value[i] -= rate * velocity[i];
      gradient[i] = 0.0F;
    }
  }
}

}  // namespace trainer
