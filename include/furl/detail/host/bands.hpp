// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The low-frequency component on the host where the rows of cells are vectors, as with 8 x 8: means
// and residuals in one go, while the elements are in the L1 cache.

#include <algorithm>

#include "furl/config.hpp"
#include "furl/detail/cells.hpp"
#include "furl/detail/host/expand.hpp"
#include "furl/detail/host/sums.hpp"
#include "furl/detail/host/tile.hpp"
#include "furl/plan.hpp"

FURL_HIDDEN_BEGIN

namespace furl::host::detail {

/// Pools bands, each a row of cells. Cells at the edge are filled up with +0 to whole ones, which
/// is what the tree does too (FORMAT.md, A2).
class band_pooler {
 public:
  static constexpr i64 max_band_elements = 8 * tile_elements;
  static constexpr int slack = expand_slack;  // floats that may be written behind the residuals

  /// Whether the rows of cells are vectors, and bands follow each other in memory. With one pooled
  /// dimension bands are single cells, and must be whole.
  static bool apply_to(const plan& p) {
    const cell_grid& g = p.grid();
    const int width = g.window[2];
    if (!p.has_lfc() || g.inner > 1 || width < vector || (width & (width - 1)) != 0) return false;
    if (g.first_pooled == 2) return g.extent[2] % width == 0;
    return g.first_pooled == 1 && g.cells[2] * width <= max_band_elements / g.window[1];
  }

  band_pooler(const plan& p, const void* x, u8* lfc)
      : plan_(p),
        x_(x),
        lfc_(lfc),
        window_rows_(p.grid().window[1]),
        width_(p.grid().window[2]),
        is_one_row_(p.grid().first_pooled == 2),
        columns_(is_one_row_ ? width_ : int(p.grid().extent[2])),
        cells_(is_one_row_ ? 1 : int(p.grid().cells[2])),
        in_place_(is_one_row_ ||
                  (columns_ % width_ == 0 && p.grid().extent[1] % window_rows_ == 0)),
        bands_at_once_(std::max<i64>(1, chunk_elements / (i64(window_rows_) * cells_ * width_))) {
    for (int i = 0; i < vector; ++i) in_row_[i] = i < columns_ % vector ? ~0u : 0u;
  }

  /// Writes the means of bands first..last - 1 into the blob, and their residuals to r.
  template <class T>
  void pool(i64 first, i64 last, float* r) {
    for (i64 some = 0; first < last; first += some) {
      some = (std::min)(bands_at_once_, last - first);
      const i64 begin = plan_.grid().band_begin(first);
      const int count = int(plan_.grid().band_begin(first + some) - begin);
      const float* const x = elements<T>(begin, count);
      u8* const lfc = lfc_ + first * (is_one_row_ ? 1 : cells_) * size_bytes(plan_.codec().meta);
      if (is_one_row_) {
        columns_ = count;
        cells_ = int(some);
      }
      const int bands = is_one_row_ ? 1 : int(some);
      pool_chunk(x, first, bands, lfc);
      subtract(x, first, bands, r);
      r += count;
    }
  }

 private:
  static constexpr int vector = 8;
  static constexpr i64 chunk_elements = 2 * tile_elements;

  /// Calls function(band, rows) for bands 0..bands - 1 from `first` on, with the rows of elements
  /// that each has: fewer at the end of a plane.
  template <class Function>
  void for_each_band(i64 first, int bands, const Function& function) const {
    const i64 extent = plan_.grid().extent[1];
    i64 left = extent - first % plan_.grid().cells[1] * window_rows_;
    for (int band = 0; band < bands; ++band) {
      const int rows = int(std::min<i64>(window_rows_, left));
      function(band, rows);
      left -= rows;
      if (left == 0) left = extent;
    }
  }

  /// Means of `bands` bands from `first` on, to means_ and into the blob.
  void pool_chunk(const float* x, i64 first, int bands, u8* lfc) {
    const int count = bands * cells_;
    float* const sums = add_neighbours(in_place_ ? x : fill_up(x, first, bands),
                                       count * window_rows_, width_, sums_, other_sums_);
    if (in_place_) {
      for (int band = 0; band < bands; ++band)
        add_rows(sums + band * window_rows_ * cells_, cells_, means_ + band * cells_);
    } else {
      add_rows(sums, count, means_);
    }
    const int last_width = columns_ - (cells_ - 1) * width_;
    for_each_band(first, bands, [&](int band, int rows) {
      float* const counts = counts_ + band * cells_;
      for (int cell = 0; cell < cells_; ++cell) counts[cell] = float(rows * width_);
      counts[cells_ - 1] = float(rows * last_width);
    });
    const dtype meta = plan_.codec().meta;
    to_lfc(means_, counts_, count, meta);
    store_lfc(means_, count, meta, lfc);
  }

  /// Whole cells, as (row of the window, band, column): few cells of many bands make long vectors.
  const float* fill_up(const float* x, i64 first, int bands) {
    const int filled = cells_ * width_;
    for_each_band(first, bands, [&](int band, int rows) {
      float* out = filled_ + band * filled;
      for (int row = 0; row < window_rows_; ++row, out += bands * filled) {
        const int present = row < rows ? columns_ : 0;
        fill_up_row(x, present, filled, out);
        x += present;
      }
    });
    return filled_;
  }

  /// Pre: `present` is columns_ or 0.
  void fill_up_row(const float* __restrict x, int present, int filled,
                   float* __restrict out) const {
    int j = 0;
    for (; j + vector <= present; j += vector)
      for (int i = j; i < j + vector; ++i) out[i] = x[i];
    if (j < present) {
      for (int i = 0; i < vector; ++i) out[j + i] = float_of(bits_of(x[j + i]) & in_row_[i]);
      j += vector;
    }
    for (; j < filled; j += vector)
      for (int i = j; i < j + vector; ++i) out[i] = 0.0f;
  }

  /// out[i] = the tree over sums[i], sums[i + count] .., of as many rows as a window has.
  void add_rows(float* sums, int count, float* out) const {
    if (window_rows_ == vector) return add_eight_rows(sums, count, count, out);
    add_vectors(sums, window_rows_, count, count);
    std::copy(sums, sums + count, out);
  }

  /// Residuals of `bands` bands from `first` on.
  void subtract(const float* x, i64 first, int bands, float* r) {
    for_each_band(first, bands, [&](int band, int rows) {
      expand(means_ + band * cells_);
      for (; rows > 0; --rows, x += columns_, r += columns_) subtract_row(x, r);
    });
  }

  /// A band's means become those of the elements of a row.
  void expand(const float* __restrict means) {
    float* __restrict out = row_;
    for (int cell = 0; cell < cells_; ++cell) {
      const float mean = means[cell];
      for (int j = 0; j < width_; j += vector, out += vector)
        for (int i = 0; i < vector; ++i) out[i] = mean;
    }
  }

  void subtract_row(const float* __restrict x, float* __restrict r) const {
    for (int j = 0; j < columns_; j += vector)
      for (int i = j; i < j + vector; ++i) r[i] = sub_rn(x[i], row_[i]);
  }

  /// Elements as floats, and `slack` more that mean nothing: where they are, or in the scratch.
  template <class T>
  const float* elements(i64 first, int count) {
    const void* const x = static_cast<const u8*>(x_) + first * i64(sizeof(T));
    if (is_aligned_float<T>(x) && plan_.num_elements() - first >= count + slack)
      return static_cast<const float*>(x);
    load_floats<T>(x, 0, count, elements_);
    std::fill(elements_ + count, elements_ + count + slack, 0.0f);
    return elements_;
  }

  const plan& plan_;
  const void* const x_;
  u8* const lfc_;
  const int window_rows_;
  const int width_;        // of a cell
  const bool is_one_row_;  // bands are cells, and those of a chunk one row
  int columns_;
  int cells_;            // of a band
  const bool in_place_;  // whether all cells are whole
  const i64 bands_at_once_;
  u32 in_row_[vector];  // all ones for elements of the last vector that are the row's
  static constexpr int max_sums = int(max_band_elements) / vector + vector;
  alignas(64) float elements_[max_band_elements + slack];
  alignas(64) float filled_[max_band_elements];
  alignas(64) float sums_[max_sums] = {};
  alignas(64) float other_sums_[max_sums] = {};
  alignas(64) float means_[max_sums] = {};
  alignas(64) float counts_[max_sums];
  alignas(64) float row_[max_band_elements];  // the mean of each element of a row
};

}  // namespace furl::host::detail

FURL_HIDDEN_END
