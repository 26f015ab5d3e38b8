// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Decompression in host memory, into an array or added to one.

#include <algorithm>

#include "furl/config.hpp"
#include "furl/host/arguments.hpp"
#include "furl/host/expand.hpp"
#include "furl/host/float_environment.hpp"
#include "furl/host/tile.hpp"
#include "furl/plan.hpp"
#include "furl/status.hpp"
#include "furl/view.hpp"

namespace furl::host {

namespace detail {

enum class output { replace, accumulate };

template <class T, output Output>
class decompressor {
 public:
  decompressor(const plan& p, const u8* blob, void* y, const_bytes widths)
      : plan_(p), blob_(blob), y_(y), cursor_(p, widths), lfc_(p, blob + p.lfc_offset()) {}

  void decompress_tile(i64 tile) {
    cursor_.move_to(tile);
    const i64 first = tile * tile_elements;
    const int count = int(std::min<i64>(tile_elements, plan_.num_elements() - first));
    load_codes(blob_ + cursor_.offset(), cursor_.bits(), codes_);

    float* const v = direct_output(first, count);
    float* const target = v != nullptr ? v : values_;
    const int group = plan_.codec().group;
    const dtype meta = plan_.codec().meta;
    const auto* const codes = reinterpret_cast<const u8*>(codes_.word);
    const u8* const metadata = blob_ + plan_.meta_offset();
    for (int begin = 0; begin < count; begin += group) {
      const i64 pair = 2 * ((first + begin) / group);
      prefetch_next(first + tile_elements + begin, group);
      dequantize_group(codes + begin, group, load_meta(metadata, pair, meta),
                       load_meta(metadata, pair + 1, meta), target + begin);
    }
    if (v != nullptr) return;
    if (plan_.has_lfc()) {
      lfc_.visit(first, count, [&](int from, int length, const float* lfc) {
        add_to(values_ + from, lfc, length);
      });
    }
    store_values(first, count);
  }

 private:
  /// Where values can be written straight away: nothing left to add, convert or cut off.
  float* direct_output(i64 first, int count) const {
    if constexpr (std::is_same_v<T, float> && Output == output::replace) {
      float* const y = static_cast<float*>(y_) + first;
      if (count == tile_elements && !plan_.has_lfc() &&
          reinterpret_cast<std::uintptr_t>(y) % alignof(float) == 0)
        return y;
    }
    return nullptr;
  }

  void prefetch_next(i64 first, i64 count) const {
    count = std::min(count, plan_.num_elements() - first);
    prefetch(static_cast<const u8*>(y_) + first * i64(sizeof(T)), count * i64(sizeof(T)));
  }

  static void add_to(float* __restrict v, const float* __restrict lfc, int count) {
    for (int i = 0; i < count; ++i) v[i] = add(v[i], lfc[i]);
  }

  void store_values(i64 first, int count) {
    tile_elements_of<T> y;
    if constexpr (Output == output::accumulate) y.load(y_, first, count);
    for (int i = 0; i < tile_elements; ++i) {
      y.element[i] = Output == output::replace ? saturate_to<T>(values_[i])
                                               : round_to<T>(add(to_f32(y.element[i]), values_[i]));
    }
    y.store(y_, first, count);
  }

  const plan& plan_;
  const u8* const blob_;
  void* const y_;
  tile_cursor cursor_;
  lfc_reader lfc_;
  tile_bytes codes_;
  alignas(64) float values_[tile_elements] = {};
};

template <output Output>
status decompress_to(const plan& p, const_bytes blob, values y, const options& o) {
  if (const status s = check_call(p, {y.data, y.type, y.num_elements}, "y", blob, o); !s) return s;
  if (p.num_elements() == 0) return {};
  const int num_shares = o.pool == nullptr ? 1 : o.pool->num_threads();
  with_type(y.type, [&](auto element) {
    run_shares(o.pool, [&](int share) {
      const float_environment environment;
      decompressor<decltype(element), Output> tiles(p, static_cast<const u8*>(blob.data), y.data,
                                                    o.widths);
      const i64 last = share_begin(p.num_tiles(), share + 1, num_shares);
      for (i64 tile = share_begin(p.num_tiles(), share, num_shares); tile < last; ++tile)
        tiles.decompress_tile(tile);
    });
  });
  return {};
}

}  // namespace detail

/// Decompresses blob into y. Values beyond the largest finite f16 or bf16 become that one; f32
/// takes all values as they are. blob : host, the plan.size_bytes() bytes that compress wrote;
/// aligned to 16 bytes. y    : host, plan.num_elements() elements of any dtype, whatever x had, at
/// any alignment; all of
///        them are written; apart from the blob.
/// Errors: see status. Allocates nothing.
inline status decompress(const plan& p, const_bytes blob, values y, const options& o = {}) {
  return detail::decompress_to<detail::output::replace>(p, blob, y, o);
}

/// Adds the decompressed values to y, in f32, and rounds each sum once to y's type: an overflow
/// becomes infinity, for loss scalers to find. Otherwise as decompress.
inline status decompress_add(const plan& p, const_bytes blob, values y, const options& o = {}) {
  return detail::decompress_to<detail::output::accumulate>(p, blob, y, o);
}

}  // namespace furl::host
