// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The memory that folded tensors live in, and who folds them there.

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "furl/element/philox.hpp"
#include "furl/plan.hpp"
#include "furl/status.hpp"
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

  virtual u64 size_bytes() const = 0;
  /// The whole tensor back, or all codes: only what was folded.
  virtual void restore(const buffer<float>& values) const = 0;
  virtual void unpack(const codes& c) const = 0;
};

/// Folds tensors that are in host memory; throws what cannot be done. Outlives what it folds.
class fold_store {
 public:
  fold_store() = default;
  virtual ~fold_store() = default;
  fold_store(const fold_store&) = delete;
  fold_store& operator=(const fold_store&) = delete;

  virtual std::unique_ptr<const folded> compress(const furl::plan& p, const buffer<float>& values,
                                                 furl::random_key key) = 0;
  virtual std::unique_ptr<const folded> pack(const furl::plan& p, const codes& c) = 0;
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

}  // namespace trainer
