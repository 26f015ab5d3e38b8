// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE GRID. The kernels of extra/batch.cuh: many tensors in one grid, one warp a tile of any of
// them. What a kernel needs to know of the tensors is its parameter, whose 4096 bytes bound their
// number. So it needs no memory of the device and no copy, and a captured launch keeps its own.

#include "furl/block/compress.cuh"
#include "furl/block/decompress.cuh"
#include "furl/block/layout.cuh"
#include "furl/block/rotated.cuh"
#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/detail/device/decompress_kernels.cuh"
#include "furl/detail/device/launch.cuh"
#include "furl/types.hpp"

#if !defined(__CUDACC_RTC__)
#include "furl/extra/batch.hpp"
#include "furl/plan.hpp"
#endif

FURL_HIDDEN_BEGIN

namespace furl::kernel {

/// A tile of one tensor of a batch.
struct batch_tile {
  blob_layout layout;  // of the tensor's blob
  u8* blob;            // likewise
  u64 array;           // its elements
  random_key key;      // its random stream
  i64 index;           // of the tile in the tensor
  int count;           // of elements of the tensor in it: 1..1024
};

/// The tensors of a launch, none of them empty, with their tiles numbered through.
class tensor_batch {
 public:
  static constexpr int max_tensors = 126;         // what the parameters of a kernel have room for
  static constexpr i64 max_tiles = i64(1) << 31;  // so that numbers of tiles have 32 bits
  u32 num_tiles = 0;                              // of all tensors

#if !defined(__CUDACC_RTC__)
  FURL_HIDDEN tensor_batch() {
    for (u32& number : first_tile_) number = ~0u;
    first_tile_[0] = 0;
  }
  FURL_HIDDEN bool has_room_for(const plan& p) const {
    return count_ < max_tensors && num_tiles + p.num_tiles() <= max_tiles;
  }
  /// Pre: there is room for the tensor.
  FURL_HIDDEN void add(const plan& p, const void* array, const void* blob, u64 key_offset) {
    array_[count_] = reinterpret_cast<u64>(array);
    blob_[count_] = reinterpret_cast<u64>(blob);
    key_offset_[count_] = key_offset;
    u32 log2_group = 5;
    while (1 << log2_group < p.codec().group) ++log2_group;
    const u32 is_f32 = p.codec().meta == dtype::f32 ? 1 : 0;
    const u32 stochastic = p.codec().rounding != rounding::nearest ? 1 : 0;
    const u32 of_last_tile = u32((p.num_elements() - 1) % tile_elements);  // less 1
    codec_[count_] = u32(p.codec().bits - 1) | is_f32 << 3 | stochastic << 4 | log2_group << 8 |
                     of_last_tile << 16;
    num_tiles += u32(p.num_tiles());
    first_tile_[++count_] = num_tiles;
  }
#endif

  /// The tile of a number below num_tiles, of a tensor whose codes are rotated or not, with a key
  /// for the whole batch.
  template <bool Rotated>
  __device__ __forceinline__ batch_tile find(u32 number, const random_key& key) const {
    const u32* first = first_tile_;  // of the last tensor that begins at or before the tile
    FURL_UNROLL
    for (int step = 64; step > 0; step /= 2)
      if (first[step] <= number) first += step;
    const auto at = first - first_tile_;
    const u32 codec = codec_[at];
    const u32 end = first[1];
    batch_tile tile;
    tile.index = number - first[0];
    tile.count = number + 1 == end ? int(codec >> 16) + 1 : tile_elements;
    tile.array = array_[at];
    tile.blob = reinterpret_cast<u8*>(blob_[at]);
    tile.key = {key.seed, key.offset + key_offset_[at]};
    blob_layout& layout = tile.layout;
    layout.num_tiles = end - first[0];
    layout.num_elements = (layout.num_tiles - 1) * tile_elements + (codec >> 16) + 1;
    layout.bits = int(codec & 7) + 1;
    const u32 log2_group = codec >> 8 & 15;
    layout.group = 1 << log2_group;
    layout.meta = (codec & 8) != 0 ? dtype::f32 : dtype::bf16;
    layout.stochastic = (codec & 16) != 0;
    layout.meta_offset = u64(layout.num_tiles) * u64(layout.bits * row_elements);
    const u64 pairs = u64(layout.num_elements + layout.group - 1) >> log2_group;
    layout.meta_end =
        layout.meta_offset + (Rotated ? u64(layout.num_tiles) * blocks_per_tile * sizeof(u16)
                                      : pairs << ((codec & 8) != 0 ? 3 : 2));
    layout.lfc_offset = (layout.meta_end + blob_alignment - 1) / blob_alignment * blob_alignment;
    layout.lfc_end = layout.size_bytes = layout.lfc_offset;
    return tile;
  }

 private:
  u32 first_tile_[128];  // of each tensor, and behind the last one its end; then ~0
  u32 codec_[max_tensors];
  u64 array_[max_tensors];
  u64 blob_[max_tensors];
  u64 key_offset_[max_tensors];
  int count_ = 0;
};
static_assert(sizeof(tensor_batch) + sizeof(key_argument) <= 4096, "parameters of a kernel");

/// The calling warp's place among the shared storage of its block.
template <class Storage>
__device__ __forceinline__ Storage& rotation_storage_of_warp() {
  __shared__ Storage of_warps[warps_per_block];
  return of_warps[warp_index()];
}

/// Blocks of compression that shall fit on a multiprocessor without spills.
FURL_HD constexpr int min_blocks_of_compress_batch() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  return 6;
#else
  return 7;
#endif
}

/// Compresses tensors of one type, with rotated codes or without.
template <class T, bool Rotated, class Architectures>
__global__ void __launch_bounds__(block_threads, min_blocks_of_compress_batch())
    compress_batch(const FURL_GRID_CONSTANT tensor_batch batch, key_argument key_source) {
  const random_key key = key_source.get();
  for (u32 number = u32(first_tile()); number < batch.num_tiles; number += u32(tile_stride())) {
    const batch_tile tile = batch.find<Rotated>(number, key);
    tile_fragment<T> x;
    load_tile(reinterpret_cast<const T*>(tile.array) + tile.index * tile_elements, tile.count, x);
    if constexpr (Rotated) {
      auto& storage = rotation_storage_of_warp<compress_rotation_storage>();
      draw_signs(tile.index, tile.key, storage);
      compress_rotated_tile(tile.layout, tile.index, tile.count, x, storage, tile.blob);
    } else {
      compress_tile(tile.layout, tile.index, tile.count, x, tile.key, tile.blob);
    }
  }
}

/// Decompresses into tensors of one type, from codes of one kind.
template <class T, decoding Decoding, class Architectures>
__global__ void __launch_bounds__(block_threads, 7)
    decompress_batch(const FURL_GRID_CONSTANT tensor_batch batch, key_argument key_source) {
  constexpr bool is_rotated = Decoding == decoding::rotated;
  random_key key{};
  if constexpr (Decoding != decoding::plain) key = key_source.get();
  for (u32 number = u32(first_tile()); number < batch.num_tiles; number += u32(tile_stride())) {
    const batch_tile tile = batch.find<is_rotated>(number, key);
    tile_fragment<T> out;
    const auto write = [&](const auto& loaded) {
      FURL_UNROLL
      for (int row = 0; row < rows_per_tile; ++row) {
        float values[4];
        dequantize_row(loaded, row, values);
        saturate_row<T>(values, out.word[row]);
      }
    };
    if constexpr (is_rotated) {
      auto& storage = rotation_storage_of_warp<decompress_rotation_storage>();
      draw_signs(tile.index, tile.key, storage);
      write(load_rotated_tile(tile.layout, tile.index, tile.blob, storage));
    } else {
      coded_tile coded;
      load_coded_tile(tile.layout, tile.index, tile.count, tile.blob, coded);
      if constexpr (Decoding == decoding::dithered) {
        write(dither(coded, tile.index, tile.key));
      } else {
        write(coded);
      }
    }
    store_tile(reinterpret_cast<T*>(tile.array) + tile.index * tile_elements, tile.count, out);
  }
}

#if !defined(__CUDACC_RTC__)

inline decoding decoding_of(const plan& p) {
  if (p.is_rotated()) return decoding::rotated;
  return p.needs_key() ? decoding::dithered : decoding::plain;
}

/// Launches a kernel for the entries with arrays of T whose plans are of a kind, as many at a time
/// as there is room for.
template <class T, class Entry, class IsOfKind>
status launch_batches(span<const Entry> batch, const IsOfKind& is_of_kind,
                      void (*kernel)(tensor_batch, key_argument), const key_argument& key,
                      cudaStream_t stream) {
  tensor_batch tensors;
  const auto launch_tensors = [&]() -> status {
    if (tensors.num_tiles == 0) return {};
    return launch(kernel, {blocks_for(tensors.num_tiles)}, stream, tensors, key);
  };
  for (i64 i = 0; i < batch.size; ++i) {
    const Entry& e = batch.data[i];
    const const_values array = detail::elements_of(e).array;
    if (array.num_elements == 0 || array.type != dtype_of<T>::value || !is_of_kind(*e.plan))
      continue;
    if (!tensors.has_room_for(*e.plan)) {
      if (const status s = launch_tensors(); !s) return s;
      tensors = {};
    }
    tensors.add(*e.plan, array.data, e.blob.data, e.key_offset);
  }
  return launch_tensors();
}

#endif

}  // namespace furl::kernel

FURL_HIDDEN_END
