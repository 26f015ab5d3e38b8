// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// How compress works on the host: shares of the bands and tiles, each of which makes the means of
// its cells and compresses its tiles; then what lies between shares.

#include <algorithm>

#include "furl/config.hpp"
#include "furl/detail/host/bands.hpp"
#include "furl/detail/host/compress_tile.hpp"
#include "furl/detail/host/positives.hpp"
#include "furl/detail/host/sums.hpp"
#include "furl/detail/host/tile.hpp"
#include "furl/detail/host/work.hpp"
#include "furl/plan.hpp"
#include "furl/types.hpp"

FURL_HIDDEN_BEGIN

namespace furl::host::detail {

/// The work in units that can be done apart: bands, so that each cell has one writer, or tiles.
struct work {
  const plan& p;

  i64 num_units() const { return p.has_lfc() ? p.grid().num_bands() : p.num_tiles(); }
  /// First unit of a share, for share 0..num_shares.
  i64 unit(int share, int num_shares) const { return share_begin(num_units(), share, num_shares); }
  /// First element of a unit, for unit 0..num_units().
  i64 element(i64 unit) const {
    return p.has_lfc() ? p.grid().band_begin(unit)
                       : (::std::min)(unit * tile_elements, p.num_codes());
  }
};

/// Compresses the tiles of a share that lie in it whole, each as soon as the means of its bands are
/// made, while its elements are still in the cache.
template <class T>
void compress_share(const plan& p, const_values x, bytes blob, random_key key, const options& o,
                    int share, int num_shares) {
  const float_environment environment;
  const work all{p};
  const i64 last = all.unit(share + 1, num_shares);
  i64 unit = all.unit(share, num_shares);
  i64 tile = (all.element(unit) + tile_elements - 1) / tile_elements;
  const i64 elements = p.has_lfc() ? p.grid().band_elements() : tile_elements;  // of a unit
  const i64 units_per_batch = ::std::max<i64>(1, elements_per_batch(p) / elements);
  compress_scratch scratch{};
  compressor tiles(p, x, blob, key, o, scratch.tile);
  while (unit < last) {
    const i64 next = (::std::min)(last, unit + units_per_batch);
    if (p.has_lfc()) {
      average_bands<T>(p, x.data, static_cast<u8*>(blob.data), unit, next, scratch.means);
      tiles.forget();
    }
    const i64 end = all.element(next);
    for (; (tile + 1) * tile_elements <= end; ++tile) tiles.compress_tile<T>(tile);
    unit = next;
  }
}

/// Residuals of bands until their tiles are coded.
struct band_scratch {
  means_scratch means;
  alignas(64) float residuals[band_batch_elements + tile_elements + 8];
};

/// Whether bands are short enough for compress_bands.
inline bool has_short_bands(const plan& p) {
  return band_means::apply_to(p) && p.grid().window[2] == 8 &&
         p.grid().band_elements() <= band_batch_elements;
}

/// The same where bands make the residuals of their elements themselves.
template <class T>
void compress_bands(const plan& p, const_values x, bytes blob, random_key key, const options& o,
                    int share, int num_shares) {
  const float_environment environment;
  const work all{p};
  const i64 last = all.unit(share + 1, num_shares);
  tile_scratch scratch{};
  band_scratch bands{};
  compressor tiles(p, x, blob, key, o, scratch);
  band_means means(p, x.data, static_cast<u8*>(blob.data) + p.lfc_offset(), bands.means);
  const i64 at_once = (::std::min)(band_batch_elements / p.grid().band_elements(),
                                   cell_list::most / means.cells_of_band());
  float* const r = bands.residuals;
  auto at = means.place_of(all.unit(share, num_shares));
  i64 tile = at.element / tile_elements;                        // of the first residual in r
  i64 next = (at.element + tile_elements - 1) / tile_elements;  // tile to be coded
  while (at.band < last) {
    const i64 some = (::std::min)(at_once, last - at.band);
    const i64 kept = at.element - tile * tile_elements;
    means.average<T>(at, some);
    means.subtract<T>(at, some, r + kept);
    for (; (next + 1) * tile_elements <= at.element; ++next)
      tiles.code_tile<T>(next, r + (next - tile) * tile_elements);
    if (next * tile_elements > at.element) continue;  // the first is another share's
    const float* const rest = r + (next - tile) * tile_elements;
    ::std::copy(rest, rest + (at.element - next * tile_elements), r);
    tile = next;
  }
}

/// Compresses what the shares have left: tiles that more than one share holds a part of, and a
/// partial last one. Zeroes the padding between the parts of the blob.
template <class T>
void finish_compress(const plan& p, const_values x, bytes blob, random_key key, const options& o,
                     int num_shares) {
  const float_environment environment;
  const work all{p};
  tile_scratch scratch{};
  compressor tiles(p, x, blob, key, o, scratch);
  i64 done = -1;
  for (int share = 1; share <= num_shares; ++share) {
    const i64 boundary = all.element(all.unit(share, num_shares));
    const i64 tile = boundary / tile_elements;
    if (boundary % tile_elements == 0 || tile == done) continue;
    tiles.compress_tile<T>(tile);
    done = tile;
  }
  const u64 lfc_end = p.lfc_offset() + u64(p.num_cells()) * u64(size_bytes(p.codec().meta));
  u8* const base = static_cast<u8*>(blob.data);
  ::std::fill(base + p.meta_end(), base + p.lfc_offset(), u8(0));
  ::std::fill(base + lfc_end, base + p.size_bytes(), u8(0));
}

/// compress with arguments that fit each other. Pre: the plan has elements.
inline void compress(const plan& p, const_values x, bytes blob, random_key key, const options& o) {
  if (p.has_mask()) return compress_positives(p, x, nullptr, blob, key, o.pool);
  const int num_shares = count_shares(o.pool);
  with_type(x.type, [&](auto element) {
    using type = decltype(element);
    const bool by_bands = has_short_bands(p);
    run_shares(o.pool, [&](int share) {
      if (by_bands) {
        compress_bands<type>(p, x, blob, key, o, share, num_shares);
      } else {
        compress_share<type>(p, x, blob, key, o, share, num_shares);
      }
    });
    finish_compress<type>(p, x, blob, key, o, num_shares);
  });
}

}  // namespace furl::host::detail

FURL_HIDDEN_END
