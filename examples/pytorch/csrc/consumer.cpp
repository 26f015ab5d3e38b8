// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Without NDEBUG, RecordFunction has a member that torch, which is built with it, does not know.
#ifndef NDEBUG
#define NDEBUG
#endif

#include "consumer.hpp"

#include <ATen/record_function.h>

#include <algorithm>
#include <memory>
#include <string_view>

namespace furl_torch {
namespace {

constexpr std::size_t most_arguments = 8;  // no table asks for later ones

struct running_operator {
  const at::RecordFunction* record;  // to know it again at its end
  const char* name;                  // the record's
  const c10::TensorImpl* arguments[most_arguments];
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

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& record) {
  running_operator op{&record, record.name(), {}};
  const auto inputs = record.inputs();
  for (std::size_t i = 0; i < std::min(inputs.size(), most_arguments); ++i)
    if (inputs[i].isTensor()) op.arguments[i] = inputs[i].toTensor().unsafeGetTensorImpl();
  this_thread().running.push_back(op);
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
    state.callback = at::addThreadLocalCallback(at::RecordFunctionCallback(begin, end)
                                                    .needsInputs(true)
                                                    .scopes({at::RecordScope::FUNCTION}));
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

}  // namespace furl_torch
