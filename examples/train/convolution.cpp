// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
// Convolution as a matrix product per image: weight (outputs x taps) times the unfolded image (taps
// x pixels), where a tap is an input channel and a place in the window.

#include <algorithm>

#include "layers.hpp"
#include "matrix.hpp"

namespace trainer {
namespace {

struct geometry {
  index channels;
  index height;
  index width;
  index kernel;

  index pixels() const { return height * width; }
  index taps() const { return channels * kernel * kernel; }
  bool is_plain() const { return kernel == 1; }  // the image is its own unfolded form
};

geometry geometry_of(const shape& x, const shape& weight) {
  return {x.c, x.h, x.w, weight.w};
}

/// The part of a row of pixels that a tap shifted by `shift` reads inside the image.
struct span {
  index begin;
  index end;
};

span inside(index size, index shift) {
  return {std::max<index>(0, -shift), std::min(size, size - shift)};
}

/// Calls function(tap, channel, dy, dx) for every tap.
template <class Function>
void for_each_tap(const geometry& g, const Function& function) {
  const index pad = g.kernel / 2;
  index tap = 0;
  for (index channel = 0; channel < g.channels; ++channel)
    for (index dy = -pad; dy <= pad; ++dy)
      for (index dx = -pad; dx <= pad; ++dx) function(tap++, channel, dy, dx);
}

void unfold(const geometry& g, const float* image, float* unfolded) {
  for_each_tap(g, [&](index tap, index channel, index dy, index dx) {
    float* const row = unfolded + tap * g.pixels();
    const float* const plane = image + channel * g.pixels() + dy * g.width + dx;
    const span ys = inside(g.height, dy);
    const span xs = inside(g.width, dx);
    std::fill(row, row + ys.begin * g.width, 0.0F);
    for (index y = ys.begin; y < ys.end; ++y) {
      float* const out = row + y * g.width;
      const float* const in = plane + y * g.width;
      for (index x = 0; x < xs.begin; ++x) out[x] = 0.0F;
      for (index x = xs.begin; x < xs.end; ++x) out[x] = in[x];
      for (index x = xs.end; x < g.width; ++x) out[x] = 0.0F;
    }
    std::fill(row + ys.end * g.width, row + g.pixels(), 0.0F);
  });
}

/// The transpose of unfold: adds every tap's value to the pixel it came from.
void fold_back(const geometry& g, const float* unfolded, float* image) {
  std::fill(image, image + g.channels * g.pixels(), 0.0F);
  for_each_tap(g, [&](index tap, index channel, index dy, index dx) {
    const float* const row = unfolded + tap * g.pixels();
    float* const plane = image + channel * g.pixels() + dy * g.width + dx;
    const span ys = inside(g.height, dy);
    const span xs = inside(g.width, dx);
    for (index y = ys.begin; y < ys.end; ++y)
      for (index x = xs.begin; x < xs.end; ++x) plane[y * g.width + x] += row[y * g.width + x];
  });
}

/// Memory for one unfolded image per thread.
class scratch {
 public:
  scratch(const thread_pool& pool, const geometry& g)
      : size_(g.is_plain() ? 0 : g.taps() * g.pixels()), memory_(size_ * pool.num_threads()) {}
  float* operator[](int share) const { return memory_.data() + share * size_; }

 private:
  const index size_;
  buffer<float> memory_;
};

tensor forward(thread_pool& pool, const tensor& x, const tensor& weight) {
  const geometry g = geometry_of(x.shape, weight.shape);
  const index outputs = weight.shape.n;
  tensor y({x.shape.n, outputs, g.height, g.width});
  const scratch unfolded(pool, g);
  for_each(pool, x.shape.n, [&](index i, int share) {
    const float* image = x.sample(i);
    if (!g.is_plain()) {
      unfold(g, image, unfolded[share]);
      image = unfolded[share];
    }
    as_matrix(y.sample(i), outputs, g.pixels()).noalias() =
        as_const_matrix(weight.values.data(), outputs, g.taps()) *
        as_const_matrix(image, g.taps(), g.pixels());
  });
  return y;
}

void add_weight_gradient(thread_pool& pool, const tensor& x, const tensor& dy,
                         const tensor& gradient) {
  const geometry g = geometry_of(x.shape, gradient.shape);
  const index outputs = gradient.shape.n;
  const scratch unfolded(pool, g);
  const chunks parts{x.shape.n};
  const partial_sums sums(parts, gradient.shape.size());
  for_each(pool, parts.count(), [&](index part, int share) {
    for (index i = parts[part].begin; i < parts[part].end; ++i) {
      const float* image = x.sample(i);
      if (!g.is_plain()) {
        unfold(g, image, unfolded[share]);
        image = unfolded[share];
      }
      as_matrix(sums[part], outputs, g.taps()).noalias() +=
          as_const_matrix(dy.sample(i), outputs, g.pixels()) *
          as_const_matrix(image, g.taps(), g.pixels()).transpose();
    }
  });
  sums.add_to(gradient.values.data());
}

tensor input_gradient(thread_pool& pool, const shape& x, const tensor& dy, const tensor& weight) {
  const geometry g = geometry_of(x, weight.shape);
  const index outputs = weight.shape.n;
  tensor dx(x);
  const scratch unfolded(pool, g);
  for_each(pool, x.n, [&](index i, int share) {
    float* const image = dx.sample(i);
    as_matrix(g.is_plain() ? image : unfolded[share], g.taps(), g.pixels()).noalias() =
        as_const_matrix(weight.values.data(), outputs, g.taps()).transpose() *
        as_const_matrix(dy.sample(i), outputs, g.pixels());
    if (!g.is_plain()) fold_back(g, unfolded[share], image);
  });
  return dx;
}

}  // namespace

variable convolve(tape& t, const variable& x, parameter& weight) {
  const tensor y = forward(t.pool(), x.value, weight.value);
  if (!t.is_recording()) return {y};
  // Linear in x, so that an error of zero mean in x is one of zero mean in the gradient.
  const saved_tensor saved = save_factor(t, x);
  return t.record(y, [&t, &weight, slot = x.slot, saved](const tensor& dy) {
    t.hooks().report(saved, [&] {  // an element meets the gradients around it, in every channel
      const double taps = double(weight.value.shape.plane());
      return taps * sum_of_squares(t.pool(), dy) / double(dy.shape.n * dy.shape.plane());
    });
    add_weight_gradient(t.pool(), t.hooks().load(saved), dy, weight.gradient);
    if (slot >= 0) t.add_gradient(slot, input_gradient(t.pool(), saved.shape, dy, weight.value));
  });
}

}  // namespace trainer
