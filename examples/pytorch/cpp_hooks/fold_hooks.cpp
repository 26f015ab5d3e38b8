// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

#include "fold_hooks.hpp"

#include <torch/csrc/autograd/function.h>

#include <string>
#include <utility>
#include <vector>

#include "ops.hpp"

namespace fold_hooks {
namespace {

using at::Tensor;
using ops = furl_torch::ops<furl_torch::host_engine>;

constexpr std::int64_t least_elements = 1024;  // fewer are not worth it
constexpr int group = furl::codec().group;

/// What is kept of a tensor: a blob, and what it must be restored as.
class folded : public torch::autograd::SavedVariableHooks {
 public:
  explicit folded(std::shared_ptr<shared_state> state) : state_(std::move(state)) {}

 protected:
  void keep(const Tensor& x, const Tensor& blob) {
    like_ = at::empty(x.sizes(), x.options().device(at::kMeta));
    blob_ = blob;
    count(x, blob);
  }
  void count(const Tensor& original, const Tensor& kept) {
    state_->original_bytes += std::int64_t(original.nbytes());
    state_->kept_bytes += std::int64_t(kept.nbytes());
  }

  std::shared_ptr<shared_state> state_;
  Tensor like_;  // contiguous, and without memory
  Tensor blob_;
};

class folded_values : public folded {
 public:
  using folded::folded;
  void call_pack_hook(const Tensor& x) override {
    how_ = state_->how;
    if (x.dim() == 4 && how_.window > 1) window_ = {1, 1, how_.window, how_.window};
    keep(x, ops::compress(x.contiguous(), how_.bits, window_, group, std::int64_t(how_.seed),
                          std::int64_t(state_->num_folded++)));
  }
  Tensor call_unpack_hook() override {
    return ops::decompress(blob_, like_.sizes(), like_.strides(), like_.scalar_type(), how_.bits,
                           window_, group);
  }

 private:
  settings how_;  // of when x was folded
  std::vector<std::int64_t> window_;
};

class folded_signs : public folded {
 public:
  using folded::folded;
  // Not by pack_positive and unpack_levels: f64 and integers have signs too.
  void call_pack_hook(const Tensor& x) override { keep(x, ops::pack(x.contiguous() > 0, 1)); }
  Tensor call_unpack_hook() override {
    return ops::unpack(blob_, like_.sizes(), like_.strides(), at::kBool, 1).to(like_.dtype());
  }
};

class folded_shape : public folded {
 public:
  using folded::folded;
  void call_pack_hook(const Tensor& x) override { keep(x, at::empty({0}, at::kByte)); }
  Tensor call_unpack_hook() override { return at::empty_like(like_, at::kCPU); }
};

class folded_window_indices : public folded {
 public:
  folded_window_indices(std::shared_ptr<shared_state> state, std::int64_t rows,
                        std::int64_t columns, std::int64_t input_columns)
      : folded(std::move(state)), rows_(rows), columns_(columns), width_(input_columns) {
    while (1 << bits_ < rows * columns) ++bits_;
  }

  void call_pack_hook(const Tensor& index) override {
    const Tensor row = index.div(width_, "floor");
    const Tensor place =
        row.remainder(rows_) * columns_ + (index - row * width_).remainder(columns_);
    keep(index, ops::pack(place.to(at::kByte).contiguous(), bits_));
  }
  Tensor call_unpack_hook() override {
    const Tensor place =
        ops::unpack(blob_, like_.sizes(), like_.strides(), at::kByte, bits_).to(at::kLong);
    const Tensor out_row = at::arange(like_.size(-2)).unsqueeze(1);
    const Tensor out_column = at::arange(like_.size(-1));
    const Tensor row = out_row * rows_ + place.div(columns_, "floor");
    return row * width_ + out_column * columns_ + place.remainder(columns_);
  }

 private:
  std::int64_t rows_, columns_, width_;
  int bits_ = 1;  // of a place
};

bool is_foldable(at::ScalarType type) {
  return type == at::kFloat || type == at::kHalf || type == at::kBFloat16;
}

bool is_parameter(const Tensor& x) {
  const Tensor owner = x.is_view() ? Tensor(x._base()) : x;
  return owner.is_leaf() && owner.requires_grad();
}

std::string maker_of(const Tensor& x) {
  const auto node = x.grad_fn();
  return node ? node->name() : std::string();
}

class folded_if_possible : public folded_values {
 public:
  using folded_values::folded_values;
  void call_pack_hook(const Tensor& x) override {
    const std::string maker = maker_of(x);
    if (!is_foldable(x.scalar_type()) || x.numel() < least_elements || is_parameter(x) ||
        maker == "LogSoftmaxBackward0") {
      // Not the tensor itself: a node that holds its own result would never be freed.
      passed_ = x.detach();
      version_ = x._version();
      if (!is_parameter(x)) count(x, x);
      return;
    }
    folded_values::call_pack_hook(x);
    if (maker == "ReluBackward0") {
      signs_ = ops::pack_positive(x.contiguous());
      state_->kept_bytes += std::int64_t(signs_.nbytes());
    }
  }
  Tensor call_unpack_hook() override {
    if (passed_.defined()) {
      // Where there are hooks, torch leaves this check to them.
      TORCH_CHECK(passed_._version() == version_,
                  "a tensor needed for the gradient has been modified ",
                  "by an inplace operation: it is at version ", passed_._version(),
                  ", but was saved at version ", version_);
      return passed_;
    }
    const Tensor y = folded_values::call_unpack_hook();
    if (signs_.defined()) ops::restore_positive_(y, signs_);
    return y;
  }

 private:
  Tensor passed_;
  std::int64_t version_ = 0;
  Tensor signs_;
};

}  // namespace

hooks_pointer fold_values(std::shared_ptr<shared_state> state) {
  return std::make_unique<folded_values>(std::move(state));
}
hooks_pointer fold_signs(std::shared_ptr<shared_state> state) {
  return std::make_unique<folded_signs>(std::move(state));
}
hooks_pointer fold_shape(std::shared_ptr<shared_state> state) {
  return std::make_unique<folded_shape>(std::move(state));
}
hooks_pointer fold_window_indices(std::shared_ptr<shared_state> state, std::int64_t rows,
                                  std::int64_t columns, std::int64_t input_columns) {
  return std::make_unique<folded_window_indices>(std::move(state), rows, columns, input_columns);
}
hooks_pointer fold_what_can_be(std::shared_ptr<shared_state> state) {
  return std::make_unique<folded_if_possible>(std::move(state));
}

}  // namespace fold_hooks
