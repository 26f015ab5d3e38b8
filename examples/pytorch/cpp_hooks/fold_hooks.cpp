// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

#include "fold_hooks.hpp"

#include <torch/csrc/autograd/function.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "furl/furl.hpp"

namespace fold_hooks {
namespace {

using at::Tensor;

constexpr std::int64_t least_elements = 1024;  // fewer are not worth it

void check(const furl::status& s) {
  TORCH_CHECK(bool(s), "furl: ", furl::to_string(s));
}

template <class T>
T value_of(const furl::result<T>& r) {
  check(r.status());
  return *r;
}

/// Whether there is a dtype for it.
bool is_foldable(at::ScalarType type) {
  return type == at::kFloat || type == at::kHalf || type == at::kBFloat16;
}

furl::dtype dtype_of(const Tensor& x) {
  TORCH_CHECK(is_foldable(x.scalar_type()), "furl: dtype must be float32, float16 or bfloat16");
  if (x.scalar_type() == at::kHalf) return furl::dtype::f16;
  return x.scalar_type() == at::kBFloat16 ? furl::dtype::bf16 : furl::dtype::f32;
}

furl::plan plan_of(const Tensor& x, const settings& how) {
  furl::codec codec;
  codec.bits = how.bits;
  if (x.dim() == 4 && how.window > 1) codec.window = {1, 1, how.window, how.window};
  return value_of(furl::plan::make(codec, {x.sizes().data(), static_cast<int>(x.dim())}));
}

/// Bytes of torch's allocator, aligned to 16 bytes.
Tensor new_blob(const furl::plan& p) {
  return at::empty({static_cast<std::int64_t>(p.size_bytes())}, at::kByte);
}
furl::bytes bytes_of(const Tensor& t) {
  return {t.data_ptr(), t.nbytes()};
}

/// What a tensor must be restored as.
struct likeness {
  std::vector<std::int64_t> sizes;
  at::TensorOptions options;

  explicit likeness(const Tensor& x) : sizes(x.sizes().vec()), options(x.options()) {}
  Tensor empty() const { return at::empty(sizes, options.requires_grad(false)); }
};

void count(shared_state& state, const Tensor& original, const Tensor& kept) {
  state.original_bytes += std::int64_t(original.nbytes());
  state.kept_bytes += std::int64_t(kept.nbytes());
}

/// Codes of a blob that stand for one small integer each.
class packed_codes {
 public:
  packed_codes() = default;
  packed_codes(const Tensor& codes, int bits)
      : plan_(value_of(furl::plan::make_codes(bits, {codes.numel()}))), blob_(new_blob(plan_)) {
    const Tensor flat = codes.to(at::kByte).contiguous();
    check(furl::host::pack(plan_, bytes_of(flat), bytes_of(blob_)));
  }
  Tensor unpack(at::IntArrayRef sizes) const {
    const Tensor codes = at::empty(sizes, at::kByte);
    check(furl::host::unpack(plan_, bytes_of(blob_), bytes_of(codes)));
    return codes;
  }
  const Tensor& blob() const { return blob_; }

 private:
  furl::plan plan_;
  Tensor blob_;
};

class folded : public torch::autograd::SavedVariableHooks {
 public:
  explicit folded(std::shared_ptr<shared_state> state) : state_(std::move(state)) {}

 protected:
  std::shared_ptr<shared_state> state_;
};

class folded_values : public folded {
 public:
  using folded::folded;
  void call_pack_hook(const Tensor& x) override {
    like_ = std::make_unique<likeness>(x);
    plan_ = plan_of(x, state_->how);
    blob_ = new_blob(plan_);
    const Tensor flat = x.contiguous();
    check(furl::host::compress(plan_, {flat.data_ptr(), dtype_of(x), x.numel()}, bytes_of(blob_),
                               {state_->how.seed, state_->num_folded++}));
    count(*state_, x, blob_);
  }
  Tensor call_unpack_hook() override {
    Tensor y = like_->empty();
    check(furl::host::decompress(plan_, bytes_of(blob_), {y.data_ptr(), dtype_of(y), y.numel()}));
    return y;
  }

 private:
  std::unique_ptr<likeness> like_;
  furl::plan plan_;
  Tensor blob_;
};

class folded_signs : public folded {
 public:
  using folded::folded;
  void call_pack_hook(const Tensor& x) override {
    like_ = std::make_unique<likeness>(x);
    mask_ = packed_codes(x > 0, 1);
    count(*state_, x, mask_.blob());
  }
  Tensor call_unpack_hook() override {
    return mask_.unpack(like_->sizes).to(like_->options.dtype());
  }

 private:
  std::unique_ptr<likeness> like_;
  packed_codes mask_;
};

class folded_shape : public folded {
 public:
  using folded::folded;
  void call_pack_hook(const Tensor& x) override {
    like_ = std::make_unique<likeness>(x);
    state_->original_bytes += std::int64_t(x.nbytes());
  }
  Tensor call_unpack_hook() override { return like_->empty(); }

 private:
  std::unique_ptr<likeness> like_;
};

class folded_window_indices : public folded {
 public:
  folded_window_indices(std::shared_ptr<shared_state> state, std::int64_t rows,
                        std::int64_t columns, std::int64_t input_columns)
      : folded(std::move(state)), rows_(rows), columns_(columns), width_(input_columns) {}

  void call_pack_hook(const Tensor& index) override {
    sizes_ = index.sizes().vec();
    const Tensor row = index.div(width_, "floor");
    const Tensor place =
        row.remainder(rows_) * columns_ + (index - row * width_).remainder(columns_);
    int bits = 1;
    while (1 << bits < rows_ * columns_) ++bits;
    places_ = packed_codes(place, bits);
    count(*state_, index, places_.blob());
  }
  Tensor call_unpack_hook() override {
    const Tensor place = places_.unpack(sizes_).to(at::kLong);
    const Tensor out_row = at::arange(sizes_[sizes_.size() - 2]).unsqueeze(1);
    const Tensor out_column = at::arange(sizes_.back());
    const Tensor row = out_row * rows_ + place.div(columns_, "floor");
    return row * width_ + out_column * columns_ + place.remainder(columns_);
  }

 private:
  std::int64_t rows_, columns_, width_;
  std::vector<std::int64_t> sizes_;
  packed_codes places_;
};

bool is_parameter(const Tensor& x) {
  const Tensor owner = x.is_view() ? Tensor(x._base()) : x;
  return owner.is_leaf() && owner.requires_grad();
}

std::string maker_of(const Tensor& x) {
  const auto node = x.grad_fn();
  return node ? node->name() : std::string();
}

class folded_if_possible : public folded {
 public:
  using folded::folded;
  void call_pack_hook(const Tensor& x) override {
    const std::string maker = maker_of(x);
    if (!is_foldable(x.scalar_type()) || x.numel() < least_elements || is_parameter(x) ||
        maker == "LogSoftmaxBackward0") {
      // Not the tensor itself: a node that holds its own result would never be freed.
      kept_ = x.detach();
      version_ = x._version();
      if (!is_parameter(x)) count(*state_, x, x);
      return;
    }
    values_ = fold_values(state_);
    values_->call_pack_hook(x);
    if (maker == "ReluBackward0") {
      signs_ = packed_codes(x > 0, 1);
      state_->kept_bytes += std::int64_t(signs_.blob().nbytes());
    }
  }
  Tensor call_unpack_hook() override {
    if (!values_) {
      // Where there are hooks, torch leaves this check to them.
      TORCH_CHECK(kept_._version() == version_,
                  "a tensor needed for the gradient has been modified ",
                  "by an inplace operation: it is at version ", kept_._version(),
                  ", but was saved at version ", version_);
      return kept_;
    }
    const Tensor y = values_->call_unpack_hook();
    if (!signs_.blob().defined()) return y;
    const Tensor sign = signs_.unpack(y.sizes());
    return y.clamp_min(std::numeric_limits<float>::min()).mul_(sign);
  }

 private:
  Tensor kept_;
  std::int64_t version_ = 0;
  hooks_pointer values_;
  packed_codes signs_;
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
