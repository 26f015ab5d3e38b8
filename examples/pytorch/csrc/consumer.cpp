// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Without NDEBUG, RecordFunction has a member that torch, which is built with it, does not know.
#ifndef NDEBUG
#define NDEBUG
#endif

#include "consumer.hpp"

#include <ATen/record_function.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string_view>

namespace furl_torch {
namespace {

constexpr std::size_t most_arguments = 8;  // no table asks for later ones

struct running_operator {
  const at::RecordFunction* record;  // to know it again at its end
  const char* name;                  // the record's
  const c10::TensorImpl* arguments[most_arguments];
  std::vector<std::int64_t> settings;  // see operator_settings
};

struct watched_thread {
  std::vector<running_operator> running;  // innermost last
  at::CallbackHandle callback{};
  int depth = 0;  // of calls that turned it on
};

watched_thread& this_thread() {
  thread_local watched_thread state;
  return state;
}

bool is_pooling(std::string_view name) {
  return name == "aten::max_pool2d_with_indices" || name == "aten::max_pool3d_with_indices";
}

/// Of max pooling's arguments: the input, then kernel, stride, padding, dilation.
std::vector<std::int64_t> window_of(c10::ArrayRef<const c10::IValue> arguments, std::size_t rank) {
  if (arguments.size() < 5 || !arguments[0].isTensor()) return {};
  const auto sizes = arguments[0].toTensor().sizes();
  std::vector<std::int64_t> window(sizes.end() - std::ptrdiff_t(rank), sizes.end());
  for (std::size_t i = 1; i < 5; ++i) {
    if (!arguments[i].isIntList()) return {};
    std::vector<std::int64_t> widths = arguments[i].toIntVector();
    if (widths.empty()) widths = arguments[1].toIntVector();  // a stride is the kernel by default
    if (widths.size() == 1) widths.resize(rank, widths[0]);
    if (widths.size() != rank) return {};
    window.insert(window.end(), widths.begin(), widths.end());
  }
  return window;
}

/// Powers and norms read different things by their exponent, which is the second argument. A name
/// of its own has every power but whole ones from 0 on, and every norm but the Euclidean.
const char* name_by_exponent(const char* name, c10::ArrayRef<const c10::IValue> arguments) {
  const std::string_view op = name;
  const bool is_power = op == "aten::pow" || op == "aten::pow_";
  const bool is_norm = op == "aten::norm" || op == "aten::linalg_vector_norm";
  if ((!is_power && !is_norm) || arguments.size() < 2) return name;
  const c10::IValue& given = arguments[1];
  if (is_norm && (given.isNone() || given.isIntList())) return name;
  const double exponent = given.isInt()      ? double(given.toInt())
                          : given.isDouble() ? given.toDouble()
                                             : -1;
  const bool is_whole = exponent >= 0 && exponent == std::floor(exponent);
  if (is_power) return is_whole ? name : "aten::pow of a fraction";
  return exponent == 2 ? name : "aten::norm of another power";
}

/// What fused attention dropped cannot be told from its inputs, so that its results are kept: it
/// has another name then. The first number among its arguments, whose place depends on the version
/// of torch, is the probability; a scale comes later.
const char* name_by_dropout(const char* name, c10::ArrayRef<const c10::IValue> arguments) {
  const std::string_view op = name;
  if (op != "aten::_scaled_dot_product_efficient_attention" &&
      op != "aten::_scaled_dot_product_cudnn_attention" &&
      op != "aten::_scaled_dot_product_flash_attention")
    return name;
  const auto found = std::find_if(arguments.begin(), arguments.end(),
                                  [](const c10::IValue& a) { return a.isDouble(); });
  return found != arguments.end() && found->toDouble() > 0 ? "aten::attention with kept results"
                                                           : name;
}

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& record) {
  const bool is_script = record.scope() == at::RecordScope::TORCHSCRIPT_FUNCTION;
  running_operator op{&record, is_script ? "torchscript" : record.name(), {}, {}};
  const auto inputs = record.inputs();
  if (!is_script) op.name = name_by_dropout(name_by_exponent(op.name, inputs), inputs);
  if (is_pooling(op.name)) op.settings = window_of(inputs, std::size_t(op.name[14] - '0'));
  if (op.name == std::string_view("aten::_log_softmax") && inputs.size() > 1 && inputs[1].isInt())
    op.settings = {inputs[1].toInt()};
  for (std::size_t i = 0; i < std::min(inputs.size(), most_arguments); ++i)
    if (inputs[i].isTensor()) op.arguments[i] = inputs[i].toTensor().unsafeGetTensorImpl();
  this_thread().running.push_back(std::move(op));
  return nullptr;
}

/// An operator that began before the watch did is not in the list; one that an exception ended may
/// still be above this one.
void end(const at::RecordFunction& record, at::ObserverContext*) {
  std::vector<running_operator>& running = this_thread().running;
  for (std::size_t i = running.size(); i-- > 0;) {
    if (running[i].record == &record) {
      running.resize(i);
      return;
    }
  }
}

bool is_own(const char* name) {
  return std::string_view(name).substr(0, 6) == "furl::";
}

}  // namespace

void watch_operators(bool on) {
  watched_thread& state = this_thread();
  if (on && state.depth++ == 0) {
    state.callback = at::addThreadLocalCallback(
        at::RecordFunctionCallback(begin, end)
            .needsInputs(true)
            .scopes({at::RecordScope::FUNCTION, at::RecordScope::TORCHSCRIPT_FUNCTION}));
  } else if (!on && state.depth > 0 && --state.depth == 0) {
    at::removeCallback(state.callback);
    state.running.clear();
  }
}

std::tuple<std::vector<std::string>, std::int64_t> consumers(const at::Tensor& x) {
  const std::vector<running_operator>& running = this_thread().running;
  std::vector<std::string> names;
  std::int64_t argument = -1;
  for (auto op = running.rbegin(); op != running.rend(); ++op) {
    if (is_own(op->name)) continue;
    if (names.empty()) {
      const auto found =
          std::find(op->arguments, op->arguments + most_arguments, x.unsafeGetTensorImpl());
      if (found != op->arguments + most_arguments) argument = found - op->arguments;
    }
    names.emplace_back(op->name);
  }
  return {names, argument};
}

std::vector<std::int64_t> operator_settings() {
  const std::vector<running_operator>& running = this_thread().running;
  const auto op = std::find_if(running.rbegin(), running.rend(),
                               [](const running_operator& o) { return !is_own(o.name); });
  return op == running.rend() ? std::vector<std::int64_t>{} : op->settings;
}

}  // namespace furl_torch
