// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Compression in device memory: start here. kernel/compress.cuh is what it launches.

#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/element/cell_locator.hpp"
#include "furl/element/range_map.hpp"
#include "furl/kernel/compress.cuh"
#include "furl/kernel/compress_in_ranges.cuh"
#include "furl/kernel/launch.cuh"
#include "furl/kernel/lfc.cuh"
#include "furl/kernel/pool.cuh"
#include "furl/options.cuh"
#include "furl/plan.hpp"
#include "furl/status.hpp"
#include "furl/view.hpp"

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
