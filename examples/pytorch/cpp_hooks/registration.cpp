// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/generated/Functions.h>

#include <type_traits>
#include <utility>
#include <vector>

#include "fold_hooks.hpp"

namespace fold_hooks {
namespace {

using namespace torch::autograd;
using state_pointer = std::shared_ptr<shared_state>;
using node_pointer = std::decay_t<decltype(std::declval<at::Tensor>().grad_fn())>;  // changes

void fold_pooling(generated::MaxPool2DWithIndicesBackward0& node, const state_pointer& state) {
  const std::vector<std::int64_t>& kernel = node.kernel_size;
  const bool apart = node.stride.empty() || node.stride == kernel;
  const bool padded = node.padding != std::vector<std::int64_t>(node.padding.size(), 0);
  const bool dilated = node.dilation != std::vector<std::int64_t>(node.dilation.size(), 1);
  const at::Tensor input = node.self_.unpack();
  if (apart && !padded && !dilated)
    node.result1_.register_hooks(
        fold_window_indices(state, kernel.front(), kernel.back(), input.size(-1)));
  node.self_.register_hooks(fold_shape(state));
}

/// Folds what a node saved, if it is of a kind that is known here.
void fold_node(Node* node, const state_pointer& state) {
  if (auto* relu = dynamic_cast<generated::ReluBackward0*>(node))
    return relu->result_.register_hooks(fold_signs(state));
  if (auto* conv = dynamic_cast<generated::ConvolutionBackward0*>(node))
    return conv->input_.register_hooks(fold_values(state));
  if (auto* norm = dynamic_cast<generated::NativeBatchNormBackward0*>(node))
    return norm->input_.register_hooks(fold_values(state));
  if (auto* linear = dynamic_cast<generated::AddmmBackward0*>(node))
    return linear->mat1_.register_hooks(fold_values(state));
  if (auto* pool = dynamic_cast<generated::MaxPool2DWithIndicesBackward0*>(node))
    return fold_pooling(*pool, state);
}

class folding_engine : public Engine {
 public:
  hooks_pointer get_default_saved_variable_hooks() override {
    const state_pointer state = std::atomic_load(&state_);
    return state ? fold_what_can_be(state) : nullptr;
  }
  void set_state(state_pointer state) { std::atomic_store(&state_, std::move(state)); }

 private:
  state_pointer state_;
};

folding_engine& our_engine() {
  static folding_engine* const engine = new folding_engine;  // its threads end with the process
  return *engine;
}

}  // namespace

folder::folder(const settings& how) : state_(std::make_shared<shared_state>()) {
  state_->how = how;
}

void folder::fold(const at::Tensor& y) {
  std::vector<node_pointer> to_visit{y.grad_fn()};
  while (!to_visit.empty()) {
    const node_pointer node = std::move(to_visit.back());
    to_visit.pop_back();
    if (!node || !folded_.insert(node.get()).second) continue;
    fold_node(node.get(), state_);
    for (const Edge& edge : node->next_edges()) to_visit.push_back(edge.function);
  }
}

void folder::begin_step() {
  folded_.clear();
  state_->begin_step();
}

void fold_everything(std::shared_ptr<shared_state> state) {
  our_engine().set_state(std::move(state));
  set_default_engine_stub([]() -> Engine& { return our_engine(); });
}

}  // namespace fold_hooks
