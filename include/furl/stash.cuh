// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// FOR CALLERS. A compressed tensor in device memory that owns its bytes. Part of compress.cuh.

#include "furl/compress.cuh"
#include "furl/config.hpp"
#include "furl/detail/device/launch.cuh"
#include "furl/plan.hpp"
#include "furl/types.hpp"

#if !defined(__CUDACC_RTC__)
#include <cstring>
#include <utility>

namespace furl {
inline namespace v0_2 {

/// Where a stash gets its bytes, so that a framework's allocator can own them. allocate returns
/// memory of the stream's device, aligned to 16 bytes and usable by work that follows on the
/// stream, or null if there is none; deallocate gets what allocate got, and may hand the bytes out
/// again to work that follows on the stream. Neither throws. The default is CUDA's stream-ordered
/// allocator.
struct allocator {
  /// Called with `context`.
  void* (*allocate)(void* context, u64 size_bytes,
                    cudaStream_t stream) = [](void*, u64 size, cudaStream_t stream) -> void* {
    void* pointer = nullptr;
    if (cudaMallocAsync(&pointer, size_t(size), stream) == cudaSuccess) return pointer;
    (void)cudaGetLastError();
    return nullptr;
  };
  /// Likewise.
  void (*deallocate)(void* context, void* pointer, u64 size_bytes,
                     cudaStream_t stream) = [](void*, void* pointer, u64, cudaStream_t stream) {
    if (cudaFreeAsync(pointer, stream) != cudaSuccess) (void)cudaGetLastError();
  };
  void* context = nullptr;  // the caller's
};

/// Move-only owner of a blob and the plan it was made with. It can be restored any number of times,
/// from any thread and on any stream of its device, several at once. The stream that it was made on
/// must outlive it. Work on other streams must wait for that one first, and must end before the
/// stash is destroyed: ordering streams is up to the caller, as with any memory.
class stash {
 public:
  stash() = default;  // of an empty tensor

  /// Compresses x into memory of the allocator. As furl::compress.
  template <class Architectures = kernel::architectures>
  FURL_HIDDEN static result<stash> compress(const furl::plan& p, const_values x, random_key key,
                                            cudaStream_t stream, const options& o = {},
                                            const allocator& memory = {}) {
    const auto write = [&](bytes blob) {
      return furl::compress<Architectures>(p, x, blob, key, stream, o);
    };
    result<stash> made = make(p, write, stream, memory);
    if (made) made->key_ = {key, o.device_key == nullptr};
    return made;
  }

  /// Packs codes into memory of the allocator. As furl::pack.
  template <class Architectures = kernel::architectures>
  FURL_HIDDEN static result<stash> pack(const furl::plan& p, const_bytes codes, cudaStream_t stream,
                                        const allocator& memory = {}) {
    const auto write = [&](bytes blob) {
      return furl::pack<Architectures>(p, codes, blob, stream);
    };
    return make(p, write, stream, memory);
  }

  /// Owns what write(blob) writes into memory of the allocator, such as codes by a codebook or the
  /// mask of a ReLU. write takes `bytes` of plan.size_bytes() and returns a status.
  template <class Write>
  FURL_HIDDEN static result<stash> make(const furl::plan& p, const Write& write,
                                        cudaStream_t stream, const allocator& memory = {}) {
    stash made;
    made.memory_ = memory;
    made.stream_ = stream;
    made.plan_ = p;
    if (p.size_bytes() > 0) {
      made.blob_ = memory.allocate(memory.context, p.size_bytes(), stream);
      if (made.blob_ == nullptr)
        return status{error::out_of_memory, "memory", 0, "the allocator returned null"};
    }
    if (const status s = write(bytes{made.blob_, p.size_bytes()}); !s) return s;
    return made;
  }

  /// A stash from the block that copy_to_host wrote.
  /// block : host; pinned memory is copied asynchronously and must stay until that is done.
  FURL_HIDDEN static result<stash> from_host(host::const_bytes block, cudaStream_t stream,
                                             const allocator& memory = {}) {
    if (block.data == nullptr) return status{error::null_pointer, "block", 0, "must not be null"};
    if (block.size_bytes < sizeof(plan_bytes))
      return status{error::wrong_size, "block", i64(block.size_bytes), "is shorter than a plan"};
    plan_bytes header;
    ::std::memcpy(header.data, block.data, sizeof header);
    const result<furl::plan> p = deserialize(header);
    if (!p) return p.status();
    if (block.size_bytes - sizeof header < p->size_bytes())
      return status{error::wrong_size, "block", i64(block.size_bytes), "lacks a part of the blob"};
    const auto write = [&](bytes blob) {
      return kernel::copy(blob.data, static_cast<const u8*>(block.data) + sizeof header,
                          blob.size_bytes, cudaMemcpyHostToDevice, stream);
    };
    return make(*p, write, stream, memory);
  }

  /// Leaves `other` empty.
  stash(stash&& other) noexcept
      : plan_(::std::exchange(other.plan_, {})),
        key_(other.key_),
        memory_(other.memory_),
        stream_(other.stream_),
        blob_(::std::exchange(other.blob_, nullptr)) {}
  /// Leaves `other` empty, and gives back what this one had.
  stash& operator=(stash&& other) noexcept {
    stash taken(::std::move(other));
    ::std::swap(plan_, taken.plan_);
    ::std::swap(key_, taken.key_);
    ::std::swap(memory_, taken.memory_);
    ::std::swap(stream_, taken.stream_);
    ::std::swap(blob_, taken.blob_);
    return *this;
  }
  ~stash() {
    if (blob_ != nullptr) memory_.deallocate(memory_.context, blob_, plan_.size_bytes(), stream_);
  }

  /// As furl::decompress, with the key of `compress`. The rest of the options it does not remember:
  /// a mixed plan needs its tile_bits and tile_index again; a plan that needs a key, compressed
  /// with a device_key, that again; and without the statistics of `compress` values stay
  /// normalised.
  template <class Architectures = kernel::architectures>
  FURL_HIDDEN status restore(values y, cudaStream_t stream, const options& o = {}) const {
    if (!has_key(o)) return furl::decompress<Architectures>(plan_, blob(), y, stream, o);
    return furl::decompress<Architectures>(plan_, blob(), y, key_.value, stream, o);
  }
  /// As furl::decompress_add, likewise.
  template <class Architectures = kernel::architectures>
  FURL_HIDDEN status restore_add(values y, cudaStream_t stream, const options& o = {}) const {
    if (!has_key(o)) return furl::decompress_add<Architectures>(plan_, blob(), y, stream, o);
    return furl::decompress_add<Architectures>(plan_, blob(), y, key_.value, stream, o);
  }
  /// @{
  /// The same with a key, for a stash of `make` or `from_host` whose plan needs one.
  template <class Architectures = kernel::architectures>
  FURL_HIDDEN status restore(values y, random_key key, cudaStream_t stream,
                             const options& o = {}) const {
    return furl::decompress<Architectures>(plan_, blob(), y, key, stream, o);
  }
  template <class Architectures = kernel::architectures>
  FURL_HIDDEN status restore_add(values y, random_key key, cudaStream_t stream,
                                 const options& o = {}) const {
    return furl::decompress_add<Architectures>(plan_, blob(), y, key, stream, o);
  }
  /// @}
  /// As furl::unpack.
  template <class Architectures = kernel::architectures>
  FURL_HIDDEN status unpack(bytes codes, cudaStream_t stream) const {
    return furl::unpack<Architectures>(plan_, blob(), codes, stream);
  }

  /// Bytes of the whole stash as one block: the serialised plan, then the blob.
  u64 block_bytes() const { return sizeof(plan_bytes) + plan_.size_bytes(); }

  /// Writes the stash as one block.
  /// block : host, block_bytes() bytes or more; complete when the stream's work is done.
  FURL_HIDDEN status copy_to_host(host::bytes block, cudaStream_t stream) const {
    if (block.size_bytes < block_bytes())
      return {error::wrong_size, "block", i64(block.size_bytes), "must have block_bytes() bytes"};
    if (block.data == nullptr) return {error::null_pointer, "block", 0, "must not be null"};
    const plan_bytes header = serialize(plan_);
    ::std::memcpy(block.data, header.data, sizeof header);
    return kernel::copy(static_cast<u8*>(block.data) + sizeof header, blob_, plan_.size_bytes(),
                        cudaMemcpyDeviceToHost, stream);
  }

  const furl::plan& plan() const { return plan_; }                  // of the blob
  const_bytes blob() const { return {blob_, plan_.size_bytes()}; }  // device

 private:
  /// That of the call that wrote the blob.
  struct writing_key {
    random_key value;
    bool is_known = false;
  };

  bool has_key(const options& o) const { return key_.is_known || o.device_key != nullptr; }

  furl::plan plan_{};
  writing_key key_{};
  allocator memory_{};
  cudaStream_t stream_ = nullptr;
  void* blob_ = nullptr;
};

}  // namespace v0_2
}  // namespace furl

#endif
