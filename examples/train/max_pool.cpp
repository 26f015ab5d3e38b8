// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
// Max pooling.

#include <algorithm>

#include "layers.hpp"
#include "parallel.hpp"

namespace trainer {
namespace {

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

/// Whether the element of each place is above 0.
codes pool_mask(thread_pool& pool, const shape& in, const shape& out, const codes& mask,
                const codes& places) {
  codes pooled(out.size());
  for_each(pool, out.n * out.c, [&](index plane, int) {
    const u8* const bits = mask.data() + plane * in.plane();
    for (index row = 0; row < out.h; ++row)
      for (index k = 0; k < out.w; ++k) {
        const index i = (plane * out.h + row) * out.w + k;
        const int p = places.data()[i];
        pooled.data()[i] = bits[(2 * row + p / 2) * in.w + 2 * k + p % 2];
      }
  });
  return pooled;
}

}  // namespace

variable max_pool(tape& t, const variable& x) {
  const shape in = x.value.shape;
  const tensor y({in.n, in.c, in.h / 2, in.w / 2});
  const codes places(y.shape.size());
  for_each(t.pool(), in.n, [&](index i, int) {
    for (index c = 0; c < in.c; ++c) {
      float* const plane = y.plane(i, c);
      pool_plane(in, y.shape, x.value.plane(i, c), plane,
                 places.data() + (plane - y.values.data()));
    }
  });
  if (!t.is_recording()) return {y};
  // The input's shape and a place of 0..3 per window are enough: the input itself is not saved.
  const auto saved = t.hooks().save(places, 2);
  variable out = t.record(y, [&t, in, slot = x.slot, saved](const tensor& dy) {
    if (slot >= 0) t.add_gradient(slot, pool_backward(t.pool(), in, dy, t.hooks().load(saved)));
  });
  out.ranges = x.ranges;
  if (x.mask != nullptr)  // a maximum is 0 where what it was taken from is 0: no bits of its own
    out.mask = [&t, in, shape = y.shape, mask = x.mask, saved] {
      return pool_mask(t.pool(), in, shape, mask(), t.hooks().load(saved));
    };
  return out;
}

}  // namespace trainer
