// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// FOR CALLERS. A compressed tensor in host memory that owns its bytes. Part of compress.hpp.

#include <cstddef>
#include <new>
#include <utility>

#include "furl/compress.hpp"
#include "furl/config.hpp"
#include "furl/plan.hpp"
#include "furl/thread_pool.hpp"
#include "furl/types.hpp"

namespace furl::host {
inline namespace v0_2 {

/// Where a stash gets its memory from, so that a framework's allocator can own it. By default from
/// the aligned operator new. Neither function may throw.
struct allocator {
  /// Returns host memory of that size, at any alignment, or null if there is none. Called with
  /// `context`.
  void* (*allocate)(void* context, u64 size_bytes) = [](void*, u64 size) {
    return ::operator new (static_cast<::std::size_t>(size), ::std::align_val_t{64},
                           ::std::nothrow);
  };
  /// Takes back what allocate returned, with the same context and size.
  void (*deallocate)(void* context, void* pointer, u64 size_bytes) = [](void*, void* p, u64) {
    ::operator delete (p, ::std::align_val_t{64});
  };
  void* context = nullptr;  // the caller's, for both
};

/// Owns one compressed tensor in host memory, a blob and its plan: what a saved-tensor hook keeps
/// between the forward and the backward pass. It can be moved, not copied, and restored any number
/// of times, from any thread, several at once.
class stash {
 public:
  /// A stash of an empty tensor, which owns no memory.
  stash() = default;

  /// Compresses x into memory of the allocator. Arguments and errors are those of
  /// furl::host::compress, and error::out_of_memory if the allocator returns null.
  FURL_HIDDEN static result<stash> compress(const furl::plan& plan, const_values x, random_key key,
                                            const options& o = {}, const allocator& memory = {}) {
    result<stash> made = make(
        plan, [&](bytes blob) { return host::compress(plan, x, blob, key, o); }, memory);
    if (made) made->key_ = {key, true};
    return made;
  }

  /// Packs codes into memory of the allocator. Arguments and errors are those of furl::host::pack,
  /// and error::out_of_memory if the allocator returns null.
  FURL_HIDDEN static result<stash> pack(const furl::plan& plan, const_bytes codes,
                                        thread_pool* pool = nullptr, const allocator& memory = {}) {
    return make(
        plan, [&](bytes blob) { return host::pack(plan, codes, blob, pool); }, memory);
  }

  /// Lets write(blob) write plan.size_bytes() bytes into memory of the allocator, such as codes by
  /// a codebook or the mask of a ReLU, and owns them. write takes `bytes` and returns a status; if
  /// that is an error, so is the result. error::out_of_memory if the allocator returns null.
  template <class Write>
  FURL_HIDDEN static result<stash> make(const furl::plan& plan, const Write& write,
                                        const allocator& memory = {}) {
    stash made;
    made.memory_ = memory;
    if (plan.size_bytes() > 0) {
      made.blob_ = memory.allocate(memory.context, plan.size_bytes());
      if (made.blob_ == nullptr)
        return status{error::out_of_memory, "memory", 0, "the allocator returned null"};
    }
    made.plan_ = plan;
    if (const status s = write(bytes{made.blob_, plan.size_bytes()}); !s) return s;
    return made;
  }

  /// Leaves `other` a stash of an empty tensor.
  stash(stash&& other) noexcept
      : plan_(::std::exchange(other.plan_, {})),
        key_(other.key_),
        memory_(other.memory_),
        blob_(::std::exchange(other.blob_, nullptr)) {}
  /// The same; the memory that this one owned goes back at once. A move to itself changes nothing.
  stash& operator=(stash&& other) noexcept {
    stash taken(::std::move(other));
    release();
    plan_ = taken.plan_;
    key_ = taken.key_;
    memory_ = taken.memory_;
    blob_ = ::std::exchange(taken.blob_, nullptr);
    return *this;
  }
  ~stash() { release(); }

  /// Decompresses into y, as furl::host::decompress, with the key of `compress`. The rest of the
  /// options it does not remember: a mixed plan needs its tiles' bits again, and without the
  /// statistics of `compress` values stay normalised.
  FURL_HIDDEN status restore(values y, const options& o = {}) const {
    if (!key_.is_known) return host::decompress(plan_, blob(), y, o);
    return host::decompress(plan_, blob(), y, key_.value, o);
  }
  /// Adds the decompressed values to y, as furl::host::decompress_add, likewise.
  FURL_HIDDEN status restore_add(values y, const options& o = {}) const {
    if (!key_.is_known) return host::decompress_add(plan_, blob(), y, o);
    return host::decompress_add(plan_, blob(), y, key_.value, o);
  }
  /// @{
  /// The same with a key, for a stash of `make` whose plan needs one.
  FURL_HIDDEN status restore(values y, random_key key, const options& o = {}) const {
    return host::decompress(plan_, blob(), y, key, o);
  }
  FURL_HIDDEN status restore_add(values y, random_key key, const options& o = {}) const {
    return host::decompress_add(plan_, blob(), y, key, o);
  }
  /// @}
  /// Unpacks codes, as furl::host::unpack.
  FURL_HIDDEN status unpack(bytes codes, thread_pool* pool = nullptr) const {
    return host::unpack(plan_, blob(), codes, pool);
  }

  /// Of the blob; that of an empty tensor if there is none.
  const furl::plan& plan() const { return plan_; }
  /// The blob of plan().size_bytes() bytes, for as long as the stash owns it.
  const_bytes blob() const { return {blob_, plan_.size_bytes()}; }

 private:
  void release() noexcept {
    if (blob_ != nullptr) memory_.deallocate(memory_.context, blob_, plan_.size_bytes());
    blob_ = nullptr;
  }

  /// That of the call that wrote the blob.
  struct writing_key {
    random_key value;
    bool is_known = false;
  };

  furl::plan plan_{};
  writing_key key_{};
  allocator memory_{};
  void* blob_ = nullptr;
};

}  // namespace v0_2
}  // namespace furl::host
