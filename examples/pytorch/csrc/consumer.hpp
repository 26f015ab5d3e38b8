// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which operator is saving a tensor. A saved-tensor hook is called from inside that operator, and
// what it may lose depends on it: attention forgives less than a convolution does.

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

namespace furl_torch {

/// Follows the operators that the calling thread runs, or stops to. Calls may be nested. While it
/// is on, it costs about a microsecond an operator.
void watch_operators(bool on);

/// The operators that are running on this thread, innermost first, without furl's own; and which
/// argument of the innermost x is, or -1 for none: then it is one of its outputs. A function of
/// TorchScript counts as one by the name "torchscript": what its fused graphs save, they save
/// outside any operator.
std::tuple<std::vector<std::string>, std::int64_t> consumers(const at::Tensor& x);

/// Arguments of the innermost operator that say how to pack what it saves. Of max pooling over d
/// dimensions: d numbers each for the input's size, kernel, stride, padding and dilation. Of
/// log-softmax: its dimension. Of others: none.
std::vector<std::int64_t> operator_settings();

}  // namespace furl_torch
