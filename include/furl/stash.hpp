// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A handle that owns one folded activation in host memory: what a saved-tensor hook keeps between
// the forward and the backward pass.

#include <new>
#include <utility>

#include "furl/codebook.hpp"
#include "furl/config.hpp"
#include "furl/host/codebook.hpp"
#include "furl/host/codes.hpp"
#include "furl/host/compress.hpp"
#include "furl/host/decompress.hpp"
#include "furl/plan.hpp"
#include "furl/status.hpp"
#include "furl/view.hpp"

namespace furl::host {
inline namespace v0_1 {

/// Where a stash gets its bytes, so that a framework's allocator can own them. allocate returns
/// memory aligned to 16 bytes, or null if there is none; neither function throws.
struct allocator {
  /// Called with `context`.
  void* (*allocate)(void* context, u64 size_bytes) = [](void*, u64 size) {
    return ::operator new (static_cast<std::size_t>(size), std::align_val_t{64}, std::nothrow);
  };
  /// Likewise.
  void (*deallocate)(void* context, void* pointer, u64 size_bytes) = [](void*, void* p, u64) {
    ::operator delete (p, std::align_val_t{64});
  };
  void* context = nullptr;  // the caller's
};

/// Move-only owner of a blob and the plan it was made with. It can be restored any number of times,
/// from any thread, several at once.
class stash {
 public:
  stash() = default;  // of an empty tensor

  /// Compresses x into memory of the allocator. As furl::host::compress.
  FURL_HIDDEN static result<stash> compress(const plan& p, const_values x, random_key key,
                                            const options& o = {}, const allocator& memory = {}) {
    return fill(p, memory, [&](bytes blob) { return host::compress(p, x, blob, key, o); });
  }

  /// Packs codes into memory of the allocator. As furl::host::pack.
  FURL_HIDDEN static result<stash> pack(const plan& p, const_bytes codes,
                                        thread_pool* pool = nullptr, const allocator& memory = {}) {
    return fill(p, memory, [&](bytes blob) { return host::pack(p, codes, blob, pool); });
  }

  /// Packs values by a codebook into memory of the allocator. As furl::host::pack. What takes the
  /// codebook again, unpack and unpack_multiply, is called with plan() and blob().
  FURL_HIDDEN static result<stash> pack(const furl::plan& p, const_values x, const codebook& book,
                                        random_key key, thread_pool* pool = nullptr,
                                        const allocator& memory = {}) {
    return fill(p, memory, [&](bytes blob) { return host::pack(p, x, book, blob, key, pool); });
  }

  /// Leaves `other` empty.
  stash(stash&& other) noexcept
      : plan_(std::exchange(other.plan_, {})),
        memory_(other.memory_),
        blob_(std::exchange(other.blob_, nullptr)) {}
  stash& operator=(stash&& other) noexcept {
    std::swap(plan_, other.plan_);
    std::swap(memory_, other.memory_);
    std::swap(blob_, other.blob_);
    return *this;
  }
  ~stash() {
    if (blob_ != nullptr) memory_.deallocate(memory_.context, blob_, plan_.size_bytes());
  }

  /// As furl::host::decompress. A mixed plan needs its widths again.
  FURL_HIDDEN status restore(values y, const options& o = {}) const {
    return host::decompress(plan_, blob(), y, o);
  }
  /// As furl::host::decompress_add, likewise.
  FURL_HIDDEN status restore_add(values y, const options& o = {}) const {
    return host::decompress_add(plan_, blob(), y, o);
  }
  /// As furl::host::unpack.
  FURL_HIDDEN status unpack(bytes codes, thread_pool* pool = nullptr) const {
    return host::unpack(plan_, blob(), codes, pool);
  }

  const furl::plan& plan() const { return plan_; }                  // of the blob
  const_bytes blob() const { return {blob_, plan_.size_bytes()}; }  // of the plan's size

 private:
  template <class Function>
  FURL_HIDDEN static result<stash> fill(const furl::plan& p, const allocator& memory,
                                        const Function& function) {
    stash made;
    made.memory_ = memory;
    if (p.size_bytes() > 0) {
      made.blob_ = memory.allocate(memory.context, p.size_bytes());
      if (made.blob_ == nullptr)
        return status{error::out_of_memory, "memory", 0, "the allocator returned null"};
    }
    made.plan_ = p;
    if (const status s = function(bytes{made.blob_, p.size_bytes()}); !s) return s;
    return made;
  }

  furl::plan plan_{};
  allocator memory_{};
  void* blob_ = nullptr;
};

}  // namespace v0_1
}  // namespace furl::host
