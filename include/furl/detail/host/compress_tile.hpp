// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// How a tile is compressed on the host: its residuals, their codes and the metadata of its groups.

#include <algorithm>
#include <cstring>
#include <iterator>

#include "furl/config.hpp"
#include "furl/detail/host/bands.hpp"
#include "furl/detail/host/expand.hpp"
#include "furl/detail/host/lines.hpp"
#include "furl/detail/host/random.hpp"
#include "furl/detail/host/rotated.hpp"
#include "furl/detail/host/statistics.hpp"
#include "furl/detail/host/tile.hpp"
#include "furl/detail/quantize.hpp"
#include "furl/plan.hpp"
#include "furl/types.hpp"

FURL_HIDDEN_BEGIN

namespace furl::host::detail {

/// Elements that are averaged before their tiles are compressed, unless a band has more: those of
/// the next means are found in the L2 cache again, or in the L1 where bands are quick.
inline constexpr i64 batch_elements = 16 * tile_elements;
inline constexpr i64 band_batch_elements = 2 * tile_elements;

/// What the elements of groups become.
struct group_scratch {
  tile_bytes u;
  tile_bytes codes;
  alignas(64) float saturated[tile_elements];
};

/// What one tile needs while it is compressed.
struct tile_scratch {
  alignas(64) float elements[tile_elements + expand_slack];
  alignas(64) float residuals[tile_elements + expand_slack];
  alignas(64) float expanded[lfc_reader::num_expanded];
  union {
    group_scratch groups;
    rotation_scratch rotation;
  };
};

/// All scratch of a thread: either means are made or tiles compressed.
union compress_scratch {
  means_scratch means;
  tile_scratch tile;
};

inline i64 elements_per_batch(const plan& p) {
  return band_means::apply_to(p) ? band_batch_elements : batch_elements;
}

class compressor {
 public:
  compressor(const plan& p, const_values x, bytes blob, random_key key, const options& o,
             tile_scratch& scratch)
      : plan_(p),
        prefetch_distance_(next_read(p)),
        x_(x),
        blob_(static_cast<u8*>(blob.data)),
        key_(key),
        cursor_(p, o.tile_bits),
        given_(p, o.ranges),
        normaliser_(o.statistics),
        scratch_(scratch),
        lfc_(p, blob_ + p.lfc_offset(), scratch.expanded),
        rotated_(key, p.codec().bits, 1, scratch.rotation) {}

  /// To be called when the scratch has been used for something else.
  void forget() { lfc_.forget(); }

  /// Pre: the LFC of all the tile's elements is in the blob.
  template <class T>
  void compress_tile(i64 tile) {
    const i64 first = tile * tile_elements;
    const int count = elements_in_tile(plan_, tile);
    code_tile<T>(tile, residuals<T>(first, count));
  }

  /// The same of a tile whose residuals are given, absent ones too.
  template <class T>
  void code_tile(i64 tile, const float* r) {
    const i64 first = tile * tile_elements;
    const int count = elements_in_tile(plan_, tile);
    u8* const metadata = blob_ + plan_.meta_offset();
    cursor_.move_to(tile);
    if (plan_.is_rotated()) {
      prefetch_elements<T>(x_.data, plan_.num_elements(), first + prefetch_distance_,
                           tile_elements);
      rotated_.compress_tile(tile, r, blob_ + cursor_.offset(), metadata);
      return;
    }
    code_groups<T>(tile, r, count, metadata);
    tile_bytes& codes = scratch_.groups.codes;
    if (plan_.fills_lines()) clear_filled(plan_, tile, count, reinterpret_cast<u8*>(codes.word));
    ::std::memset(reinterpret_cast<u8*>(codes.word) + count, 0,
                  static_cast<::std::size_t>(tile_elements - count));
    store_codes(codes, cursor_.bits(), blob_ + cursor_.offset());
  }

 private:
  /// The codes of a tile's groups, and their metadata.
  template <class T>
  void code_groups(i64 tile, const float* r, int count, u8* metadata) {
    const i64 first = tile * tile_elements;
    group_scratch& scratch = scratch_.groups;
    if (plan_.codec().rounding != rounding::nearest) {
      random_tile(u64(tile), key_, scratch.u.word);
    } else {
      ::std::fill(::std::begin(scratch.u.word), ::std::end(scratch.u.word),
                  in_each_byte(nearest_bits));
    }
    const int group = plan_.codec().group;
    const dtype meta = plan_.codec().meta;
    auto* const codes = reinterpret_cast<u8*>(scratch.codes.word);
    const auto* const u = reinterpret_cast<const u8*>(scratch.u.word);
    for (int begin = 0; begin < count; begin += group) {
      prefetch_elements<T>(x_.data, plan_.num_elements(), first + begin + prefetch_distance_,
                           group);
      range ends = min_max(r + begin, group);
      const float* coded = r + begin;
      if (given_.pairs != nullptr && !is_nan(ends.lo) && !is_nan(ends.hi)) {
        ends = given_.hull(first + begin, first + (::std::min)(begin + group, count) - 1);
        saturate(r + begin, group, ends, scratch.saturated);
        coded = scratch.saturated;
      }
      const group_params params = make_group(ends.lo, ends.hi, cursor_.bits(), meta);
      quantize_group(coded, group, params, u + begin, codes + begin);
      const i64 pair = 2 * ((first + begin) / group);
      store_meta(metadata, pair, meta, params.lo);
      store_meta(metadata, pair + 1, meta, params.step);
    }
  }

  /// Distance from an element being compressed to what is read next from memory: by the next tile,
  /// or by the means of the next batch.
  static i64 next_read(const plan& p) {
    if (!p.has_lfc()) return tile_elements;
    return (::std::max)(elements_per_batch(p), p.grid().band_elements());
  }

  /// The tile's elements less their LFC, or normalised. Absent ones repeat the last, so as not to
  /// widen its group, or are 0, so as not to add to its block.
  template <class T>
  const float* residuals(i64 first, int count) {
    if (plan_.fills_lines()) {
      load_lines<T>(plan_, first / tile_elements, count, x_.data, scratch_.elements);
      return scratch_.elements;
    }
    const float* const x = elements<T>(first, count);
    if (!plan_.has_lfc() && !normaliser_.is_given() && count == tile_elements) return x;
    float* const r = scratch_.residuals;
    if (plan_.has_lfc()) {
      lfc_.for_each_run(first, count, [x, r](int at, const float* lfc, int length) {
        subtract(x + at, lfc, length, r + at);
      });
    } else if (normaliser_.is_given()) {
      normaliser_.normalise(first, count, x, r);
    } else {
      ::std::copy(x, x + count, r);
    }
    ::std::fill(r + count, r + tile_elements, plan_.is_rotated() ? 0.0f : r[count - 1]);
    return r;
  }

  /// The tile's elements, in place where these and expand_slack more can be read so.
  template <class T>
  const float* elements(i64 first, int count) {
    const void* const x = static_cast<const u8*>(x_.data) + first * i64(sizeof(T));
    if (is_aligned_float<T>(x) && plan_.num_elements() - first >= tile_elements + expand_slack)
      return static_cast<const float*>(x);
    load_floats<T>(x, 0, count, scratch_.elements);
    return scratch_.elements;
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
  const normaliser normaliser_;
  tile_scratch& scratch_;
  lfc_reader lfc_;
  rotated_compressor rotated_;
};

}  // namespace furl::host::detail

FURL_HIDDEN_END
