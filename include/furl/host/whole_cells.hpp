// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The low-frequency component on the host where cells divide the tensor evenly, as 8 x 8 does a
// plane of 56 x 56: means and residuals in one go, while the elements are in the L1 cache.

#include <algorithm>

#include "furl/config.hpp"
#include "furl/element/pool.hpp"
#include "furl/host/sums.hpp"
#include "furl/host/tile.hpp"
#include "furl/plan.hpp"

FURL_HIDDEN_BEGIN

namespace furl::host::detail {

class whole_cells {
 public:
  static constexpr i64 max_band_elements = 8 * tile_elements;

  /// Whether all cells are whole, their rows are vectors, and so bands follow each other in memory
  /// with nothing between them.
  static bool apply_to(const plan& p) {
    const cell_grid& g = p.grid();
    const int width = g.window[2];
    return p.has_lfc() && g.inner == 1 && g.first_pooled > 0 && width >= 8 &&
           (width & (width - 1)) == 0 && g.extent[2] % width == 0 &&
           g.extent[1] % g.window[1] == 0 && g.band_elements() <= max_band_elements;
  }

  whole_cells(const plan& p, const void* x, u8* lfc)
      : plan_(p),
        x_(x),
        lfc_(lfc),
        rows_(p.grid().window[1]),
        width_(p.grid().window[2]),
        cells_(int(p.grid().band_elements()) / (rows_ * width_)) {}

  /// Writes the means of bands first..last - 1 into the blob, and their residuals to r.
  template <class T>
  void pool(i64 first, i64 last, float* r) {
    const i64 band_elements = plan_.grid().band_elements();
    const i64 at_once = std::max<i64>(1, chunk_elements / band_elements);
    for (i64 some = 0; first < last; first += some, r += some * band_elements) {
      some = (std::min)(at_once, last - first);
      const int count = int(some * band_elements);
      const float* const x = elements<T>(first * band_elements, count);
      const float* const means = pool_chunk(x, int(some), first);
      for (int band = 0; band < int(some); ++band) {
        const i64 begin = band * band_elements;
        subtract(x + begin, means + band * cells_, r + begin);
      }
    }
  }

 private:
  static constexpr i64 chunk_elements = 2 * tile_elements;

  /// Means of `bands` bands from `first` on, into the blob too.
  const float* pool_chunk(const float* x, int bands, i64 first) {
    const dtype meta = plan_.codec().meta;
    float* means = add_neighbours(x, bands * rows_ * cells_, width_, sums_, means_);
    if (rows_ > 1) {
      float* const sums = means;
      means = sums == sums_ ? means_ : sums_;
      for (int band = 0; band < bands; ++band)
        add_rows(sums + band * rows_ * cells_, means + band * cells_);
    }
    to_lfc(means, bands * cells_, rows_ * width_, meta);
    store_lfc(means, bands * cells_, meta, lfc_ + first * cells_ * size_bytes(meta));
    return means;
  }

  void add_rows(float* sums, float* out) const {
    if (rows_ == 8) return add_eight_rows(sums, cells_, cells_, out);
    add_vectors(sums, rows_, cells_, cells_);
    std::copy(sums, sums + cells_, out);
  }

  /// Residuals of a band.
  void subtract(const float* __restrict x, const float* __restrict means,
                float* __restrict r) const {
    for (int row = 0; row < rows_; ++row) {
      for (int cell = 0; cell < cells_; ++cell) {
        const float mean = means[cell];
        for (int j = 0; j < width_; j += 8, x += 8, r += 8)
          for (int i = 0; i < 8; ++i) r[i] = sub(x[i], mean);
      }
    }
  }

  /// Elements as floats: where they are, or in the scratch.
  template <class T>
  const float* elements(i64 first, int count) {
    const void* const x = static_cast<const u8*>(x_) + first * i64(sizeof(T));
    if (is_aligned_float<T>(x)) return static_cast<const float*>(x);
    load_floats<T>(x, 0, count, elements_);
    return elements_;
  }

  const plan& plan_;
  const void* const x_;
  u8* const lfc_;
  const int rows_;   // of a cell
  const int width_;  // of a cell
  const int cells_;  // of a band
  alignas(64) float elements_[max_band_elements];
  alignas(64) float sums_[max_band_elements / 8 + 8] = {};
  alignas(64) float means_[max_band_elements / 8 + 8] = {};
};

}  // namespace furl::host::detail

FURL_HIDDEN_END
