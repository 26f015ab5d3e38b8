// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The memory that folded tensors live in, and who folds them there.

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "furl/detail/quantize.hpp"
#include "furl/extra/codebook.hpp"
#include "furl/plan.hpp"
#include "furl/types.hpp"
#include "parallel.hpp"
#include "tensor.hpp"

namespace trainer {

/// A tensor, or codes, in folded form.
class folded {
 public:
  folded() = default;
  virtual ~folded() = default;
  folded(const folded&) = delete;
  folded& operator=(const folded&) = delete;

  virtual u64 size_bytes() const = 0;  // the bits of tiles included
  /// Of a compressed tensor its values, of one packed by a codebook the levels.
  virtual void restore(const buffer<float>& values) const = 0;
  /// Adds a compressed tensor to other values.
  virtual void restore_add(const buffer<float>& values) const = 0;
  /// Of packed codes.
  virtual void unpack(const codes& c) const = 0;
  /// Of a tensor packed by a codebook: multiplies by its levels.
  virtual void multiply(const buffer<float>& values) const = 0;
  /// Of a compressed tensor: for each tile, what its error grows with.
  virtual std::vector<double> squared_ranges() const = 0;
};

/// Folds tensors that are in host memory; throws what cannot be done. Outlives what it folds.
class fold_store {
 public:
  fold_store() = default;
  virtual ~fold_store() = default;
  fold_store(const fold_store&) = delete;
  fold_store& operator=(const fold_store&) = delete;

  /// channel_ranges : lo and hi of every index of dimension 1, or none: then they are measured.
  virtual std::unique_ptr<const folded> compress(const furl::plan& p, const buffer<float>& values,
                                                 furl::random_key key,
                                                 const buffer<float>& channel_ranges) = 0;
  /// For a mixed plan, with bits of tiles that make the tensor's summed error the smallest.
  virtual std::unique_ptr<const folded> compress_mixed(const furl::plan& p,
                                                       const buffer<float>& values,
                                                       furl::random_key key) = 0;
  virtual std::unique_ptr<const folded> pack(const furl::plan& p, const codes& c) = 0;
  /// By a codebook without randomness, which outlives what is folded.
  virtual std::unique_ptr<const folded> pack(const furl::plan& p, const buffer<float>& values,
                                             const furl::codebook& book) = 0;
};

/// In host memory.
std::unique_ptr<fold_store> make_host_store(thread_pool& pool);

/// In memory of the current CUDA device, which the bytes of a tensor go through. Throws no_cuda if
/// this build cannot, and another exception if there is no device.
std::unique_ptr<fold_store> make_cuda_store();

struct no_cuda : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline void check(const furl::status& s) {
  if (!s) throw std::runtime_error("furl: " + furl::to_string(s));
}

template <class T>
T value_of(furl::result<T> r) {
  check(r.status());
  return std::move(*r);
}

/// Ranges of channels as furl takes them.
inline furl::given_ranges as_ranges(const float* pairs, index num_values) {
  return num_values == 0 ? furl::given_ranges{}
                         : furl::given_ranges::of_channels(pairs, num_values / 2, 1);
}

}  // namespace trainer
