// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Compression in device memory: start here. kernel/compress.cuh is what it launches.
//
// Decompression in device memory, into an array or added to one.
//
// Masks and small integers in device memory (FORMAT.md, A8): ReLU and dropout masks, window indices of
// max pooling. Exact, one width for all.
//
// A handle that owns one folded activation in device memory: what a saved-tensor hook keeps between
// the forward and the backward pass.

#include "furl/block/layout.cuh"
#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/detail/cell_index.hpp"
#include "furl/detail/device/compress.cuh"
#include "furl/detail/device/decompress.cuh"
#include "furl/detail/device/launch.cuh"
#include "furl/detail/ranges.hpp"
#include "furl/plan.hpp"
#include "furl/types.hpp"

#if !defined(__CUDACC_RTC__)
#include <cstring>
#include <utility>
#endif

#if !defined(__CUDACC_RTC__)

FURL_HIDDEN_BEGIN

namespace furl {

namespace detail {

/// What two kernels read one after the other stays in the L2 cache of current devices.
inline constexpr i64 cached_bytes = i64(16) << 20;

/// Compression with a kernel that pools the cells, and one for the tiles whose cells are then
/// known, in turns, so that the second finds the elements in the cache. launch_tiles(tile_range)
/// launches that one.
template <class Architectures, class T, class LaunchTiles>
status launch_pooled(const plan& p, const blob_layout& layout, const cell_locator& locator,
                     const T* x, u8* blob, cudaStream_t stream, const LaunchTiles& launch_tiles) {
  const cell_grid& grid = p.grid();
  const kernel::cell_list cells(grid);
  const bool vectors = locator.granule() >= 4 && locator.cell_step() == 0 &&
                       reinterpret_cast<std::uintptr_t>(x) % (4 * sizeof(T)) == 0;
  const i64 cells_per_band = p.num_cells() / grid.num_bands();
  i64 bands = cached_bytes / i64(sizeof(T)) / grid.band_elements();
  if (bands < 1) bands = 1;
  kernel::tile_range tiles{0, 0};
  for (i64 band = 0; band < grid.num_bands(); band += bands, tiles.begin = tiles.end) {
    const bool is_last = grid.num_bands() - band <= bands;
    const i64 end = is_last ? grid.num_bands() : band + bands;
    const i64 pooled = (end - band) * cells_per_band;
    if (const status s =
            kernel::launch(kernel::pool<T>, kernel::blocks_for((pooled - 1) / warp_threads + 1),
                           kernel::block_threads, stream, cells, band * cells_per_band,
                           end * cells_per_band, x, blob + layout.lfc_offset, vectors, layout.meta);
        !s)
      return s;
    tiles.end = is_last ? layout.num_tiles : grid.band_begin(end) / tile_elements;
    if (const status s = launch_tiles(tiles); !s) return s;
  }
  return {};
}

template <class Architectures, class T>
status launch_flat(const blob_layout& layout, const T* x, u8* blob, const kernel::key_argument& key,
                   const range_map& given, cudaStream_t stream) {
  const unsigned blocks = kernel::blocks_for(layout.num_tiles);
  if (given.pairs != nullptr)
    return kernel::launch(kernel::compress_in_ranges<T>, blocks, kernel::block_threads, stream,
                          layout, x, blob, key, given);
  return kernel::launch(kernel::compress<T>, blocks, kernel::block_threads, stream, layout, x, blob,
                        key);
}

template <class Architectures, bool InRanges, class T>
status launch_with_lfc(const plan& p, const blob_layout& layout, const T* x, u8* blob,
                       const kernel::key_argument& key, const range_map& given,
                       cudaStream_t stream) {
  const kernel::lfc_source source = kernel::choose_lfc_source(p.grid());
  return kernel::with_path(source.path, [&](auto chosen) {
    constexpr kernel::lfc_path path = decltype(chosen)::value;
    const auto launch_tiles = [&](const kernel::tile_range& tiles) {
      return kernel::launch_blocks(kernel::compress_with_lfc<T, path, InRanges>, layout, source,
                                   tiles, stream, x, blob, key, given);
    };
    if constexpr (path == kernel::lfc_path::table)
      return launch_pooled<Architectures>(p, layout, source.locator, x, blob, stream, launch_tiles);
    else
      return launch_tiles({0, layout.num_tiles});
  });
}

}  // namespace detail

/// Compresses x into blob, on a stream.
/// x      : device, plan.num_elements() elements of any dtype, aligned to one element; to four, it
///          is fast.
/// blob   : device, plan.size_bytes() bytes or more, of which the first plan.size_bytes() are
///          written, padding included; aligned to 16 bytes; apart from x.
/// key    : of the random stream; each compression takes another. Not used by nearest rounding.
/// stream : the work goes there and nowhere else; it may be one that is being captured. Its device
///          need not be the current one.
/// Errors: see status; nothing is launched for a bad argument. Allocates nothing and waits for
/// nothing.
template <class Architectures = kernel::architectures>
status compress(const plan& p, const_values x, bytes blob, random_key key, cudaStream_t stream,
                const options& o = {}) {
  if (const status s = detail::check_call(p, x, "x", {blob.data, blob.size_bytes}, o); !s) return s;
  if (const status s = detail::check_given_ranges(p, o.ranges); !s) return s;
  if (p.num_elements() == 0) return {};
  const kernel::stream_scope scope(stream);
  if (const status s = kernel::cuda_status(scope.error(), "stream"); !s) return s;
  if (const status s = detail::check_memory(p, x.data, "x", blob.data, o, scope.device()); !s)
    return s;
  if (const status s = detail::check_reachable(o.ranges.pairs, scope.device(), "options.ranges");
      !s)
    return s;
  blob_layout layout;
  if (const status s = detail::launch_layout<Architectures>(p, o, stream, layout); !s) return s;
  return with_type(x.type, [&](auto element) {
    using type = decltype(element);
    const auto* const from = static_cast<const type*>(x.data);
    auto* const to = static_cast<u8*>(blob.data);
    const kernel::key_argument source{key, o.device_key};
    const range_map given(p, o.ranges);
    if (!p.has_lfc())
      return detail::launch_flat<Architectures>(layout, from, to, source, given, stream);
    if (given.pairs == nullptr)
      return detail::launch_with_lfc<Architectures, false>(p, layout, from, to, source, given,
                                                           stream);
    return detail::launch_with_lfc<Architectures, true>(p, layout, from, to, source, given, stream);
  });
}

}  // namespace furl

FURL_HIDDEN_END

#endif

#if !defined(__CUDACC_RTC__)

FURL_HIDDEN_BEGIN

namespace furl {

namespace detail {

template <class Architectures, kernel::output Output>
status decompress_to(const plan& p, const_bytes blob, values y, cudaStream_t stream,
                     const options& o) {
  if (const status s = check_call(p, {y.data, y.type, y.num_elements}, "y", blob, o); !s) return s;
  if (p.num_elements() == 0) return {};
  const kernel::stream_scope scope(stream);
  if (const status s = kernel::cuda_status(scope.error(), "stream"); !s) return s;
  if (const status s = check_memory(p, y.data, "y", blob.data, o, scope.device()); !s) return s;
  blob_layout layout;
  if (const status s = launch_layout<Architectures>(p, o, stream, layout); !s) return s;
  return with_type(y.type, [&](auto element) {
    using type = decltype(element);
    const auto* const from = static_cast<const u8*>(blob.data);
    auto* const to = static_cast<type*>(y.data);
    if (!p.has_lfc())
      return kernel::launch(kernel::decompress<type, Output>, kernel::blocks_for(layout.num_tiles),
                            kernel::block_threads, stream, layout, from, to);
    const kernel::lfc_source source = kernel::choose_lfc_source(p.grid());
    return kernel::with_path(source.path, [&](auto path) {
      return kernel::launch_blocks(kernel::decompress_with_lfc<type, Output, decltype(path)::value>,
                                   layout, source, {0, layout.num_tiles}, stream, from, to);
    });
  });
}

}  // namespace detail

/// Decompresses blob into y, on a stream. Values beyond the largest finite f16 or bf16 become that
/// one; f32 takes all values as they are.
/// blob   : device, the plan.size_bytes() bytes that compress wrote; aligned to 16 bytes.
/// y      : device, plan.num_elements() elements of any dtype, whatever x had, aligned to one
///          element; to four, it is fast. All of them are written; apart from the blob.
/// stream : as for compress.
/// Errors: see status; nothing is launched for a bad argument. Allocates nothing and waits for
/// nothing.
template <class Architectures = kernel::architectures>
status decompress(const plan& p, const_bytes blob, values y, cudaStream_t stream,
                  const options& o = {}) {
  return detail::decompress_to<Architectures, kernel::output::replace>(p, blob, y, stream, o);
}

/// Adds the decompressed values to y, in f32, and rounds each sum once to y's type: an overflow
/// becomes infinity, for loss scalers to find. Otherwise as decompress.
template <class Architectures = kernel::architectures>
status decompress_add(const plan& p, const_bytes blob, values y, cudaStream_t stream,
                      const options& o = {}) {
  return detail::decompress_to<Architectures, kernel::output::accumulate>(p, blob, y, stream, o);
}

}  // namespace furl

FURL_HIDDEN_END

#endif

#if !defined(__CUDACC_RTC__)

FURL_HIDDEN_BEGIN

namespace furl {

namespace detail {

inline status check_codes_memory(const void* codes, const void* blob,
                                 const kernel::stream_scope& scope) {
  return check_reachable(scope, {{codes, "codes"}, {blob, "blob"}});
}

}  // namespace detail

/// Packs one code per byte into codes of the plan's bits, on a stream; higher bits of a byte are
/// dropped.
/// codes  : device, plan.num_elements() bytes; aligned to 4, it is fast.
/// blob   : device, plan.size_bytes() bytes or more; aligned to 16 bytes; apart from codes.
/// stream : as for compress.
/// Errors: see status; nothing is launched for a bad argument. The plan must come from
/// plan::make_codes. Allocates nothing and waits for nothing.
template <class Architectures = kernel::architectures>
status pack(const plan& p, const_bytes codes, bytes blob, cudaStream_t stream) {
  if (const status s = detail::check_codes_call(p, codes, {blob.data, blob.size_bytes}); !s)
    return s;
  if (p.num_elements() == 0) return {};
  const kernel::stream_scope scope(stream);
  if (const status s = detail::check_codes_memory(codes.data, blob.data, scope); !s) return s;
  return kernel::launch(kernel::pack<>, kernel::blocks_for(p.num_tiles()), kernel::block_threads,
                        stream, blob_layout(p), static_cast<const u8*>(codes.data),
                        static_cast<u8*>(blob.data));
}

/// The inverse of pack: one code per byte.
template <class Architectures = kernel::architectures>
status unpack(const plan& p, const_bytes blob, bytes codes, cudaStream_t stream) {
  if (const status s = detail::check_codes_call(p, {codes.data, codes.size_bytes}, blob); !s)
    return s;
  if (p.num_elements() == 0) return {};
  const kernel::stream_scope scope(stream);
  if (const status s = detail::check_codes_memory(codes.data, blob.data, scope); !s) return s;
  return kernel::launch(kernel::unpack<>, kernel::blocks_for(p.num_tiles()), kernel::block_threads,
                        stream, blob_layout(p), static_cast<const u8*>(blob.data),
                        static_cast<u8*>(codes.data));
}

}  // namespace furl

FURL_HIDDEN_END

#endif

#if !defined(__CUDACC_RTC__)

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

  /// Owns what write(blob) writes into memory of the allocator, such as codes by a codebook or the
  /// mask of a ReLU. write takes `bytes` of plan.size_bytes() and returns a status.
  template <class Write>
  FURL_HIDDEN static result<stash> make(const furl::plan& p, const Write& write,
                                        cudaStream_t stream, const allocator& memory = {}) {
    return fill(p, stream, memory, write);
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
