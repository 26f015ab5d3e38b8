// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Hooks that fold what autograd saves, for programs without Python. Two ways to register them:
// folder::fold, by the public SavedVariable::register_hooks of every node, and fold_everything, by
// an engine of our own, which PyTorch does not promise to keep working.

#include <ATen/ATen.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <unordered_set>

namespace torch::autograd {
struct Node;
}

namespace fold_hooks {

struct settings {
  int bits = 2;            // of a code, 1..8
  int window = 8;          // means of window x window cells of images are kept apart; 1: none
  std::uint64_t seed = 1;  // of the noise; every tensor gets noise of its own
};

/// What hooks share. Tensors of the CPU only.
struct shared_state {
  settings how;
  std::atomic<std::uint64_t> num_folded{0};     // also the offset of the next tensor's noise
  std::atomic<std::int64_t> original_bytes{0};  // of the tensors that nodes saved in this step
  std::atomic<std::int64_t> kept_bytes{0};      // of what is kept in their place

  /// Begins to count bytes anew.
  void begin_step() { original_bytes = kept_bytes = 0; }
};

using hooks_pointer = std::unique_ptr<torch::autograd::SavedVariableHooks>;

/// Values by the codec, restored in their dtype. Contiguous f32, f16 or bf16, of any shape.
hooks_pointer fold_values(std::shared_ptr<shared_state> state);

/// One bit per element, restored as 1 where x > 0 and else 0: all that the gradient of ReLU needs.
hooks_pointer fold_signs(std::shared_ptr<shared_state> state);

/// The shape alone, restored with undefined contents: all that max pooling needs of its input.
hooks_pointer fold_shape(std::shared_ptr<shared_state> state);

/// Where the maximum was, of windows of `rows` x `columns` elements that do not overlap and are not
/// padded; by the place in its window. Exact.
/// input_columns : of the plane that was pooled.
hooks_pointer fold_window_indices(std::shared_ptr<shared_state> state, std::int64_t rows,
                                  std::int64_t columns, std::int64_t input_columns);

/// What an engine's hooks see: any tensor that any node saves. Parameters, statistics, integers,
/// small tensors and results of log-softmax pass; of results of ReLU the sign is kept too.
hooks_pointer fold_what_can_be(std::shared_ptr<shared_state> state);

/// Registers hooks with the nodes that made a tensor.
class folder {
 public:
  explicit folder(const settings& how);

  /// Folds what convolutions, linear layers, batch normalisations, ReLUs and max poolings saved on
  /// the way to y, back to what was folded before. To be called after every block of layers: until
  /// then the block's tensors are alive.
  void fold(const at::Tensor& y);

  /// Before every step, when no graph is left from the step before.
  void begin_step();

  const shared_state& state() const { return *state_; }

 private:
  std::shared_ptr<shared_state> state_;
  std::unordered_set<torch::autograd::Node*> folded_;
};

/// Installs fold_what_can_be for all that is saved from now on, on any thread, while state is not
/// null. The engine that does it cannot be removed again.
void fold_everything(std::shared_ptr<shared_state> state);

}  // namespace fold_hooks
