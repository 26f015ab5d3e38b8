// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "furl/config.hpp"

namespace furl::test {

/// Bytes of an exact size between canaries, at a given distance from a 64-byte boundary. Filled
/// with 0xA5, so that a byte that nobody wrote shows too.
class guarded_buffer {
 public:
  static constexpr u8 canary = 0xA5;
  static constexpr std::size_t guard_bytes = 256;

  explicit guarded_buffer(u64 size, std::size_t misalignment = 0)
      : storage_(static_cast<std::size_t>(size) + 2 * guard_bytes + 64 + misalignment, canary),
        size_(static_cast<std::size_t>(size)) {
    const auto base = reinterpret_cast<std::uintptr_t>(storage_.data()) + guard_bytes;
    begin_ = guard_bytes + (64 - base % 64) % 64 + misalignment;
  }
  explicit guarded_buffer(const std::vector<u8>& content, std::size_t misalignment = 0)
      : guarded_buffer(content.size(), misalignment) {
    if (size_ != 0) std::memcpy(data(), content.data(), size_);
  }

  u8* data() { return storage_.data() + begin_; }
  const u8* data() const { return storage_.data() + begin_; }
  std::size_t size() const { return size_; }
  std::vector<u8> bytes() const { return {data(), data() + size_}; }

  /// Whether all bytes outside the buffer still have their canary.
  bool intact() const {
    for (std::size_t i = 0; i < storage_.size(); ++i)
      if ((i < begin_ || i >= begin_ + size_) && storage_[i] != canary) return false;
    return true;
  }

  guarded_buffer(const guarded_buffer&) = delete;
  guarded_buffer& operator=(const guarded_buffer&) = delete;

 private:
  std::vector<u8> storage_;
  std::size_t size_;
  std::size_t begin_;
};

}  // namespace furl::test
