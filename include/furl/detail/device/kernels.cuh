// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE GRID. Compression: a warp for each tile, or for two of a 16-bit type; every element is read
// from device memory once. A second time, from the cache, are those of tiles with a group that is
// not usual, and with means whose cells no block can hold, after average_pool.
//
// ONE GRID. Masks and small integers (FORMAT.md, A8): one warp a tile.

#include "furl/block/average_pool.cuh"
#include "furl/block/codes.cuh"
#include "furl/block/compress.cuh"
#include "furl/block/elements.cuh"
#include "furl/block/layout.cuh"
#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/detail/device/launch.cuh"
#include "furl/detail/device/wide_range.cuh"
#include "furl/detail/device/wide_tiles.cuh"
#include "furl/detail/quantize.hpp"

FURL_HIDDEN_BEGIN

namespace furl::kernel {

/// Compresses elements, without means.
/// random: of the key, if key_source has it by value.
template <class T, class Architectures>
__global__ void __launch_bounds__(block_threads, 7)
    compress(blob_layout layout, detail::wide_layout wide, detail::tile_random random, const T* x,
             u8* blob, key_argument key_source) {
  constexpr int tiles = detail::wide_tiles<T>;
  const detail::wide_compress<T> many(layout, wide, x, blob);
  const u32 stride = gridDim.x * u32(warps_per_block);
  const u32 first = blockIdx.x * u32(warps_per_block) + u32(warp_index());
  if (first == 0) clear_padding(layout, blob);
  for (u32 turn = first;; turn += stride) {
    turn = key_source.device == nullptr
               ? many.run(turn, stride, random)
               : many.run(turn, stride, detail::tile_random(*key_source.device));
    // By other instructions: the tiles of a turn, or at last those that are in none.
    const bool is_last = turn >= wide.num_turns;
    i64 tile = i64(tiles) * turn;
    i64 end = tile + tiles;
    if (is_last) {
      tile = i64(tiles) * wide.num_turns + (turn - wide.num_turns);
      end = layout.num_tiles;
    }
    for (; tile < end; tile += is_last ? stride : 1) {
      const int count = elements_in_tile(layout.num_elements, tile);
      tile_fragment<T> elements;
      load_tile(x + tile * tile_elements, count, elements);
      compress_tile(layout, tile, count, elements, key_source.get(), blob);
    }
    if (is_last) break;
  }
}

/// The same with ranges that are given.
template <class T, class Architectures>
__global__ void __launch_bounds__(block_threads, 6)
    compress_in_ranges(blob_layout layout, const T* x, u8* blob, key_argument key_source,
                       range_map given) {
  const random_key key = key_source.get();
  for (i64 tile = first_tile(); tile < layout.num_tiles; tile += tile_stride()) {
    const int count = elements_in_tile(layout.num_elements, tile);
    tile_fragment<float> elements;
    load_tile_as_f32(x + tile * tile_elements, count, elements);
    const min_max ends = saturate_tile(given, tile, count, layout.group, elements);
    compress_tile_in_range(layout, tile, count, elements, ends, key, blob);
  }
}

/// Compresses the residuals of elements and their means.
/// InRanges: whether the ranges of residuals are given; measured otherwise.
template <class T, lfc_path Path, bool InRanges, class Architectures>
__global__ void __launch_bounds__(block_compress<Path>::max_threads,
                                  detail::min_blocks(Path, InRanges))
    compress_with_lfc(block_layout layout, tile_range tiles, detail::wide_layout wide,
                      detail::tile_random random, const T* x, u8* blob, key_argument key_source,
                      range_map given) {
  extern __shared__ float4 shared[];
  tile_run run(layout, tiles);
  const block_compress<Path> block(layout, run, shared, detail::known_path{});
  tile_fragment<float> elements[1];
  block.load(array_elements<T>{x}, blob, elements[0]);
  if (run.count == 0) return;
  block.subtract_means(elements[0], blob);
  // The steps of block.compress, with the key read last: it would take registers until then.
  run = run.located_anew(layout);
  if constexpr (InRanges) {
    const min_max ends = saturate_tile(given, run.tile, run.count, layout.group, elements[0]);
    compress_tile_in_range(layout, run.tile, run.count, elements[0], ends, key_source.get(), blob);
  } else {
    if (run.tile < wide.num_turns) {
      const detail::wide_compress<float> many(layout, wide, nullptr, blob);
      if (run.tile == 0) clear_padding(layout, blob);
      if (many.compress(u32(run.tile), elements, random)) return;
    }
    compress_tile(layout, run.tile, run.count, elements[0], key_source.get(), blob);
  }
}

/// Writes the means of cells begin .. end - 1.
template <class T, class Architectures>
__global__ void __launch_bounds__(block_threads, 6)
    average_pool(cell_list cells, i64 begin, i64 end, const T* x, dtype meta, u8* lfc) {
  pool_cells(array_elements<T>{x}, cells, begin, end, meta, lfc);
}

#if !defined(__CUDACC_RTC__)

/// What two kernels read one after the other stays in the L2 cache of current devices.
inline constexpr i64 cached_bytes = i64(16) << 20;

/// Compression with a kernel that pools cells, and one for the tiles whose cells are then known, in
/// turns, so that the second finds the elements in the cache. launch_tiles(tile_range) launches it.
template <class Architectures, class T, class LaunchTiles>
status launch_pooled(const block_layout& layout, const cell_grid& grid, const T* x, u8* blob,
                     cudaStream_t stream, const LaunchTiles& launch_tiles) {
  const cell_list cells(grid);
  const cell_grid& g = cells.grid;
  const i64 cells_per_band = g.num_cells() / g.num_bands();
  i64 bands = cached_bytes / i64(sizeof(T)) / g.band_elements();
  if (bands < 1) bands = 1;
  tile_range tiles{0, 0};
  for (i64 band = 0; band < g.num_bands(); band += bands, tiles.begin = tiles.end) {
    const bool is_last = g.num_bands() - band <= bands;
    const i64 end = is_last ? g.num_bands() : band + bands;
    const i64 warps = ((end - band) * cells_per_band - 1) / warp_threads + 1;
    if (const status s = launch(average_pool<T, Architectures>, {blocks_for(warps)}, stream, cells,
                                band * cells_per_band, end * cells_per_band, x, layout.meta,
                                blob + layout.lfc_offset);
        !s)
      return s;
    tiles.end = is_last ? layout.num_tiles : g.band_begin(end) / tile_elements;
    if (const status s = launch_tiles(tiles); !s) return s;
  }
  return {};
}

/// Compression with means, by the path that these take: launch_tiles(path, grid_shape, tile_range)
/// launches the kernel for some tiles.
template <class Architectures, class T, class LaunchTiles>
status launch_with_lfc(const block_layout& layout, const cell_grid& cells, const T* x, u8* blob,
                       cudaStream_t stream, const LaunchTiles& launch_tiles) {
  return with_path(layout.means.path, [&](auto chosen) -> status {
    constexpr lfc_path path = decltype(chosen)::value;
    if constexpr (path == lfc_path::none) {
      return {};
    } else {
      const auto launch_range = [&](const tile_range& tiles) -> status {
        if (tiles.begin == tiles.end) return {};
        const grid_shape grid{layout.num_blocks(tiles), layout.num_threads(),
                              layout.shared_bytes()};
        return launch_tiles(chosen, grid, tiles);
      };
      if constexpr (path == lfc_path::table)
        return launch_pooled<Architectures>(layout, cells, x, blob, stream, launch_range);
      return launch_range({0, layout.num_tiles});
    }
  });
}

/// Compresses elements by the kernel that their plan needs.
template <class Architectures, class T>
status launch_compress(const plan& p, const options& o, const T* x, u8* blob, random_key key,
                       cudaStream_t stream) {
  const block_layout layout(p, o);
  const key_argument source{key, o.device_key};
  const range_map given(p, o.ranges);
  const detail::tile_random random(key);
  const bool in_ranges = given.pairs != nullptr;
  const auto launch_residuals = [&](auto are_given) -> status {
    return launch_with_lfc<Architectures>(
        layout, p.grid(), x, blob, stream,
        [&](auto path, const grid_shape& grid, const tile_range& tiles) -> status {
          // Residuals are floats, in registers. A key that is read there is read too late for this.
          const float* const none = nullptr;
          const auto wide =
              o.device_key != nullptr ? detail::wide_layout() : detail::wide_layout(p, none);
          return launch(compress_with_lfc<T, decltype(path)::value, decltype(are_given)::value,
                                          Architectures>,
                        grid, stream, layout, tiles, wide, random, x, blob, source, given);
        });
  };
  if (p.has_lfc() && in_ranges) return launch_residuals(::std::true_type{});
  if (p.has_lfc()) return launch_residuals(::std::false_type{});
  const blob_layout& of_blob = layout;
  if (in_ranges)
    return launch(compress_in_ranges<T, Architectures>, {blocks_for(layout.num_tiles)}, stream,
                  of_blob, x, blob, source, given);
  const detail::wide_layout wide(p, x);
  const i64 warps = wide.num_turns + layout.num_tiles - i64(detail::wide_tiles<T>) * wide.num_turns;
  return launch(compress<T, Architectures>, {blocks_for(warps)}, stream, of_blob, wide, random, x,
                blob, source);
}

#endif

/// Keeps the low bits of one code per byte.
template <class Architectures>
__global__ void __launch_bounds__(block_threads)
    pack(blob_layout layout, const u8* codes, u8* blob) {
  for (i64 tile = first_tile(); tile < layout.num_tiles; tile += tile_stride()) {
    const int count = elements_in_tile(layout.num_elements, tile);
    code_fragment loaded;
    load_tile(codes + tile * tile_elements, count, loaded);
    const u32 mask = in_each_byte(low_bits(layout.bits));
    u32 kept[rows_per_tile];
    FURL_UNROLL
    for (int row = 0; row < rows_per_tile; ++row) kept[row] = loaded.word[row][0] & mask;
    if (count < tile_elements) clear_absent(kept, count);
    store_codes(kept, layout.bits, blob + layout.place_of(tile).offset);
  }
}

/// The inverse of pack.
template <class Architectures>
__global__ void __launch_bounds__(block_threads)
    unpack(blob_layout layout, const u8* blob, u8* codes) {
  for (i64 tile = first_tile(); tile < layout.num_tiles; tile += tile_stride()) {
    u32 loaded[rows_per_tile];
    load_codes(blob + layout.place_of(tile).offset, layout.bits, loaded);
    code_fragment out;
    FURL_UNROLL
    for (int row = 0; row < rows_per_tile; ++row) out.word[row][0] = loaded[row];
    store_tile(codes + tile * tile_elements, elements_in_tile(layout.num_elements, tile), out);
  }
}

}  // namespace furl::kernel

FURL_HIDDEN_END
