// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What may be done with a tensor that autograd is about to save, by its dtype, its memory and the
// node that made it.

#include <ATen/ATen.h>

#include <cstdint>
#include <tuple>
#include <vector>

namespace furl_torch {

/// contents.py has the same names and numbers.
enum class action : std::int64_t {
  keep = 0,            // as it is, by an alias
  copy = 1,            // as it is, by a copy: it is a small part of a large storage
  parameter = 2,       // as keep, and no activation
  values = 3,          // may be compressed
  positives = 4,       // likewise, and which are above 0 must be kept exactly: outputs of ReLU
  bounded = 5,         // likewise, and no value may leave 0..1: outputs of softmax, sigmoid
  mask = 6,            // bool
  constant = 7,        // without gradient: an input, a mask, or a statistic; the caller must know
  signed_bounded = 8,  // as bounded, for -1..1: outputs of tanh
  logarithms = 9,      // outputs of log-softmax: only their exponentials may be compressed
};

/// What to do with x, and a number that it shares with what was inspected before if that is the
/// same memory, unmodified since and alive all the time, perhaps in another shape; 0 if x has no
/// number.
std::tuple<std::int64_t, std::int64_t> inspect(const at::Tensor& x, std::int64_t min_elements);

/// Of the elements of a dense tensor in host memory; 0 for others. Writes that raise no version, as
/// numpy's, change it.
std::int64_t hash_elements(const at::Tensor& x);

/// Packs x to one bit per element if they are +0 and one positive number, which is returned too.
/// Else, or if x is not in host memory, the blob is empty.
std::tuple<at::Tensor, double> pack_two_values(const at::Tensor& x);

/// The parameter that x is a copy of in another dtype, perhaps transposed, as autocast makes them;
/// or none.
std::vector<at::Tensor> cast_parameter(const at::Tensor& x);

/// The strides of x, or where it has gaps those of a copy without, in the same order.
std::vector<std::int64_t> dense_stride(const at::Tensor& x);

}  // namespace furl_torch
