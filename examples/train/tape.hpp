// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A tape: what the forward pass did, to be gone through backwards.

#include <functional>
#include <utility>
#include <vector>

#include "parallel.hpp"
#include "saved_tensors.hpp"
#include "tensor.hpp"

namespace trainer {

/// A tensor and its place on the tape, if anything wants its gradient.
struct variable {
  tensor value;
  index slot = -1;
  buffer<float> ranges = {};   // lo and hi of each channel, where they are known beforehand
  saved_tensor stand_in = {};  // what to keep in place of the value, if anything
  mask_loader mask = {};       // for the backward pass, where one is kept anyway

  bool wants_gradient() const { return slot >= 0; }
};

class tape {
 public:
  /// hooks keep the tensors for the backward pass. Null: nothing is recorded (inference).
  tape(thread_pool& pool, saver* hooks) : pool_(pool), hooks_(hooks) {
    if (hooks_ != nullptr) hooks_->begin_step();
  }
  tape(const tape&) = delete;
  tape& operator=(const tape&) = delete;

  thread_pool& pool() const { return pool_; }
  bool is_recording() const { return hooks_ != nullptr; }
  saver& hooks() const { return *hooks_; }  // Pre: is_recording()

  /// An input whose gradient is wanted.
  variable leaf(const tensor& value) { return record(value, nullptr); }

  /// The result of an operation and what to do with its gradient: pass gradients on to the
  /// operation's inputs with add_gradient.
  variable record(const tensor& value, std::function<void(const tensor&)> backward) {
    steps_.push_back({std::move(backward), {}});
    return {value, static_cast<index>(steps_.size()) - 1};
  }

  /// Adds to the gradient of a variable, which takes over the tensor. A gradient belongs to its
  /// slot alone, so a step may write its result over the gradient it is given.
  void add_gradient(const variable& v, const tensor& gradient) { add_gradient(v.slot, gradient); }
  void add_gradient(index slot, const tensor& gradient) {
    tensor& sum = steps_[static_cast<std::size_t>(slot)].gradient;
    if (sum.values.size() == 0) {
      sum = gradient;
      return;
    }
    for_each(pool_, sum.shape.n, [&](index i, int) {
      const float* const term = gradient.sample(i);
      float* const total = sum.sample(i);
      for (index k = 0; k < sum.shape.sample(); ++k) total[k] += term[k];
    });
  }

  /// Goes back from the last variable, whose gradient is given. Each step is freed when done, and
  /// what it has saved with it; the gradients of leaves stay.
  void backward(const variable& last, const tensor& gradient) {
    add_gradient(last, gradient);
    for (auto s = steps_.rbegin(); s != steps_.rend(); ++s) {
      if (s->backward == nullptr || s->gradient.values.size() == 0) continue;
      const auto run = std::exchange(s->backward, nullptr);
      run(std::exchange(s->gradient, {}));
    }
  }

  /// Of a leaf, after the backward pass.
  const tensor& gradient(const variable& v) const {
    return steps_[static_cast<std::size_t>(v.slot)].gradient;
  }

 private:
  struct step {
    std::function<void(const tensor&)> backward;
    tensor gradient;
  };

  thread_pool& pool_;
  saver* const hooks_;
  std::vector<step> steps_;
};

}  // namespace trainer
