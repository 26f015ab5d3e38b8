// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
// Batch normalisation.

#include <algorithm>
#include <cmath>

#include "layers.hpp"
#include "parallel.hpp"

namespace trainer {
namespace {

constexpr float variance_floor = 1e-5F;
constexpr float running_rate = 0.1F;

/// Sum over a channel's elements of term(sample, element of the plane).
template <class Term>
double channel_sum(const shape& s, const Term& term) {
  double sum = 0.0;
  for (index i = 0; i < s.n; ++i)
    sum += double(lane_sum(s.plane(), [&](index k) { return term(i, k); }));
  return sum;
}

/// Mean and 1 / standard deviation of each channel.
struct statistics {
  tensor mean;
  tensor inverse;
};

statistics batch_statistics(thread_pool& pool, const tensor& x, const batch_norm& layer) {
  const shape& s = x.shape;
  statistics of{tensor({1, s.c}), tensor({1, s.c})};
  const auto num_elements = double(s.n * s.plane());
  for_each(pool, s.c, [&](index c, int) {
    const auto mean =
        float(channel_sum(s, [&](index i, index k) { return x.plane(i, c)[k]; }) / num_elements);
    const double squares = channel_sum(s, [&](index i, index k) {
      const float difference = x.plane(i, c)[k] - mean;
      return difference * difference;
    });
    const auto variance = float(squares / num_elements);
    of.mean.values.data()[c] = mean;
    of.inverse.values.data()[c] = 1.0F / std::sqrt(variance + variance_floor);
    float& running_mean = layer.running_mean.values.data()[c];
    float& running_variance = layer.running_variance.values.data()[c];
    running_mean += running_rate * (mean - running_mean);
    running_variance += running_rate * (variance - running_variance);
  });
  return of;
}

statistics running_statistics(const batch_norm& layer) {
  const shape& s = layer.running_mean.shape;
  statistics of{layer.running_mean, tensor(s)};
  for (index c = 0; c < s.c; ++c)
    of.inverse.values.data()[c] =
        1.0F / std::sqrt(layer.running_variance.values.data()[c] + variance_floor);
  return of;
}

tensor apply(thread_pool& pool, const tensor& x, const statistics& of, const batch_norm& layer) {
  tensor y(x.shape);
  for_each(pool, x.shape.n, [&](index i, int) {
    for (index c = 0; c < x.shape.c; ++c) {
      const float scale = layer.scale.value.values.data()[c] * of.inverse.values.data()[c];
      const float offset = layer.offset.value.values.data()[c] - scale * of.mean.values.data()[c];
      const float* const in = x.plane(i, c);
      float* const out = y.plane(i, c);
      for (index k = 0; k < x.shape.plane(); ++k) out[k] = scale * in[k] + offset;
    }
  });
  return y;
}

/// Gradient of the input, written over dy, and of the parameters.
void normalize_backward(thread_pool& pool, const tensor& x, const statistics& of, const tensor& dy,
                        const batch_norm& layer) {
  const shape& s = x.shape;
  const auto num_elements = double(s.n * s.plane());
  for_each(pool, s.c, [&](index c, int) {
    const float mean = of.mean.values.data()[c];
    const float inverse = of.inverse.values.data()[c];
    const double sum = channel_sum(s, [&](index i, index k) { return dy.plane(i, c)[k]; });
    const double product = double(inverse) * channel_sum(s, [&](index i, index k) {
                             return dy.plane(i, c)[k] * (x.plane(i, c)[k] - mean);
                           });
    layer.offset.gradient.values.data()[c] += float(sum);
    layer.scale.gradient.values.data()[c] += float(product);
    const float factor = layer.scale.value.values.data()[c] * inverse;
    const auto mean_gradient = float(sum / num_elements);
    const float slope = inverse * float(product / num_elements);
    for (index i = 0; i < s.n; ++i) {
      float* const gradient = dy.plane(i, c);
      const float* const in = x.plane(i, c);
      for (index k = 0; k < s.plane(); ++k)
        gradient[k] = factor * (gradient[k] - mean_gradient - slope * (in[k] - mean));
    }
  });
}

/// Three standard deviations each side of the mean, which hold nearly all of a channel (BLPA).
buffer<float> ranges_around(index channels, const float* mean, const float* deviation) {
  buffer<float> ranges(2 * channels);
  for (index c = 0; c < channels; ++c) {
    const float reach = 3.0F * std::abs(deviation[c]);
    ranges.data()[2 * c] = mean[c] - reach;
    ranges.data()[2 * c + 1] = mean[c] + reach;
  }
  return ranges;
}

buffer<float> input_ranges(const statistics& of) {
  const index channels = of.mean.shape.c;
  buffer<float> deviation(channels);
  std::transform(of.inverse.values.begin(), of.inverse.values.end(), deviation.begin(),
                 [](float inverse) { return 1.0F / inverse; });
  return ranges_around(channels, of.mean.values.data(), deviation.data());
}

buffer<float> output_ranges(const batch_norm& layer) {
  const tensor& scale = layer.scale.value;
  return ranges_around(scale.shape.c, layer.offset.value.values.data(), scale.values.data());
}

}  // namespace

variable normalize(tape& t, const variable& x, batch_norm& layer) {
  if (!t.is_recording()) return {apply(t.pool(), x.value, running_statistics(layer), layer)};
  const statistics of = batch_statistics(t.pool(), x.value, layer);
  // The statistics are few and scale every gradient of their channel: exact.
  const auto mean = t.hooks().save_exact(of.mean);
  const auto inverse = t.hooks().save_exact(of.inverse);
  const auto saved = t.hooks().save(x.value, input_ranges(of));
  const tensor y = apply(t.pool(), x.value, of, layer);
  const auto backward = [&t, &layer, slot = x.slot, mean, inverse, saved](const tensor& dy) {
    const statistics kept{t.hooks().load(mean), t.hooks().load(inverse)};
    normalize_backward(t.pool(), t.hooks().load(saved), kept, dy, layer);
    if (slot >= 0) t.add_gradient(slot, dy);
  };
  variable out = t.record(y, backward);
  out.ranges = output_ranges(layer);
  return out;
}

}  // namespace trainer
