// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Compression in device memory, for callers: start here. detail/device/kernels.cuh has what is
// launched. compress.hpp has the same calls for host memory, and documents each in full.
//
// All calls work on the stream that they are given, which may be one that is being captured, and
// wait for nothing. Only a stash allocates memory, from its allocator. Arguments are checked before
// the first launch: a call that is refused has written nothing. Where the runtime refuses a launch
// (error::cuda), launches before it may have written. The stream's device need not be the current
// one if toolkit and driver are of CUDA 12.8 or later; before that it must be.

#include "furl/config.hpp"
#include "furl/detail/checks.hpp"
#include "furl/detail/device/kernels.cuh"
#include "furl/detail/device/launch.cuh"
#include "furl/detail/number.hpp"
#include "furl/plan.hpp"
#include "furl/types.hpp"

#if !defined(__CUDACC_RTC__)
#include <cstring>
#include <utility>

namespace furl {

FURL_HIDDEN_BEGIN

namespace detail {

template <class Architectures, kernel::output Output>
status decompress_to(const plan& p, const_bytes blob, values y, cudaStream_t stream,
                     const options& o) {
  if (const status s = check_coded(p, y, "y", blob); !s) return s;
  if (const status s = check_element_alignment(y, "y"); !s) return s;
  if (const status s = check_options_without_ranges(p, o, {bytes_of(y, "y")}); !s) return s;
  if (p.num_elements() == 0) return {};
  return kernel::run_on(stream, o.check_pointers,
                        {{y.data, "y"},
                         {blob.data, "blob"},
                         {o.tile_bits.data, "options.tile_bits"},
                         {o.tile_index.data, "options.tile_index"}},
                        [&] {
                          return with_type(y.type, [&](auto element) {
                            return kernel::launch_decompress<Architectures, Output>(
                                p, o, static_cast<const u8*>(blob.data),
                                static_cast<decltype(element)*>(y.data), stream);
                          });
                        });
}

}  // namespace detail

/// Compresses x into blob, on a stream. As furl::host::compress, with the same bytes.
/// x    : device, plan.num_elements() elements of any dtype, aligned to one element; to four, it is
///        fast.
/// blob : device, plan.size_bytes() bytes or more, of which the first plan.size_bytes() are
///        written, padding included; aligned to 16 bytes; disjoint from x.
/// key  : of the random stream; each compression needs a new one. Nearest rounding does not use it.
/// Errors: see status; nothing is launched for a bad argument.
template <class Architectures = kernel::architectures>
status compress(const plan& p, const_values x, bytes blob, random_key key, cudaStream_t stream,
                const options& o = {}) {
  if (const status s = detail::check_coded(p, x, "x", blob); !s) return s;
  if (const status s = detail::check_element_alignment(x, "x"); !s) return s;
  if (const status s = detail::check_given_ranges(p, o.ranges); !s) return s;
  if (const status s = detail::check_options(p, o, {blob.data, p.size_bytes(), "blob"}); !s)
    return s;
  if (p.num_elements() == 0) return {};
  return kernel::run_on(stream, o.check_pointers,
                        {{x.data, "x"},
                         {blob.data, "blob"},
                         {o.device_key, "options.device_key"},
                         {o.ranges.pairs, "options.ranges"},
                         {o.tile_bits.data, "options.tile_bits"},
                         {o.tile_index.data, "options.tile_index"}},
                        [&] {
                          return with_type(x.type, [&](auto element) {
                            return kernel::launch_compress<Architectures>(
                                p, o, static_cast<const decltype(element)*>(x.data),
                                static_cast<u8*>(blob.data), key, stream);
                          });
                        });
}

/// Decompresses blob into y, on a stream. As furl::host::decompress, with the same values.
/// blob : device, the plan.size_bytes() bytes that compress wrote; aligned to 16 bytes.
/// y    : device, plan.num_elements() elements of any dtype, whatever x had, aligned to one
///        element; to four, it is fast. All of them are written; disjoint from the blob.
/// Errors: see status; nothing is launched for a bad argument.
template <class Architectures = kernel::architectures>
status decompress(const plan& p, const_bytes blob, values y, cudaStream_t stream,
                  const options& o = {}) {
  return detail::decompress_to<Architectures, kernel::output::replace>(p, blob, y, stream, o);
}

/// Adds the decompressed values to y, on a stream, in f32, and rounds each sum once to y's type: an
/// overflow becomes infinity, for loss scalers to find. As furl::host::decompress_add.
/// blob, y : as for decompress. Errors: see status; nothing is launched for a bad argument.
template <class Architectures = kernel::architectures>
status decompress_add(const plan& p, const_bytes blob, values y, cudaStream_t stream,
                      const options& o = {}) {
  return detail::decompress_to<Architectures, kernel::output::accumulate>(p, blob, y, stream, o);
}

/// Packs one code per byte into codes of the plan's bits, on a stream; higher bits of a byte are
/// dropped. As furl::host::pack.
/// p     : from plan::make_codes.
/// codes : device, plan.num_elements() bytes; aligned to 4, it is fast.
/// blob  : device, plan.size_bytes() bytes or more; aligned to 16 bytes; disjoint from codes.
/// Errors: see status; nothing is launched for a bad argument.
template <class Architectures = kernel::architectures>
status pack(const plan& p, const_bytes codes, bytes blob, cudaStream_t stream,
            const options& o = {}) {
  return kernel::run_codes(p, codes, blob, {blob.data, p.size_bytes(), "blob"}, stream, o, [&] {
    return kernel::launch(kernel::pack<Architectures>, {kernel::blocks_for(p.num_tiles())}, stream,
                          blob_layout(p), static_cast<const u8*>(codes.data),
                          static_cast<u8*>(blob.data));
  });
}

/// The inverse of pack: one code per byte, on a stream. As furl::host::unpack.
/// blob  : device, the plan.size_bytes() bytes that pack wrote; aligned to 16 bytes.
/// codes : device, plan.num_elements() bytes, all of them written; disjoint from the blob.
/// Errors: see status; nothing is launched for a bad argument.
template <class Architectures = kernel::architectures>
status unpack(const plan& p, const_bytes blob, bytes codes, cudaStream_t stream,
              const options& o = {}) {
  return kernel::run_codes(p, codes, blob, {codes.data, codes.size_bytes, "codes"}, stream, o, [&] {
    return kernel::launch(kernel::unpack<Architectures>, {kernel::blocks_for(p.num_tiles())},
                          stream, blob_layout(p), static_cast<const u8*>(blob.data),
                          static_cast<u8*>(codes.data));
  });
}

}  // namespace furl

FURL_HIDDEN_END

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
    return make(p, write, stream, memory);
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
        memory_(other.memory_),
        stream_(other.stream_),
        blob_(::std::exchange(other.blob_, nullptr)) {}
  /// Leaves `other` empty, and gives back what this one had.
  stash& operator=(stash&& other) noexcept {
    stash taken(::std::move(other));
    ::std::swap(plan_, taken.plan_);
    ::std::swap(memory_, taken.memory_);
    ::std::swap(stream_, taken.stream_);
    ::std::swap(blob_, taken.blob_);
    return *this;
  }
  ~stash() {
    if (blob_ != nullptr) memory_.deallocate(memory_.context, blob_, plan_.size_bytes(), stream_);
  }

  /// As furl::decompress. A mixed plan needs its tile_bits and tile_index again.
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
  furl::plan plan_{};
  allocator memory_{};
  cudaStream_t stream_ = nullptr;
  void* blob_ = nullptr;
};

}  // namespace v0_2
}  // namespace furl

#endif
