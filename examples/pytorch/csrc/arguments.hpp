// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// From the arguments of operators to plans, with the checks that furl cannot make.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <numeric>
#include <vector>

#include "engines.hpp"

namespace furl_torch {

using at::IntArrayRef;
using at::Tensor;

inline void check(const furl::status& s) {
  TORCH_CHECK(s.ok(), "furl: ", furl::to_string(s));
}
template <class T>
T value_of(const furl::result<T>& r) {
  check(r.status());
  return *r;
}

/// Dimensions, outermost in memory first. Those of one element, whose strides say nothing, come
/// before all others.
inline std::vector<std::int64_t> memory_order(IntArrayRef sizes, IntArrayRef strides) {
  std::vector<std::int64_t> order(strides.size());
  std::iota(order.begin(), order.end(), 0);
  const auto many = std::stable_partition(
      order.begin(), order.end(), [&](std::int64_t d) { return sizes[std::size_t(d)] == 1; });
  std::stable_sort(many, order.end(), [&](std::int64_t a, std::int64_t b) {
    return strides[std::size_t(a)] > strides[std::size_t(b)];
  });
  return order;
}

/// x, or a copy of it without gaps whose dimensions lie in the same order.
inline Tensor dense(const Tensor& x) {
  if (x.is_non_overlapping_and_dense()) return x;
  const std::vector<std::int64_t> order = memory_order(x.sizes(), x.strides());
  std::vector<std::int64_t> back(order.size());
  for (std::size_t d = 0; d < order.size(); ++d) back[std::size_t(order[d])] = std::int64_t(d);
  return x.permute(order).contiguous().permute(back);
}

/// The arguments that say how values are compressed.
struct settings {
  std::int64_t bits;
  IntArrayRef window;
  std::int64_t group;  // 0: rotated codes; -1: those of positives, without a window
};

/// Whether no dimension that is not pooled lies between those that are.
inline bool is_side_by_side(const furl::extents& window) {
  int changes = 0;
  for (int d = 0; d < window.rank && d < furl::max_rank; ++d)
    changes += (window[d] > 1) != (d > 0 && window[d - 1] > 1);
  return changes <= 2;
}

/// A window over dimensions that do not lie side by side in memory is left out: heads of attention,
/// for example, which are transposed views.
inline furl::plan value_plan(IntArrayRef sizes, IntArrayRef strides, const settings& how) {
  TORCH_CHECK(sizes.size() == strides.size(), "furl: size and stride must have the same length");
  TORCH_CHECK(how.window.empty() || how.window.size() == sizes.size(), "furl: window has ",
              how.window.size(), " widths: must have one for each of the ", sizes.size(),
              " dimensions");
  furl::codec codec;
  codec.bits = int(std::clamp<std::int64_t>(how.bits, -1, furl::max_bits + 1));
  if (how.group == 0) {
    codec.coding = furl::coding::rotated;
  } else if (how.group == -1) {
    codec.coding = furl::coding::positives;
  } else {
    codec.group = int(std::clamp<std::int64_t>(how.group, -2, 1 << 20));
  }
  furl::extents shape;
  if (sizes.size() > std::size_t(furl::max_rank) && how.window.empty()) {  // one long row
    shape = {std::accumulate(sizes.begin(), sizes.end(), std::int64_t(1), std::multiplies<>())};
  } else {
    shape.rank = int(sizes.size());
    codec.window.rank = int(how.window.size());
    const std::vector<std::int64_t> order = memory_order(sizes, strides);
    for (std::size_t d = 0; d < order.size() && d < std::size_t(furl::max_rank); ++d) {
      shape.size[d] = sizes[std::size_t(order[d])];
      if (how.window.empty()) continue;
      const std::int64_t width = how.window[std::size_t(order[d])];
      const bool is_one = shape.size[d] == 1 && width >= 1 && width <= furl::max_window;
      codec.window.size[d] = is_one ? 1 : width;  // nothing to pool there
    }
    if (!is_side_by_side(codec.window)) codec.window = {};
  }
  return value_of(furl::plan::make(codec, shape));
}

inline furl::plan code_plan(std::int64_t num_elements, std::int64_t bits) {
  return value_of(
      furl::plan::make_codes(int(std::clamp<std::int64_t>(bits, -1, 9)), {num_elements}));
}

/// Of a plan's blob, with the key behind it.
inline std::int64_t num_bytes(const furl::plan& p) {
  return std::int64_t(p.size_bytes() + (p.needs_key() ? sizeof(furl::random_key) : 0));
}

inline Tensor new_blob(const furl::plan& p, const Tensor& like) {
  return at::empty({num_bytes(p)}, like.options().dtype(at::kByte));
}

/// Codes or values must lie where the blob lies, and the blob must be one of this plan.
inline void check_blob(const furl::plan& p, const Tensor& blob, const Tensor& other) {
  TORCH_CHECK_TYPE(blob.scalar_type() == at::kByte, "furl: the blob's dtype is ",
                   blob.scalar_type(), ": must be uint8");
  TORCH_CHECK(blob.dim() == 1 && blob.is_contiguous(), "furl: the blob must be one contiguous row");
  TORCH_CHECK(blob.device() == other.device(), "furl: the blob is on ", blob.device(),
              ", the tensor on ", other.device());
  TORCH_CHECK(blob.numel() == num_bytes(p), "furl: the blob has ", blob.numel(),
              " bytes, and this shape and codec need ", num_bytes(p),
              ": it was made with other settings");
}

inline Tensor new_tensor(const Tensor& blob, IntArrayRef sizes, IntArrayRef strides,
                         at::ScalarType type) {
  const Tensor made = at::empty_strided(sizes, strides, blob.options().dtype(type));
  TORCH_CHECK(made.is_non_overlapping_and_dense(), "furl: stride leaves gaps or overlaps");
  return made;
}

/// Of graph_pack: the seed, and the offset that the next call takes.
struct noise_state {
  std::atomic<std::int64_t> seed{0};
  std::atomic<std::int64_t> offset{0};
};

inline noise_state& noise() {
  static noise_state state;
  return state;
}

inline void set_next_key(std::int64_t seed, std::int64_t offset) {
  noise().seed = seed;
  noise().offset = offset;
}

inline furl::random_key key_of(std::int64_t seed, std::int64_t offset) {
  return {furl::u64(seed), furl::u64(offset)};
}

}  // namespace furl_torch
