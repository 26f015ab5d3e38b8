// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Work shared out to the threads of a pool, such that results do not depend on their number: what
// is added up is added up within fixed chunks of the batch first, then over the chunks in order.

#include <algorithm>
#include <atomic>
#include <numeric>

#include "furl/thread_pool.hpp"
#include "tensor.hpp"

namespace trainer {

using furl::host::thread_pool;

/// Calls function(item, share) for each of the items; share, below pool.num_threads(), says whose
/// scratch memory to use. Which share gets an item is a matter of chance. function must not throw.
template <class Function>
void for_each(thread_pool& pool, index num_items, const Function& function) {
  std::atomic<index> next{0};
  pool.run([&](int share) {
    for (index item = next++; item < num_items; item = next++) function(item, share);
  });
}

/// Consecutive samples of a batch.
struct chunk {
  index begin;
  index end;

  index size() const { return end - begin; }
};

/// The chunks that a batch is cut into, whatever the number of threads.
struct chunks {
  index num_samples;

  index count() const { return std::min<index>(num_samples, 16); }
  chunk operator[](index i) const {
    return {num_samples * i / count(), num_samples * (i + 1) / count()};
  }
};

/// Sum of term(i) for i in 0..count-1, in an order that depends on count alone and vectorises.
template <class Term>
float lane_sum(index count, const Term& term) {
  constexpr int lanes = 16;
  float sum[lanes] = {};
  index i = 0;
  for (; i + lanes <= count; i += lanes)
    for (int lane = 0; lane < lanes; ++lane) sum[lane] += term(i + lane);
  for (int lane = 0; i + lane < count; ++lane) sum[lane] += term(i + lane);
  for (int width = lanes / 2; width > 0; width /= 2)
    for (int lane = 0; lane < width; ++lane) sum[lane] += sum[lane + width];
  return sum[0];
}

/// function(element of x, element of each of the others) for all elements; shapes are equal.
template <class Function, class... Tensors>
tensor map(thread_pool& pool, const Function& function, const tensor& x, const Tensors&... others) {
  tensor y(x.shape);
  for_each(pool, x.shape.n, [&](index i, int) {
    std::transform(x.sample(i), x.sample(i) + x.shape.sample(), others.sample(i)..., y.sample(i),
                   function);
  });
  return y;
}

/// Of all elements.
inline double sum_of_squares(thread_pool& pool, const tensor& x) {
  const buffer<float> of_sample(x.shape.n);
  for_each(pool, x.shape.n, [&](index i, int) {
    const float* const v = x.sample(i);
    of_sample.data()[i] = lane_sum(x.shape.sample(), [&](index k) { return v[k] * v[k]; });
  });
  return std::accumulate(of_sample.begin(), of_sample.end(), 0.0);
}

}  // namespace trainer
