// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <string>

#include "failure.hpp"
#include "furl/config.hpp"

namespace furl::cli {

/// Bytes at a 64-byte boundary, not initialised: what a blob needs. If they cannot be had the
/// program ends with a line that says how many were wanted.
class buffer {
 public:
  buffer() = default;
  explicit buffer(u64 size)
      : bytes_(static_cast<u8*>(
            ::operator new(static_cast<std::size_t>(size), alignment, std::nothrow))),
        size_(size) {
    if (bytes_ == nullptr)
      throw failure(exit_status::failed,
                    "not enough memory for " + std::to_string(size) + " bytes");
  }

  u8* data() { return bytes_.get(); }
  const u8* data() const { return bytes_.get(); }
  u64 size() const { return size_; }

 private:
  static constexpr std::align_val_t alignment{64};
  struct release {
    void operator()(u8* bytes) const { ::operator delete(bytes, alignment); }
  };

  std::unique_ptr<u8, release> bytes_;
  u64 size_ = 0;
};

}  // namespace furl::cli
