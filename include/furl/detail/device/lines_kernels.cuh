// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE GRID. Compression and decompression of lines that are filled up to whole groups (FORMAT.md,
// A15): one warp a tile.

#include "furl/block/codes.cuh"
#include "furl/block/compress.cuh"
#include "furl/block/decompress.cuh"
#include "furl/block/layout.cuh"
#include "furl/block/min_max.cuh"
#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/detail/cells.hpp"
#include "furl/detail/device/decompress_kernels.cuh"
#include "furl/detail/device/launch.cuh"
#include "furl/detail/device/vectors.cuh"

FURL_HIDDEN_BEGIN

namespace furl::kernel {

/// Which elements codes belong to.
struct line_map {
  i64 num_codes = 0;      // of all lines
  i64 line_elements = 0;  // of one line
  divisor64 line_codes;   // likewise, as a divisor

#if !defined(__CUDACC_RTC__)
  /// Pre: the plan fills lines.
  FURL_HIDDEN explicit line_map(const plan& p)
      : num_codes(p.num_codes()),
        line_elements(p.line_elements()),
        line_codes(u64(p.line_codes())) {}
#endif
};

/// Four neighbouring codes, all of one line.
struct four_codes {
  i64 element;  // that of the first
  i64 left;     // elements of the line from it on: none if it is not positive
};

/// A lane's four codes of a row of a tile. Those beyond the last are the last four.
__device__ __forceinline__ four_codes find_codes(const line_map& map, i64 tile, int row) {
  i64 code = tile * tile_elements + row_begin(row, lane_index());
  if (code >= map.num_codes) code = map.num_codes - 4;
  const u64 line = map.line_codes.divide(u64(code));
  const i64 column = code - i64(line * map.line_codes.value);
  return {i64(line) * map.line_elements + column, map.line_elements - column};
}

/// The elements of a tile. Codes without one repeat the last of their line.
template <class T>
__device__ __forceinline__ void load_lines(const line_map& map, i64 tile, const T* x,
                                           tile_fragment<T>& out) {
  FURL_UNROLL
  for (int row = 0; row < rows_per_tile; ++row) {
    const four_codes four = find_codes(map, tile, row);
    const T* const first = x + four.element;
    if (four.left >= 4 && is_vector_aligned(first)) {
      load_vector<0>(__cvta_generic_to_global(first), out.word[row]);
    } else {
      const i64 before = four.left < 1 ? 1 - four.left : 0;  // back to the last of the line
      const i64 present = four.left + before;
      load_elements(first - before, 0, present < 4 ? int(present) : 4, out.word[row]);
    }
  }
}

/// Of a row's four codes, those that have elements; 0 in place of the others.
__device__ __forceinline__ u32 keep_present(u32 codes, i64 left) {
  return left >= 4 ? codes : left <= 0 ? 0 : codes & ~(~0u << (8 * int(left)));
}

/// Compresses elements.
template <class T, class Architectures>
__global__ void __launch_bounds__(block_threads)
    compress_lines(blob_layout layout, line_map map, const T* x, u8* blob,
                   key_argument key_source) {
  const random_key key = key_source.get();
  const tile_codec c{layout.bits, layout.group, layout.meta, layout.stochastic};
  const lane_group place = group_of_lane(lane_index(), c.group);
  for (i64 tile = first_tile(); tile < layout.num_tiles; tile += tile_stride()) {
    if (tile == 0) clear_padding(layout, blob);
    const int count = elements_in_tile(map.num_codes, tile);
    tile_fragment<T> elements;
    load_lines(map, tile, x, elements);
    const min_max ends = tile_min_max(elements, c.group);
    const group_params mine = detail::make_groups(ends, c.bits, c.meta);
    if (place.is_first && place.begin < count)
      store_group(blob + layout.meta_offset, place.index(tile), c.meta, mine.lo, mine.step);
    u32 codes[rows_per_tile];
    quantize_tile(elements, mine, c.stochastic, tile, key, codes);
    FURL_UNROLL
    for (int row = 0; row < rows_per_tile; ++row)
      codes[row] = keep_present(codes[row], find_codes(map, tile, row).left);
    if (count < tile_elements) clear_absent(codes, count);
    store_codes(codes, c.bits, blob + layout.place_of(tile).offset);
  }
}

/// Four values of a row to the elements that they have.
template <output Output, class T>
__device__ __forceinline__ void write_line(const float (&values)[4], T* first, i64 left) {
  const int present = left >= 4 ? 4 : left > 0 ? int(left) : 0;
  if (present == 0) return;
  row_words<T> out;
  if (present == 4 && is_vector_aligned(first)) {
    const u64 at = __cvta_generic_to_global(first);
    if constexpr (Output == output::accumulate) load_vector<0>(at, out);
    write_row<Output, T>(values, out);
    store_vector<0>(at, out);
  } else {
    if constexpr (Output == output::accumulate) load_elements(first, 0, present, out);
    write_row<Output, T>(values, out);
    store_elements(first, 0, present, out);
  }
}

/// Restores elements. dithered: whether the codes are.
template <class T, output Output, class Architectures>
__global__ void __launch_bounds__(block_threads)
    decompress_lines(blob_layout layout, line_map map, bool dithered, const u8* blob, T* y,
                     key_argument key_source) {
  const random_key key = key_source.get();
  for (i64 tile = first_tile(); tile < layout.num_tiles; tile += tile_stride()) {
    const int count = elements_in_tile(map.num_codes, tile);
    coded_tile coded;
    if (!load_coded_tile(layout, tile, count, blob, coded)) continue;
    const auto write = [&](const auto& loaded) {
      FURL_UNROLL
      for (int row = 0; row < rows_per_tile; ++row) {
        float values[4];
        dequantize_row(loaded, row, values);
        if (row_begin(row, lane_index()) >= count) continue;
        const four_codes four = find_codes(map, tile, row);
        write_line<Output>(values, y + four.element, four.left);
      }
    };
    if (dithered) {
      write(dither(coded, tile, key));
    } else {
      write(coded);
    }
  }
}

#if !defined(__CUDACC_RTC__)

/// Compresses elements by the kernel for their type.
template <class Architectures, class T>
status launch_compress_lines(const plan& p, const options& o, const T* x, u8* blob, random_key key,
                             cudaStream_t stream) {
  return launch(compress_lines<T, Architectures>, {blocks_for(p.num_tiles())}, stream,
                blob_layout(p), line_map(p), x, blob, key_argument{key, o.device_key});
}

/// Likewise. Codes that are not dithered are restored without a key.
template <class Architectures, output Output, class T>
status launch_decompress_lines(const plan& p, const options& o, const u8* blob, T* y,
                               random_key key, cudaStream_t stream) {
  return launch(decompress_lines<T, Output, Architectures>, {blocks_for(p.num_tiles())}, stream,
                blob_layout(p), line_map(p), p.needs_key(), blob, y,
                key_argument{key, p.needs_key() ? o.device_key : nullptr});
}

#endif

}  // namespace furl::kernel

FURL_HIDDEN_END
