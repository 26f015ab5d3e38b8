// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A handle that owns one folded activation in device memory: what a saved-tensor hook keeps between
// the forward and the backward pass.

#include "furl/codebook.cuh"
#include "furl/codebook.hpp"
#include "furl/codes.cuh"
#include "furl/compress.cuh"
#include "furl/config.hpp"
#include "furl/decompress.cuh"
#include "furl/kernel/launch.cuh"
#include "furl/options.cuh"
#include "furl/plan.hpp"
#include "furl/plan_bytes.hpp"
#include "furl/status.hpp"
#include "furl/view.hpp"

#if !defined(__CUDACC_RTC__)

#include <cstring>
#include <utility>

namespace furl {
inline namespace v0_1 {

/// Where a stash gets its bytes, so that a framework's allocator can own them. allocate returns
/// memory of the stream's device, aligned to 16 bytes and usable by work that follows on the
/// stream, or null if there is none; deallocate gets what allocate got, and may hand the bytes out
/// again to work that follows on the stream. Neither throws. The default is CUDA's stream-ordered
/// allocator.
struct allocator {
  /// Called with `context`.
  void* (*allocate)(void* context, u64 size_bytes, cudaStream_t stream) = [](void*, u64 size,
                                                                             cudaStream_t stream) {
    const kernel::stream_scope scope(stream);
    void* pointer = nullptr;
    const bool made =
        scope.error() == cudaSuccess && cudaMallocAsync(&pointer, size, stream) == cudaSuccess;
    return made ? pointer : nullptr;
  };
  /// Likewise.
  void (*deallocate)(void* context, void* pointer, u64 size_bytes,
                     cudaStream_t stream) = [](void*, void* pointer, u64, cudaStream_t stream) {
    const kernel::stream_scope scope(stream);
    (void)cudaFreeAsync(pointer, stream);
  };
  void* context = nullptr;  // the caller's
};

/// Move-only owner of a blob and the plan it was made with. It can be restored any number of times,
/// from any thread and on any stream of its device, several at once. The stream that it was made on
/// must outlive it. Work on other streams waits for that one first, and ends before the stash does:
/// ordering streams is the caller's, as with any memory.
class stash {
 public:
  stash() = default;  // of an empty tensor

  /// Compresses x into memory of the allocator. As furl::compress.
  template <class Architectures = kernel::architectures>
  FURL_HIDDEN static result<stash> compress(const furl::plan& p, const_values x, random_key key,
                                            cudaStream_t stream, const options& o = {},
                                            const allocator& memory = {}) {
    return fill(p, stream, memory, [&](bytes blob) {
      return furl::compress<Architectures>(p, x, blob, key, stream, o);
    });
  }

  /// Packs codes into memory of the allocator. As furl::pack.
  template <class Architectures = kernel::architectures>
  FURL_HIDDEN static result<stash> pack(const furl::plan& p, const_bytes codes, cudaStream_t stream,
                                        const allocator& memory = {}) {
    return fill(p, stream, memory,
                [&](bytes blob) { return furl::pack<Architectures>(p, codes, blob, stream); });
  }

  /// Packs values by a codebook into memory of the allocator. As furl::pack. What takes the
  /// codebook again, unpack and unpack_multiply, is called with plan() and blob().
  template <class Architectures = kernel::architectures>
  FURL_HIDDEN static result<stash> pack(const furl::plan& p, const_values x, const codebook& book,
                                        random_key key, cudaStream_t stream, const options& o = {},
                                        const allocator& memory = {}) {
    return fill(p, stream, memory, [&](bytes blob) {
      return furl::pack<Architectures>(p, x, book, blob, key, stream, o);
    });
  }

  /// A stash from the block that copy_to_host wrote.
  /// block : host; pinned memory is copied asynchronously and must stay until that is done.
  FURL_HIDDEN static result<stash> from_host(const_bytes block, cudaStream_t stream,
                                             const allocator& memory = {}) {
    if (block.data == nullptr) return status{error::null_pointer, "block", 0, "must not be null"};
    if (block.size_bytes < sizeof(plan_bytes))
      return status{error::wrong_size, "block", i64(block.size_bytes), "is shorter than a plan"};
    plan_bytes header;
    std::memcpy(header.data, block.data, sizeof header);
    const result<furl::plan> p = deserialize(header);
    if (!p) return p.status();
    if (block.size_bytes - sizeof header < p->size_bytes())
      return status{error::wrong_size, "block", i64(block.size_bytes), "lacks a part of the blob"};
    return fill(*p, stream, memory, [&](bytes blob) {
      return copy(blob.data, static_cast<const u8*>(block.data) + sizeof header, blob.size_bytes,
                  cudaMemcpyHostToDevice, stream);
    });
  }

  /// Leaves `other` empty.
  stash(stash&& other) noexcept
      : plan_(std::exchange(other.plan_, {})),
        memory_(other.memory_),
        stream_(other.stream_),
        blob_(std::exchange(other.blob_, nullptr)) {}
  stash& operator=(stash&& other) noexcept {
    std::swap(plan_, other.plan_);
    std::swap(memory_, other.memory_);
    std::swap(stream_, other.stream_);
    std::swap(blob_, other.blob_);
    return *this;
  }
  ~stash() {
    if (blob_ != nullptr) memory_.deallocate(memory_.context, blob_, plan_.size_bytes(), stream_);
  }

  /// As furl::decompress. A mixed plan needs its widths again.
  template <class Architectures = kernel::architectures>
  FURL_HIDDEN status restore(values y, cudaStream_t stream, const options& o = {}) const {
    return furl::decompress<Architectures>(plan_, blob(), y, stream, o);
  }
  /// As furl::decompress_add, likewise.
  template <class Architectures = kernel::architectures>
  FURL_HIDDEN status restore_add(values y, cudaStream_t stream, const options& o = {}) const {
    return furl::decompress_add<Architectures>(plan_, blob(), y, stream, o);
  }
  /// As furl::unpack.
  template <class Architectures = kernel::architectures>
  FURL_HIDDEN status unpack(bytes codes, cudaStream_t stream) const {
    return furl::unpack<Architectures>(plan_, blob(), codes, stream);
  }

  /// Bytes of the whole stash as one block: the serialised plan, then the blob.
  u64 block_bytes() const { return sizeof(plan_bytes) + plan_.size_bytes(); }

  /// Writes the stash as one block.
  /// block : host, block_bytes() bytes or more; complete when the stream's work is done.
  FURL_HIDDEN status copy_to_host(bytes block, cudaStream_t stream) const {
    if (block.size_bytes < block_bytes())
      return {error::wrong_size, "block", i64(block.size_bytes), "must have block_bytes() bytes"};
    if (block.data == nullptr) return {error::null_pointer, "block", 0, "must not be null"};
    const plan_bytes header = serialize(plan_);
    std::memcpy(block.data, header.data, sizeof header);
    return copy(static_cast<u8*>(block.data) + sizeof header, blob_, plan_.size_bytes(),
                cudaMemcpyDeviceToHost, stream);
  }

  const furl::plan& plan() const { return plan_; }                  // of the blob
  const_bytes blob() const { return {blob_, plan_.size_bytes()}; }  // device

 private:
  template <class Function>
  FURL_HIDDEN static result<stash> fill(const furl::plan& p, cudaStream_t stream,
                                        const allocator& memory, const Function& function) {
    stash made;
    made.memory_ = memory;
    made.stream_ = stream;
    made.plan_ = p;
    if (p.size_bytes() > 0) {
      made.blob_ = memory.allocate(memory.context, p.size_bytes(), stream);
      if (made.blob_ == nullptr)
        return status{error::out_of_memory, "memory", 0, "the allocator returned null"};
    }
    if (const status s = function(bytes{made.blob_, p.size_bytes()}); !s) return s;
    return made;
  }

  FURL_HIDDEN static status copy(void* to, const void* from, u64 size, cudaMemcpyKind kind,
                                 cudaStream_t stream) {
    if (size == 0) return {};
    const kernel::stream_scope scope(stream);
    if (const status s = kernel::cuda_status(scope.error(), "stream"); !s) return s;
    return kernel::cuda_status(cudaMemcpyAsync(to, from, size, kind, stream), "stream");
  }

  furl::plan plan_{};
  allocator memory_{};
  cudaStream_t stream_ = nullptr;
  void* blob_ = nullptr;
};

}  // namespace v0_1
}  // namespace furl

#endif
