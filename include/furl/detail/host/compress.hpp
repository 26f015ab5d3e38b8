// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Compression in host memory. Tiles in parallel over the threads of a pool, the same bytes for any
// number of them.

#include <algorithm>
#include <cstring>

#include "furl/config.hpp"
#include "furl/detail/host/bands.hpp"
#include "furl/detail/host/expand.hpp"
#include "furl/detail/host/pool.hpp"
#include "furl/detail/host/random.hpp"
#include "furl/detail/host/tile.hpp"
#include "furl/detail/host/work.hpp"
#include "furl/detail/ranges.hpp"
#include "furl/plan.hpp"
#include "furl/types.hpp"

FURL_HIDDEN_BEGIN

namespace furl::host {

namespace detail {

/// Elements that are pooled before their tiles are compressed, unless a band has more.
inline constexpr i64 batch_elements = 16 * tile_elements;  // cells to be found in the L2 cache
inline constexpr i64 banded_batch_elements = 2 * tile_elements;  // residuals to be found in the L1

class compressor {
 public:
  compressor(const plan& p, const_values x, bytes blob, random_key key, const options& o)
      : plan_(p),
        prefetch_distance_(next_read(p)),
        x_(x),
        blob_(static_cast<u8*>(blob.data)),
        key_(key),
        cursor_(p, o.tile_bits),
        given_(p, o.ranges),
        lfc_(p, blob_ + p.lfc_offset()) {
    if (p.codec().rounding == rounding::nearest)
      std::fill(std::begin(u_.word), std::end(u_.word), in_each_byte(nearest_bits));
  }

  /// Tile of the tensor. Pre: the LFC of all its elements is in the blob.
  template <class T>
  void compress_tile(i64 tile) {
    const i64 first = tile * tile_elements;
    const int count = elements_in_tile(plan_, tile);
    compress_residuals<T>(tile, residuals<T>(first, count), count);
  }

  /// The same for residuals that are known. Absent ones repeat the last of `count`.
  template <class T>
  void compress_residuals(i64 tile, const float* r, int count) {
    cursor_.move_to(tile);
    const i64 first = tile * tile_elements;
    if (plan_.codec().rounding == rounding::stochastic) random_tile(u64(tile), key_, u_.word);

    const int group = plan_.codec().group;
    const dtype meta = plan_.codec().meta;
    auto* const codes = reinterpret_cast<u8*>(codes_.word);
    const auto* const u = reinterpret_cast<const u8*>(u_.word);
    u8* const metadata = blob_ + plan_.meta_offset();
    for (int begin = 0; begin < count; begin += group) {
      prefetch_elements<T>(x_.data, plan_.num_elements(), first + begin + prefetch_distance_,
                           group);
      range ends = min_max(r + begin, group);
      const float* coded = r + begin;
      if (given_.pairs != nullptr && !is_nan(ends.lo) && !is_nan(ends.hi)) {
        ends = given_.hull(first + begin, first + (std::min)(begin + group, count) - 1);
        saturate(r + begin, group, ends, saturated_);
        coded = saturated_;
      }
      const group_params params = make_group(ends.lo, ends.hi, cursor_.bits(), meta);
      quantize_group(coded, group, params, u + begin, codes + begin);
      const i64 pair = 2 * ((first + begin) / group);
      store_meta(metadata, pair, meta, params.lo);
      store_meta(metadata, pair + 1, meta, params.step);
    }
    std::memset(codes + count, 0, static_cast<std::size_t>(tile_elements - count));
    store_codes(codes_, cursor_.bits(), blob_ + cursor_.offset());
  }

 private:
  /// Distance from an element being compressed to what is read next from memory: by the next tile,
  /// or by the pooling of the next batch.
  static i64 next_read(const plan& p) {
    if (!p.has_lfc()) return tile_elements;
    const i64 batch = band_pooler::apply_to(p) ? banded_batch_elements : batch_elements;
    return (std::max)(batch, p.grid().band_elements());
  }

  /// The tile's elements less their LFC. Absent ones repeat the last, so as not to widen its group.
  template <class T>
  const float* residuals(i64 first, int count) {
    const float* const x = elements<T>(first, count);
    if (plan_.has_lfc()) subtract(x, lfc_.values_of(first, count), count, residuals_);
    if (count == tile_elements) return plan_.has_lfc() ? residuals_ : x;
    if (!plan_.has_lfc()) std::copy(x, x + count, residuals_);
    std::fill(residuals_ + count, residuals_ + tile_elements, residuals_[count - 1]);
    return residuals_;
  }

  /// The tile's elements, in place where these and expand_slack more can be read so.
  template <class T>
  const float* elements(i64 first, int count) {
    const void* const x = static_cast<const u8*>(x_.data) + first * i64(sizeof(T));
    if (is_aligned_float<T>(x) && plan_.num_elements() - first >= tile_elements + expand_slack)
      return static_cast<const float*>(x);
    load_floats<T>(x, 0, count, elements_);
    return elements_;
  }

  /// r = x - lfc, up to expand_slack floats beyond the count.
  static void subtract(const float* __restrict x, const float* __restrict lfc, int count,
                       float* __restrict r) {
    for (int j = 0; j < count; j += expand_slack)
      for (int i = j; i < j + expand_slack; ++i) r[i] = sub_rn(x[i], lfc[i]);
  }

  const plan& plan_;
  const i64 prefetch_distance_;
  const const_values x_;
  u8* const blob_;
  const random_key key_;
  tile_cursor cursor_;
  const range_map given_;
  lfc_reader lfc_;
  tile_bytes u_;
  tile_bytes codes_;
  alignas(64) float elements_[tile_elements + expand_slack] = {};
  alignas(64) float residuals_[tile_elements + expand_slack];
  alignas(64) float saturated_[tile_elements] = {};  // of a group
};

/// The work in units that can be done apart: bands, so that each cell has one writer, or tiles.
struct work {
  const plan& p;

  i64 num_units() const { return p.has_lfc() ? p.grid().num_bands() : p.num_tiles(); }
  /// First unit of a share, for share 0..num_shares.
  i64 unit(int share, int num_shares) const { return share_begin(num_units(), share, num_shares); }
  /// First element of a unit, for unit 0..num_units().
  i64 element(i64 unit) const {
    return p.has_lfc() ? p.grid().band_begin(unit)
                       : (std::min)(unit * tile_elements, p.num_elements());
  }
};

/// Pools the bands of a share and compresses the tiles that lie in it whole, each as soon as its
/// bands are pooled, while its elements are still in the cache.
template <class T>
void compress_share(const plan& p, const_values x, bytes blob, random_key key, const options& o,
                    int share, int num_shares) {
  const float_environment environment;
  const work all{p};
  const i64 last = all.unit(share + 1, num_shares);
  i64 unit = all.unit(share, num_shares);
  i64 tile = (all.element(unit) + tile_elements - 1) / tile_elements;
  const i64 units_per_batch =
      std::max<i64>(1, batch_elements / (p.has_lfc() ? p.grid().band_elements() : tile_elements));
  compressor tiles(p, x, blob, key, o);
  while (unit < last) {
    const i64 next = (std::min)(last, unit + units_per_batch);
    if (p.has_lfc()) pool_bands<T>(p, x.data, static_cast<u8*>(blob.data), unit, next);
    const i64 end = all.element(next);
    for (; (tile + 1) * tile_elements <= end; ++tile) tiles.compress_tile<T>(tile);
    unit = next;
  }
}

/// As compress_share where band_pooler applies: residuals come with the means.
template <class T>
void compress_banded_share(const plan& p, const_values x, bytes blob, random_key key,
                           const options& o, int share, int num_shares) {
  const float_environment environment;
  const work all{p};
  const i64 last = all.unit(share + 1, num_shares);
  const i64 units_per_batch = std::max<i64>(1, banded_batch_elements / p.grid().band_elements());
  i64 unit = all.unit(share, num_shares);
  i64 tile = (all.element(unit) + tile_elements - 1) / tile_elements;
  compressor tiles(p, x, blob, key, o);
  band_pooler cells(p, x.data, static_cast<u8*>(blob.data) + p.lfc_offset());
  alignas(64) float residuals[band_pooler::max_band_elements + tile_elements + band_pooler::slack];
  i64 begin = all.element(unit);  // of the residuals at hand
  i64 end = begin;
  while (unit < last) {
    const i64 next = (std::min)(last, unit + units_per_batch);
    cells.pool<T>(unit, next, residuals + (end - begin));
    unit = next;
    end = all.element(unit);
    for (; (tile + 1) * tile_elements <= end; ++tile)
      tiles.compress_residuals<T>(tile, residuals + (tile * tile_elements - begin), tile_elements);
    const i64 kept = (std::min)(end, tile * tile_elements);  // of a tile that is not complete
    std::copy(residuals + (kept - begin), residuals + (end - begin), residuals);
    begin = kept;
  }
}

/// Compresses what the shares have left: tiles that more than one share holds a part of, and a
/// partial last one. Zeroes the padding between the parts of the blob.
template <class T>
void finish_compress(const plan& p, const_values x, bytes blob, random_key key, const options& o,
                     int num_shares) {
  const float_environment environment;
  const work all{p};
  compressor tiles(p, x, blob, key, o);
  i64 done = -1;
  for (int share = 1; share <= num_shares; ++share) {
    const i64 boundary = all.element(all.unit(share, num_shares));
    const i64 tile = boundary / tile_elements;
    if (boundary % tile_elements == 0 || tile == done) continue;
    tiles.compress_tile<T>(tile);
    done = tile;
  }
  const u64 meta_bytes = u64(size_bytes(p.codec().meta));
  const u64 meta_end = p.meta_offset() + u64(p.num_groups()) * 2 * meta_bytes;
  const u64 lfc_end = p.lfc_offset() + u64(p.num_cells()) * meta_bytes;
  u8* const base = static_cast<u8*>(blob.data);
  std::fill(base + meta_end, base + p.lfc_offset(), u8(0));
  std::fill(base + lfc_end, base + p.size_bytes(), u8(0));
}

}  // namespace detail

}  // namespace furl::host

FURL_HIDDEN_END
