// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Compression in host memory: start here. Tiles in parallel over the threads of a pool, the same
// bytes for any number of them.
//
// A handle that owns one folded activation in host memory: what a saved-tensor hook keeps between
// the forward and the backward pass.

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "furl/config.hpp"
#include "furl/detail/host/compress.hpp"
#include "furl/detail/host/decompress.hpp"
#include "furl/detail/host/work.hpp"
#include "furl/plan.hpp"
#include "furl/thread_pool.hpp"
#include "furl/types.hpp"

FURL_HIDDEN_BEGIN

namespace furl::host {

/// Compresses x into blob.
/// x    : host, plan.num_elements() elements of any dtype, at any alignment.
/// blob : host, plan.size_bytes() bytes or more, of which the first plan.size_bytes() are written,
///        padding included; aligned to 16 bytes; apart from x.
/// key  : of the random stream; each compression takes another. Not used by nearest rounding.
/// Errors: see status. Allocates nothing.
inline status compress(const plan& p, const_values x, bytes blob, random_key key,
                       const options& o = {}) {
  if (const status s = furl::detail::check_coded(p, x, "x", blob); !s) return s;
  if (const status s =
          detail::check_bits_of_tiles(p, o.tile_bits, {blob.data, p.size_bytes(), "blob"});
      !s)
    return s;
  if (const status s = detail::check_ranges(p, o.ranges, blob); !s) return s;
  if (p.num_elements() == 0) return {};
  const int num_shares = detail::count_shares(o.pool);
  with_type(x.type, [&](auto element) {
    using type = decltype(element);
    detail::run_shares(o.pool, [&](int share) {
      const auto compress_share = detail::band_pooler::apply_to(p)
                                      ? detail::compress_banded_share<type>
                                      : detail::compress_share<type>;
      compress_share(p, x, blob, key, o, share, num_shares);
    });
    detail::finish_compress<type>(p, x, blob, key, o, num_shares);
  });
  return {};
}

/// Decompresses blob into y. Values beyond the largest finite f16 or bf16 become that one; f32
/// takes all values as they are.
/// blob : host, the plan.size_bytes() bytes that compress wrote; aligned to 16 bytes.
/// y    : host, plan.num_elements() elements of any dtype, whatever x had, at any alignment; all
///        of them are written; apart from the blob.
/// Errors: see status. Allocates nothing.
inline status decompress(const plan& p, const_bytes blob, values y, const options& o = {}) {
  return detail::decompress_to<detail::output::replace>(p, blob, y, o);
}

/// Adds the decompressed values to y, in f32, and rounds each sum once to y's type: an overflow
/// becomes infinity, for loss scalers to find. Otherwise as decompress.
inline status decompress_add(const plan& p, const_bytes blob, values y, const options& o = {}) {
  return detail::decompress_to<detail::output::accumulate>(p, blob, y, o);
}

/// Packs one code per byte into codes of the plan's bits; higher bits of a byte are dropped.
/// codes : host, plan.num_elements() bytes.
/// blob  : host, plan.size_bytes() bytes or more; aligned to 16 bytes; apart from codes.
/// Errors: see status. The plan must come from plan::make_codes. Allocates nothing.
inline status pack(const plan& p, const_bytes codes, bytes blob, thread_pool* pool = nullptr) {
  if (const status s = furl::detail::check_codes_call(p, codes, blob); !s)
    return s;
  detail::for_each_unit(p.num_tiles(), pool, [&](i64 tile) {
    const int count = detail::elements_in_tile(p, tile);
    detail::tile_bytes bytes_of_tile{};
    std::memcpy(bytes_of_tile.word, static_cast<const u8*>(codes.data) + tile * tile_elements,
                static_cast<std::size_t>(count));
    for (u32& word : bytes_of_tile.word) word &= in_each_byte(low_bits(p.codec().bits));
    detail::store_tile(p, tile, bytes_of_tile, blob);
  });
  return {};
}

/// The inverse of pack: one code per byte.
inline status unpack(const plan& p, const_bytes blob, bytes codes, thread_pool* pool = nullptr) {
  if (const status s = furl::detail::check_codes_call(p, codes, blob); !s)
    return s;
  detail::for_each_unit(p.num_tiles(), pool, [&](i64 tile) {
    detail::tile_bytes bytes_of_tile;
    detail::load_tile(p, tile, blob, bytes_of_tile);
    std::memcpy(static_cast<u8*>(codes.data) + tile * tile_elements, bytes_of_tile.word,
                static_cast<std::size_t>(detail::elements_in_tile(p, tile)));
  });
  return {};
}

}  // namespace furl::host

FURL_HIDDEN_END

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

  /// Owns what write(blob) writes into memory of the allocator, such as codes by a codebook or the
  /// mask of a ReLU. write takes `bytes` of plan.size_bytes() and returns a status.
  template <class Write>
  FURL_HIDDEN static result<stash> make(const furl::plan& p, const Write& write,
                                        const allocator& memory = {}) {
    return fill(p, memory, write);
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
