// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Arrays of floats and bytes, shared by reference. An operation never writes to an array that it
// has returned, so the identity of an array is the identity of its contents.

#include <cstddef>
#include <memory>
#include <new>

#include "furl/config.hpp"

namespace trainer {

using furl::u64;
using furl::u8;
using index = std::ptrdiff_t;

/// Uninitialised array, shared by its copies. The alignment is fixed, because sums in vectorised
/// code may depend on it in their last bits, and a run must be repeatable.
template <class T>
class buffer {
 public:
  buffer() = default;
  explicit buffer(index size) : size_(size) {
    constexpr std::align_val_t alignment{64};
    void* const memory = ::operator new(static_cast<std::size_t>(size) * sizeof(T), alignment);
    data_ = std::shared_ptr<T[]>(static_cast<T*>(memory),
                                 [=](T* p) { ::operator delete(p, alignment); });
  }

  T* data() const { return data_.get(); }
  index size() const { return size_; }
  T* begin() const { return data(); }
  T* end() const { return data() + size_; }
  /// To be told apart from any other array, even one that reuses the address.
  const std::shared_ptr<T[]>& owner() const { return data_; }

 private:
  std::shared_ptr<T[]> data_;
  index size_ = 0;
};

using codes = buffer<u8>;  // masks, window indices, labels: a byte each

/// Samples, channels, rows and columns; the last vary fastest.
struct shape {
  index n = 0;
  index c = 1;
  index h = 1;
  index w = 1;

  index plane() const { return h * w; }
  index sample() const { return c * plane(); }
  index size() const { return n * sample(); }
};

struct tensor {
  trainer::shape shape;
  buffer<float> values;

  tensor() = default;
  explicit tensor(const trainer::shape& s) : shape(s), values(s.size()) {}

  float* sample(index i) const { return values.data() + i * shape.sample(); }
  float* plane(index i, index channel) const { return sample(i) + channel * shape.plane(); }
};

}  // namespace trainer
