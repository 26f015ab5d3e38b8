// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
// The operations that work channel by channel or element by element.

#include "layers.hpp"

#include <algorithm>
#include <cmath>

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

/// Forward pass of a 2 x 2 window: the maximum and its place, row by row. The first of equal ones.
void pool_plane(const shape& in, const shape& out, const float* x, float* y, u8* place) {
  for (index row = 0; row < out.h; ++row) {
    const float* const upper = x + 2 * row * in.w;
    const float* const lower = upper + in.w;
    for (index k = 0; k < out.w; ++k) {
      const float right = upper[2 * k + 1];
      const float below = lower[2 * k];
      const float last = lower[2 * k + 1];
      const float top = std::max(upper[2 * k], right);
      const float bottom = std::max(below, last);
      const int top_place = right > upper[2 * k] ? 1 : 0;
      const int bottom_place = last > below ? 3 : 2;
      y[row * out.w + k] = std::max(top, bottom);
      place[row * out.w + k] = u8(bottom > top ? bottom_place : top_place);
    }
  }
}

tensor pool_backward(thread_pool& pool, const shape& in, const tensor& dy, const codes& places) {
  tensor dx(in);
  const shape& out = dy.shape;
  for_each(pool, out.n, [&](index i, int) {
    std::fill(dx.sample(i), dx.sample(i) + in.sample(), 0.0F);
    for (index c = 0; c < out.c; ++c) {
      const float* const gradient = dy.plane(i, c);
      const u8* const place = places.data() + (gradient - dy.values.data());
      for (index row = 0; row < out.h; ++row)
        for (index k = 0; k < out.w; ++k) {
          const int p = place[row * out.w + k];
          dx.plane(i, c)[(2 * row + p / 2) * in.w + 2 * k + p % 2] = gradient[row * out.w + k];
        }
    }
  });
  return dx;
}

}  // namespace

variable normalize(tape& t, const variable& x, batch_norm& layer) {
  if (!t.is_recording()) return {apply(t.pool(), x.value, running_statistics(layer), layer)};
  const statistics of = batch_statistics(t.pool(), x.value, layer);
  const tensor y = apply(t.pool(), x.value, of, layer);
  // The statistics are few and scale every gradient of their channel: exact.
  return t.record(y, [&t, &layer, slot = x.slot, saved = t.hooks().save(x.value),
                      mean = t.hooks().save_exact(of.mean),
                      inverse = t.hooks().save_exact(of.inverse)](const tensor& dy) {
    normalize_backward(t.pool(), t.hooks().load(saved),
                       {t.hooks().load(mean), t.hooks().load(inverse)}, dy, layer);
    if (slot >= 0) t.add_gradient(slot, dy);
  });
}

variable rectify(tape& t, const variable& x) {
  const shape& s = x.value.shape;
  const tensor y(s);
  const codes mask(t.is_recording() ? s.size() : 0);
  for_each(t.pool(), s.n, [&](index i, int) {
    const float* const in = x.value.sample(i);
    float* const out = y.sample(i);
    for (index k = 0; k < s.sample(); ++k) out[k] = in[k] > 0.0F ? in[k] : 0.0F;
    if (!t.is_recording()) return;
    u8* const positive = mask.data() + i * s.sample();
    for (index k = 0; k < s.sample(); ++k) positive[k] = in[k] > 0.0F ? 1 : 0;
  });
  if (!t.is_recording()) return {y};
  // Only the sign matters, and it must be exact: a folded y may have lost small positive values,
  // and the gradient with them. A bit per element says it all.
  return t.record(y, [&t, slot = x.slot, saved = t.hooks().save(mask, 1)](const tensor& dy) {
    if (slot < 0) return;
    const codes positive = t.hooks().load(saved);
    for_each(t.pool(), dy.shape.n, [&](index i, int) {
      float* const gradient = dy.sample(i);
      const u8* const pass = positive.data() + i * dy.shape.sample();
      for (index k = 0; k < dy.shape.sample(); ++k) gradient[k] = pass[k] != 0 ? gradient[k] : 0.0F;
    });
    t.add_gradient(slot, dy);
  });
}

variable max_pool(tape& t, const variable& x) {
  const shape in = x.value.shape;
  const shape out{in.n, in.c, in.h / 2, in.w / 2};
  const tensor y(out);
  const codes places(out.size());
  for_each(t.pool(), out.n, [&](index i, int) {
    for (index c = 0; c < out.c; ++c) {
      float* const plane = y.plane(i, c);
      pool_plane(in, out, x.value.plane(i, c), plane, places.data() + (plane - y.values.data()));
    }
  });
  if (!t.is_recording()) return {y};
  // The input's shape and a place of 0..3 per window are enough: the input itself is not saved.
  return t.record(y, [&t, in, slot = x.slot, saved = t.hooks().save(places, 2)](const tensor& dy) {
    if (slot >= 0) t.add_gradient(slot, pool_backward(t.pool(), in, dy, t.hooks().load(saved)));
  });
}

variable add(tape& t, const variable& a, const variable& b) {
  const shape& s = a.value.shape;
  const tensor y(s);
  for_each(t.pool(), s.n, [&](index i, int) {
    std::transform(a.value.sample(i), a.value.sample(i) + s.sample(), b.value.sample(i),
                   y.sample(i), [](float p, float q) { return p + q; });
  });
  if (!t.is_recording()) return {y};
  return t.record(y, [&t, first = a.slot, second = b.slot](const tensor& dy) {
    if (first >= 0) {  // each slot owns its gradient: one of them needs a copy
      const tensor copy(dy.shape);
      std::copy(dy.values.begin(), dy.values.end(), copy.values.begin());
      t.add_gradient(first, copy);
    }
    if (second >= 0) t.add_gradient(second, dy);
  });
}

}  // namespace trainer
