// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
// The end of the network: linear layer and loss.

#include <algorithm>
#include <cmath>

#include "layers.hpp"
#include "matrix.hpp"

namespace trainer {
namespace {

/// The weight matrix: outputs x inputs.
Eigen::Map<const matrix> weight_of(const linear_layer& layer) {
  const shape& s = layer.weight.value.shape;
  return as_const_matrix(layer.weight.value.values.data(), s.n, s.c);
}

tensor forward(thread_pool& pool, const tensor& x, const linear_layer& layer) {
  const index outputs = layer.weight.value.shape.n;
  const index inputs = x.shape.sample();
  tensor y({x.shape.n, outputs});
  const auto bias = as_const_matrix(layer.bias.value.values.data(), 1, outputs);
  const chunks parts{x.shape.n};
  for_each(pool, parts.count(), [&](index part, int) {
    const chunk samples = parts[part];
    auto out = as_matrix(y.sample(samples.begin), samples.size(), outputs);
    out.noalias() = as_const_matrix(x.sample(samples.begin), samples.size(), inputs) *
                    weight_of(layer).transpose();
    out.rowwise() += bias.row(0);
  });
  return y;
}

void add_parameter_gradients(thread_pool& pool, const tensor& x, const tensor& dy,
                             const linear_layer& layer) {
  const index outputs = dy.shape.c;
  const index inputs = x.shape.sample();
  const chunks parts{x.shape.n};
  const partial_sums weights(parts, outputs * inputs);
  const partial_sums biases(parts, outputs);
  for_each(pool, parts.count(), [&](index part, int) {
    const chunk samples = parts[part];
    const auto gradient = as_const_matrix(dy.sample(samples.begin), samples.size(), outputs);
    as_matrix(weights[part], outputs, inputs).noalias() =
        gradient.transpose() * as_const_matrix(x.sample(samples.begin), samples.size(), inputs);
    as_matrix(biases[part], 1, outputs) = gradient.colwise().sum();
  });
  weights.add_to(layer.weight.gradient.values.data());
  biases.add_to(layer.bias.gradient.values.data());
}

tensor input_gradient(thread_pool& pool, const shape& x, const tensor& dy,
                      const linear_layer& layer) {
  tensor dx(x);
  const chunks parts{x.n};
  for_each(pool, parts.count(), [&](index part, int) {
    const chunk samples = parts[part];
    as_matrix(dx.sample(samples.begin), samples.size(), x.sample()).noalias() =
        as_const_matrix(dy.sample(samples.begin), samples.size(), dy.shape.c) * weight_of(layer);
  });
  return dx;
}

tensor log_softmax(const tensor& logits) {
  tensor logs(logits.shape);
  const index classes = logits.shape.c;
  for (index i = 0; i < logits.shape.n; ++i) {
    const float* const in = logits.sample(i);
    const float largest = *std::max_element(in, in + classes);
    float sum = 0.0F;
    for (index k = 0; k < classes; ++k) sum += std::exp(in[k] - largest);
    const float normaliser = largest + std::log(sum);
    for (index k = 0; k < classes; ++k) logs.sample(i)[k] = in[k] - normaliser;
  }
  return logs;
}

}  // namespace

variable linear(tape& t, const variable& x, linear_layer& layer) {
  const tensor y = forward(t.pool(), x.value, layer);
  if (!t.is_recording()) return {y};
  const saved_tensor saved = save_factor(t, x);
  return t.record(y, [&t, &layer, slot = x.slot, saved](const tensor& dy) {
    t.hooks().report(saved, [&] { return sum_of_squares(t.pool(), dy) / double(dy.shape.n); });
    add_parameter_gradients(t.pool(), t.hooks().load(saved), dy, layer);
    if (slot >= 0) t.add_gradient(slot, input_gradient(t.pool(), saved.shape, dy, layer));
  });
}

variable cross_entropy(tape& t, const variable& logits, const codes& labels) {
  const tensor logs = log_softmax(logits.value);
  const shape s = logs.shape;
  const tensor loss({1});
  double sum = 0.0;
  for (index i = 0; i < s.n; ++i) sum -= double(logs.sample(i)[labels.data()[i]]);
  *loss.values.data() = float(sum / double(s.n));
  if (!t.is_recording()) return {loss};
  // The gradient has exp(logs): an error there is not of zero mean, and training falls apart.
  return t.record(loss, [&t, slot = logits.slot, saved = t.hooks().save_exact(logs),
                         saved_labels = t.hooks().save_exact(labels)](const tensor& dy) {
    if (slot < 0) return;
    const tensor probabilities = t.hooks().load(saved);
    const codes label = t.hooks().load(saved_labels);
    const tensor gradient(saved.shape);
    const float factor = *dy.values.data() / float(saved.shape.n);
    for (index i = 0; i < saved.shape.n; ++i)
      for (index k = 0; k < saved.shape.c; ++k)
        gradient.sample(i)[k] =
            factor * (std::exp(probabilities.sample(i)[k]) - (k == label.data()[i] ? 1.0F : 0.0F));
    t.add_gradient(slot, gradient);
  });
}

}  // namespace trainer
