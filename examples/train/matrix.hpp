// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Row-major matrices in place, for products by Eigen; and gradients of weights, which are sums over
// the batch.

#include <Eigen/Core>
#include <algorithm>

#include "parallel.hpp"
#include "tensor.hpp"

namespace trainer {

using matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

inline Eigen::Map<matrix> as_matrix(float* data, index rows, index columns) {
  return {data, rows, columns};
}
inline Eigen::Map<const matrix> as_const_matrix(const float* data, index rows, index columns) {
  return {data, rows, columns};
}

/// A sum per chunk of the batch, so that threads can add to them without an order among them.
class partial_sums {
 public:
  partial_sums(chunks parts, index size) : parts_(parts), size_(size), sums_(parts.count() * size) {
    std::fill(sums_.begin(), sums_.end(), 0.0F);
  }

  float* operator[](index part) const { return sums_.data() + part * size_; }

  /// Adds the sums to a total of size elements, chunk after chunk.
  void add_to(float* total) const {
    for (index part = 0; part < parts_.count(); ++part) {
      const float* const sum = (*this)[part];
      for (index i = 0; i < size_; ++i) total[i] += sum[i];
    }
  }

 private:
  const chunks parts_;
  const index size_;
  buffer<float> sums_;
};

}  // namespace trainer
