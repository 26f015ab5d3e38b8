// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// How decompress and decompress_add work on the host: one tile after the other.

#include <cstring>
#include <type_traits>

#include "furl/config.hpp"
#include "furl/detail/host/expand.hpp"
#include "furl/detail/host/lines.hpp"
#include "furl/detail/host/positives.hpp"
#include "furl/detail/host/random.hpp"
#include "furl/detail/host/rotated.hpp"
#include "furl/detail/host/statistics.hpp"
#include "furl/detail/host/tile.hpp"
#include "furl/detail/host/work.hpp"
#include "furl/detail/statistics.hpp"
#include "furl/plan.hpp"
#include "furl/types.hpp"

FURL_HIDDEN_BEGIN

namespace furl::host::detail {

enum class output { replace, accumulate };

template <class T, output Output>
class decompressor {
 public:
  /// y: all elements, or null if tiles go elsewhere.
  decompressor(const plan& p, const u8* blob, u8* y, random_key key, const_bytes tile_bits,
               const statistics& given = {})
      : plan_(p),
        blob_(blob),
        y_(y),
        key_(key),
        cursor_(p, tile_bits),
        normaliser_(given),
        lfc_(p, blob + p.lfc_offset(), expanded_),
        rotated_(key, p.codec().bits, p.has_mask() ? 2 : 1) {}

  void decompress_tile(i64 tile) {
    decompress_tile(tile, plan_.fills_lines() ? y_ : y_ + tile * tile_elements * i64(sizeof(T)));
  }

  /// The same with y at the tile's first element.
  void decompress_tile(i64 tile, u8* y) {
    cursor_.move_to(tile);
    const i64 first = tile * tile_elements;
    const int count = elements_in_tile(plan_, tile);
    // Values that need no more than to be written are written straight away.
    const bool is_final = Output == output::replace && is_aligned_float<T>(y) &&
                          count == tile_elements && !plan_.fills_lines();
    float* const v = is_final ? reinterpret_cast<float*>(y) : values_;
    if (plan_.has_lfc())
      lfc_.for_each_run(first, count, [this](int at, const float* lfc, int length) {
        copy(lfc, length, lfc_values_ + at);
      });
    if (plan_.is_rotated()) {
      restore_rotated(tile, count, v);
    } else {
      load_codes(blob_ + cursor_.offset(), cursor_.bits(), codes_);
      dequantize_tile(tile, count, v);
    }
    if (normaliser_.is_given()) normaliser_.denormalise(first, count, v);
    if (plan_.fills_lines()) {
      for_each_line_part(plan_, tile, count, [this](const line_part& part) {
        if (part.present > 0)
          put(values_ + part.at, part.present, y_ + part.element * i64(sizeof(T)));
      });
    } else if (!is_final) {
      put(values_, count, y);
    }
  }

 private:
  static constexpr bool is_float = ::std::is_same_v<T, float>;

  /// Values of the codes at hand, and of the absent ones of their last group.
  void dequantize_tile(i64 tile, int count, float* v) {
    const i64 first = tile * tile_elements;
    const bool is_dithered = plan_.codec().rounding == rounding::dithered;
    if (is_dithered) random_tile(u64(tile), key_, u_.word);
    const int group = plan_.codec().group;
    const dtype meta = plan_.codec().meta;
    const auto* const codes = reinterpret_cast<const u8*>(codes_.word);
    const auto* const u = reinterpret_cast<const u8*>(u_.word);
    const u8* const metadata = blob_ + plan_.meta_offset();
    for (int begin = 0; begin < count; begin += group) {
      const i64 pair = 2 * ((first + begin) / group);
      if (y_ != nullptr)
        prefetch_elements<T>(y_, plan_.num_elements(), first + tile_elements + begin, group);
      const float lo = load_meta(metadata, pair, meta);
      const float step = load_meta(metadata, pair + 1, meta);
      if (is_dithered) {
        dequantize_group(codes + begin, u + begin, group, lo, step, v + begin);
        if (plan_.has_lfc()) add_lfc(begin, group, v);
      } else if (plan_.has_lfc()) {
        dequantize_group(codes + begin, group, lo, step, lfc_values_ + begin, v + begin);
      } else {
        dequantize_group(codes + begin, group, lo, step, v + begin);
      }
    }
  }

  /// Values of a tile's rotated codes.
  void restore_rotated(i64 tile, int count, float* v) {
    if (y_ != nullptr)
      prefetch_elements<T>(y_, plan_.num_elements(), (tile + 1) * tile_elements, tile_elements);
    rotated_.decompress_tile(tile, blob_ + cursor_.offset(), blob_ + plan_.meta_offset(), v);
    if (plan_.has_lfc()) add_lfc(0, count, v);
    if (plan_.has_mask()) restore_positives(plan_, blob_, tile, codes_, v);
  }

  /// To values begin .. begin + count - 1, and up to expand_slack - 1 more. Pre: begin is a
  /// multiple of expand_slack.
  void add_lfc(int begin, int count, float* v) const {
    for (int j = begin; j < begin + count; j += expand_slack)
      for (int i = j; i < j + expand_slack; ++i) v[i] = canonical(add_rn(v[i], lfc_values_[i]));
  }

  /// Copies up to expand_slack floats beyond the count.
  static void copy(const float* __restrict from, int count, float* __restrict to) {
    for (int j = 0; j < count; j += expand_slack)
      for (int i = j; i < j + expand_slack; ++i) to[i] = from[i];
  }

  /// y = v, or y += that. Conversions from 16 bits come first, since one loop of both conversions
  /// does not vectorise.
  void put(const float* v, int count, u8* y) {
    if constexpr (Output == output::accumulate && !is_float) load_floats<T>(y, 0, count, before_);
    put_values(v, count, before_, y);
  }

  static void put_values(const float* __restrict v, int count, const float* __restrict before,
                         u8* __restrict y) {
    for (int i = 0; i < count; ++i) {
      if constexpr (Output == output::replace) {
        store_at(y, i, saturate_to<T>(v[i]));
      } else {
        const float old = is_float ? load_at<float>(y, i) : before[i];
        store_at(y, i, round_to<T>(add_rn(old, v[i])));
      }
    }
  }

  const plan& plan_;
  const u8* const blob_;
  u8* const y_;
  const random_key key_;
  tile_cursor cursor_;
  const normaliser normaliser_;
  lfc_reader lfc_;
  rotated_decompressor rotated_;
  tile_bytes codes_;
  tile_bytes u_;  // of dithered codes
  alignas(64) float expanded_[lfc_reader::num_expanded] = {};
  alignas(64) float lfc_values_[tile_elements + expand_slack] = {};
  alignas(64) float values_[tile_elements] = {};
  alignas(64) float before_[tile_elements] = {};  // what y held
};

template <output Output>
status decompress_to(const plan& p, const_bytes blob, values y, random_key key, const options& o) {
  if (const status s = furl::detail::check_coded(p, y, "y", blob); !s) return s;
  if (const status s = furl::detail::check_no_ranges(o.ranges); !s) return s;
  const furl::detail::named_bytes output = furl::detail::bytes_of(y, "y");
  if (const status s = furl::detail::check_statistics(p, o.statistics, o.ranges, output); !s)
    return s;
  if (const status s = check_bits_of_tiles(p, o.tile_bits, output); !s) return s;
  if (p.num_elements() == 0) return {};
  with_type(y.type, [&](auto element) {
    compute_shares(p.num_tiles(), o.pool, [&](i64 first, i64 last) {
      decompressor<decltype(element), Output> tiles(p, static_cast<const u8*>(blob.data),
                                                    static_cast<u8*>(y.data), key, o.tile_bits,
                                                    o.statistics);
      for (i64 tile = first; tile < last; ++tile) tiles.decompress_tile(tile);
    });
  });
  return {};
}

}  // namespace furl::host::detail

FURL_HIDDEN_END
