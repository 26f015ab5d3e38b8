// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

#include "inspect.hpp"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "ops.hpp"

namespace furl_torch {
namespace {

using weak_tensor = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;

/// Numbers for elements in memory. An entry holds its tensor weakly: the address of the tensor
/// cannot be used again while the entry is there, and the memory of its elements is free.
class memory_book {
 public:
  std::int64_t number_of(const at::Tensor& x) {
    const at::Tensor owner = x.is_view() ? at::Tensor(x._base()) : x;
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto [begin, end] = entries_.equal_range(owner.unsafeGetTensorImpl());
    const region place(x);
    for (auto it = begin; it != end; ++it)
      if (it->second.place == place) return it->second.number;
    if (entries_.size() >= limit_) forget_dead();
    entries_.emplace(owner.unsafeGetTensorImpl(),
                     entry{weak_tensor(owner.getIntrusivePtr()), place, ++last_});
    return last_;
  }

 private:
  /// Of a tensor's storage, and what was written there.
  struct region {
    std::vector<std::int64_t> sizes, strides;  // none for all elements from the offset on
    const c10::StorageImpl* storage;           // `data` may have been given another
    std::int64_t offset, num_elements, version;
    at::ScalarType type;

    explicit region(const at::Tensor& x)
        : storage(x.storage().unsafeGetStorageImpl()),
          offset(x.storage_offset()),
          num_elements(x.numel()),
          version(std::int64_t(x._version())),
          type(x.scalar_type()) {
      if (x.is_non_overlapping_and_dense()) return;
      sizes = x.sizes().vec();
      strides = x.strides().vec();
    }
    bool operator==(const region& other) const {
      return storage == other.storage && offset == other.offset &&
             num_elements == other.num_elements && version == other.version && type == other.type &&
             sizes == other.sizes && strides == other.strides;
    }
  };
  struct entry {
    weak_tensor owner;
    region place;
    std::int64_t number;
  };

  void forget_dead() {
    for (auto it = entries_.begin(); it != entries_.end();)
      it = it->second.owner.expired() ? entries_.erase(it) : std::next(it);
    limit_ = entries_.size() + std::max(few_dead, entries_.size() / 4);
  }

  std::mutex mutex_;
  std::unordered_multimap<const c10::TensorImpl*, entry> entries_;
  // An entry keeps 300 bytes of a dead tensor allocated.
  static constexpr std::size_t few_dead = 16;
  std::size_t limit_ = few_dead;
  std::int64_t last_ = 0;
};

bool begins_with_any(std::string_view name, std::initializer_list<std::string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view p) { return name.substr(0, p.size()) == p; });
}

/// A node's name as its operator's: without "Backward0".
std::string operator_name(const torch::autograd::Node& node) {
  const std::string name = node.name();
  return name.substr(0, name.find("Backward"));
}

/// Whether the elements of an operator's output are those of its input.
bool only_moves(const std::string& name) {
  static const std::unordered_set<std::string> movers{
      "Alias",   "AsStrided",    "Clone",  "Copy",        "Expand",     "MT",        "Permute",
      "Reshape", "ReshapeAlias", "Select", "Slice",       "Split",      "Squeeze",   "T",
      "ToCopy",  "Transpose",    "Unbind", "UnsafeSplit", "UnsafeView", "Unsqueeze", "View"};
  return movers.count(name) > 0;
}

/// The node that computed the elements, which others may have moved since; and which of its
/// outputs they are.
action action_by_origin(const at::Tensor& x) {
  auto node = x.grad_fn();
  std::int64_t output = std::int64_t(x.output_nr());
  constexpr int most_moves = 16;
  for (int i = 0; i < most_moves && node; ++i) {
    const std::string name = operator_name(*node);
    if (name == "torch::autograd::AccumulateGrad") return action::parameter;
    if (name == "LogSoftmax") return action::logarithms;
    if (begins_with_any(name, {"Logsumexp", "Logcumsumexp"})) return action::keep;
    if (output > 0 &&
        (name.find("Norm") != std::string::npos || name.find("Attention") != std::string::npos))
      return action::keep;  // statistics of norms, log-sums of attention
    if (name == "Relu") return action::positives;
    if (name == "Softmax" || name == "Sigmoid") return action::bounded;
    if (name == "Tanh") return action::signed_bounded;
    if (!only_moves(name) || node->num_outputs() < 1) return action::values;
    const torch::autograd::Edge& edge = node->next_edge(0);
    output = edge.input_nr;
    node = edge.function;
  }
  return action::values;
}

/// Whether x has memory of its own, of the usual kind, or is a meta tensor, which stands for one.
/// Nested tensors say that they are strided and have no strides; subclasses that wrap others, and
/// the tensors of torch.func, have no memory.
bool has_elements(const at::Tensor& x) {
  if (x.layout() != at::kStrided || x.is_nested() || x.is_quantized()) return false;
  if (x.key_set().has(c10::DispatchKey::Python) || !x.has_storage()) return false;
  if (x.device().type() == at::kMeta) return true;
  if (x.device().type() != at::kCPU && x.device().type() != at::kCUDA) return false;
  return x.numel() == 0 || x.storage().data() != nullptr;
}

bool repeats_elements(const at::Tensor& x) {
  for (std::int64_t d = 0; d < x.dim(); ++d)
    if (x.stride(d) == 0 && x.size(d) > 1) return true;
  return x.storage().nbytes() < std::size_t(x.numel()) * x.element_size();
}

action keep_or_copy(const at::Tensor& x) {
  constexpr std::size_t worth_a_copy = 4;
  const std::size_t own = std::size_t(x.numel()) * x.element_size();
  return x.storage().nbytes() > worth_a_copy * (own + 64) && x.is_view() ? action::copy
                                                                         : action::keep;
}

action action_for(const at::Tensor& x, std::int64_t min_elements) {
  if (!has_elements(x)) return action::keep;
  const at::Tensor owner = x.is_view() ? at::Tensor(x._base()) : x;
  if (owner.is_leaf() && owner.requires_grad()) return action::parameter;
  const at::ScalarType type = x.scalar_type();
  const bool is_value = type == at::kFloat || type == at::kHalf || type == at::kBFloat16;
  if (repeats_elements(x)) return action::keep;
  if (x.numel() < min_elements || !(is_value || type == at::kBool)) {
    return is_value && action_by_origin(x) == action::parameter ? action::parameter
                                                                : keep_or_copy(x);
  }
  if (type == at::kBool) return action::mask;
  if (!x.requires_grad()) return action::constant;
  const action found = action_by_origin(x);
  return found == action::keep ? keep_or_copy(x) : found;
}

/// The one bit pattern other than 0 among the elements, if 0 is among them too; else 0. Of
/// patterns, -0 is not 0, and a NaN is itself.
template <class T>
T second_pattern(const at::Tensor& x) {
  const T* const data = static_cast<const T*>(x.data_ptr());
  const T* const end = data + x.numel();
  const T* const found = std::find_if(data, end, [](T v) { return v != 0; });
  if (found == end) return 0;
  const T level = *found;
  bool has_zero = found != data;
  for (const T* v = found; v != end; ++v) {
    if (*v == 0) {
      has_zero = true;
    } else if (*v != level) {
      return 0;
    }
  }
  return has_zero ? level : T(0);
}

float second_value(const at::Tensor& x) {
  if (x.scalar_type() == at::kHalf)
    return c10::Half(second_pattern<std::uint16_t>(x), c10::Half::from_bits());
  if (x.scalar_type() == at::kBFloat16)
    return c10::BFloat16(second_pattern<std::uint16_t>(x), c10::BFloat16::from_bits());
  const auto pattern = second_pattern<std::uint32_t>(x);
  float value;
  std::memcpy(&value, &pattern, sizeof value);
  return value;
}

}  // namespace

std::tuple<std::int64_t, std::int64_t> inspect(const at::Tensor& x, std::int64_t min_elements) {
  static memory_book& book = *new memory_book;  // hooks may run until the process ends
  const action found = action_for(x, min_elements);
  const bool has_number = found != action::parameter && has_elements(x);
  return {std::int64_t(found), has_number ? book.number_of(x) : 0};
}

std::tuple<at::Tensor, double> pack_two_values(const at::Tensor& x) {
  const at::Tensor none = at::empty({0}, x.options().dtype(at::kByte));
  if (x.device().type() != at::kCPU || !x.is_non_overlapping_and_dense()) return {none, 0.0};
  dtype_of(x.scalar_type());
  const float level = second_value(x);
  if (!(level > 0) || !std::isfinite(level)) return {none, 0.0};
  return {ops<host_engine>::pack_positive(x), double(level)};
}

std::vector<at::Tensor> cast_parameter(const at::Tensor& x) {
  auto node = x.grad_fn();
  constexpr int most_moves = 4;
  for (int i = 0; i < most_moves && node; ++i) {
    if (auto* leaf = dynamic_cast<torch::autograd::AccumulateGrad*>(node.get())) {
      const at::Tensor& parameter = leaf->variable;
      const bool is_copy = parameter.scalar_type() != x.scalar_type() &&
                           parameter.numel() == x.numel() &&
                           parameter.is_non_overlapping_and_dense() &&
                           x.is_non_overlapping_and_dense() && x.storage_offset() == 0;
      return is_copy ? std::vector<at::Tensor>{parameter} : std::vector<at::Tensor>{};
    }
    const std::string name = operator_name(*node);
    if ((name != "ToCopy" && name != "T" && name != "Transpose") || node->num_outputs() < 1) break;
    node = node->next_edge(0).function;
  }
  return {};
}

std::int64_t hash_elements(const at::Tensor& x) {
  if (x.device().type() != at::kCPU || !x.is_non_overlapping_and_dense()) return 0;
  const auto* bytes = static_cast<const char*>(x.data_ptr());
  const std::size_t size = std::size_t(x.numel()) * x.element_size();
  constexpr std::uint64_t odd = 0x9e3779b97f4a7c15;
  std::uint64_t lanes[4] = {1, 2, 3, 4}, word = 0;
  std::size_t i = 0;
  for (; i + sizeof lanes <= size; i += sizeof lanes) {
    for (std::uint64_t& lane : lanes) {
      std::memcpy(&word, bytes + i + sizeof word * std::size_t(&lane - lanes), sizeof word);
      lane = (lane ^ word) * odd;
      lane ^= lane >> 32;
    }
  }
  for (; i < size; ++i) lanes[0] = (lanes[0] ^ std::uint64_t(bytes[i])) * odd;
  return std::int64_t(((lanes[0] * odd + lanes[1]) * odd + lanes[2]) * odd + lanes[3]);
}

std::vector<std::int64_t> dense_stride(const at::Tensor& x) {
  if (x.is_non_overlapping_and_dense()) return x.strides().vec();
  return at::empty_like(x, x.options().device(at::kMeta)).strides().vec();
}

}  // namespace furl_torch
