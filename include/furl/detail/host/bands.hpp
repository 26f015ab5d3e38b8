// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The means of cells on the host where the rows of cells are vectors, as with 8 x 8: by loops over
// whole bands, which are rows of cells.

#include <algorithm>

#include "furl/config.hpp"
#include "furl/detail/cells.hpp"
#include "furl/detail/host/means.hpp"
#include "furl/detail/host/sums.hpp"
#include "furl/detail/host/tile.hpp"
#include "furl/plan.hpp"

FURL_HIDDEN_BEGIN

namespace furl::host::detail {

/// Averages bands. Cells at the edge are filled up with +0 to whole ones, which is what the tree
/// does too (FORMAT.md, A2).
class band_means {
 public:
  /// Whether the rows of cells are vectors, and bands follow each other in memory. With one
  /// windowed dimension bands are single cells, and must be whole.
  static bool apply_to(const plan& p) {
    const cell_grid& g = p.grid();
    const int width = g.window[2];
    if (!p.has_lfc() || g.inner > 1 || width < vector || (width & (width - 1)) != 0) return false;
    if (g.first_pooled == 2) return g.extent[2] % width == 0;
    return g.first_pooled == 1 && width * g.window[1] <= means_scratch::num_terms;
  }

  band_means(const plan& p, const void* x, u8* lfc, means_scratch& scratch)
      : plan_(p),
        x_(x),
        lfc_(lfc),
        window_rows_(p.grid().window[1]),
        width_(p.grid().window[2]),
        is_one_row_(p.grid().first_pooled == 2),
        columns_(is_one_row_ ? width_ : p.grid().extent[2]),
        cells_(is_one_row_ ? 1 : p.grid().cells[2]),
        whole_((is_one_row_ || columns_ % width_ == 0) && p.grid().extent[1] % window_rows_ == 0),
        scratch_(scratch),
        sums_(scratch.sums + means_scratch::num_sums),
        means_(sums_ + means_scratch::num_sums),
        counts_(means_ + means_scratch::num_sums) {
    for (int i = 0; i < vector; ++i) in_row_[i] = i < columns_ % vector ? ~0u : 0u;
  }

  /// Writes the means of bands first..last - 1 into the blob.
  template <class T>
  void average(i64 first, i64 last) {
    const i64 filled = i64(window_rows_) * cells_ * width_;  // elements of a band of whole cells
    if (filled > means_scratch::num_terms) {
      for (; first < last; ++first) average_parts<T>(first);
      return;
    }
    const i64 at_once = means_scratch::num_terms / filled;
    for (i64 some = 0; first < last; first += some) {
      some = (::std::min)(at_once, last - first);
      const i64 begin = plan_.grid().band_begin(first);
      const i64 end = plan_.grid().band_begin(first + some);
      const float* const x = elements<T>(begin, int(end - begin));
      if (is_one_row_) {
        average_chunk(x, {first, 1, int(some), int(some) * width_});
      } else {
        average_chunk(x, {first, int(some), int(cells_), int(columns_)});
      }
    }
  }

 private:
  static constexpr int vector = 8;

  /// Cells of which the scratch holds all elements.
  struct chunk {
    i64 first;    // band, or cell where bands are cells
    int bands;    // as many rows of cells
    int cells;    // of each
    int columns;  // of elements
  };

  /// The means of a band too large for the scratch, a part of its columns after the other.
  template <class T>
  void average_parts(i64 band) {
    const cell_grid& g = plan_.grid();
    const i64 row = band % g.cells[1] * window_rows_;
    const int rows = int(::std::min<i64>(window_rows_, g.extent[1] - row));
    const i64 begin = g.band_begin(band);
    const i64 at_once = means_scratch::num_terms / (window_rows_ * width_);
    for (i64 cell = 0, some = 0; cell < cells_; cell += some) {
      some = (::std::min)(at_once, cells_ - cell);
      const int filled = int(some) * width_;
      const int present = int(::std::min<i64>(filled, columns_ - cell * width_));
      float* out = scratch_.rows;
      for (int r = 0; r < window_rows_; ++r, out += filled) {
        const int loaded = r < rows ? present : 0;
        load_floats<T>(x_, begin + r * columns_ + cell * width_, loaded, out);
        ::std::fill(out + loaded, out + filled, 0.0f);
      }
      add_neighbours(scratch_.rows, int(some) * window_rows_, width_, scratch_.sums, scratch_.terms,
                     sums_);
      add_rows(sums_, int(some), means_);
      store({band, 1, int(some), present}, cell);
    }
  }

  /// Means of a chunk whose elements x has, and 8 more that mean nothing.
  void average_chunk(const float* x, const chunk& c) {
    const int count = c.bands * c.cells;
    add_neighbours(whole_ ? x : fill_up(x, c), count * window_rows_, width_, scratch_.sums,
                   scratch_.terms, sums_);
    if (whole_) {
      for (int band = 0; band < c.bands; ++band)
        add_rows(sums_ + band * window_rows_ * c.cells, c.cells, means_ + band * c.cells);
    } else {
      add_rows(sums_, count, means_);
    }
    store(c, 0);
  }

  /// Makes means_, which are sums yet, what is stored, and writes them from a cell of the first
  /// band on.
  void store(const chunk& c, i64 cell) {
    const int count = c.bands * c.cells;
    const int last_width = c.columns - (c.cells - 1) * width_;
    for_each_band(c, [&](int band, int rows) {
      float* const counts = counts_ + band * c.cells;
      for (int i = 0; i < c.cells; ++i) counts[i] = float(rows * width_);
      counts[c.cells - 1] = float(rows * last_width);
    });
    const dtype meta = plan_.codec().meta;
    to_lfc(means_, counts_, count, meta);
    store_lfc(means_, count, meta, lfc_ + (c.first * cells_ + cell) * size_bytes(meta));
  }

  /// Calls function(band, rows) for the bands of a chunk, with the rows of elements that each has:
  /// fewer at the end of a plane.
  template <class Function>
  void for_each_band(const chunk& c, const Function& function) const {
    const i64 extent = plan_.grid().extent[1];
    i64 left = extent - c.first % plan_.grid().cells[1] * window_rows_;
    for (int band = 0; band < c.bands; ++band) {
      const int rows = int(::std::min<i64>(window_rows_, left));
      function(band, rows);
      left -= rows;
      if (left == 0) left = extent;
    }
  }

  /// Whole cells, as (row of the window, band, column): few cells of many bands make long vectors.
  const float* fill_up(const float* x, const chunk& c) {
    const int filled = c.cells * width_;
    for_each_band(c, [&](int band, int rows) {
      float* out = scratch_.rows + band * filled;
      for (int row = 0; row < window_rows_; ++row, out += c.bands * filled) {
        const int present = row < rows ? c.columns : 0;
        fill_up_row(x, present, filled, out);
        x += present;
      }
    });
    return scratch_.rows;
  }

  /// Pre: `present` is a row's elements or 0.
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
    ::std::copy(sums, sums + count, out);
  }

  /// Elements as floats, and 8 more that mean nothing: where they are, or in the scratch.
  template <class T>
  const float* elements(i64 first, int count) {
    const void* const x = static_cast<const u8*>(x_) + first * i64(sizeof(T));
    if (is_aligned_float<T>(x) && plan_.num_elements() - first >= count + vector)
      return static_cast<const float*>(x);
    load_floats<T>(x, 0, count, scratch_.terms);
    ::std::fill(scratch_.terms + count, scratch_.terms + count + vector, 0.0f);
    return scratch_.terms;
  }

  const plan& plan_;
  const void* const x_;
  u8* const lfc_;
  const int window_rows_;
  const int width_;        // of a cell
  const bool is_one_row_;  // bands are cells, and those of a chunk one row
  const i64 columns_;      // of a band
  const i64 cells_;
  const bool whole_;  // whether all cells are
  means_scratch& scratch_;
  float* const sums_;  // in the scratch, like the others
  float* const means_;
  float* const counts_;  // elements of each cell
  u32 in_row_[vector];   // all ones for elements of the last vector that are the row's
};

/// Writes the means of the cells of bands first..last - 1 into the blob.
template <class T>
void average_bands(const plan& p, const void* x, u8* blob, i64 first, i64 last,
                   means_scratch& scratch) {
  u8* const lfc = blob + p.lfc_offset();
  if (band_means::apply_to(p)) {
    band_means(p, x, lfc, scratch).average<T>(first, last);
  } else {
    cell_means(p, x, lfc, scratch).average_bands<T>(first, last);
  }
}

}  // namespace furl::host::detail

FURL_HIDDEN_END
