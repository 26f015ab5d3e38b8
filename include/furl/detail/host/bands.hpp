// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where the rows of cells are vectors, as with 8 x 8: the means of cells on the host, and what is
// left of the elements when they are subtracted, by loops over whole bands, which are rows of
// cells.

#include <algorithm>
#include <utility>

#include "furl/config.hpp"
#include "furl/detail/cells.hpp"
#include "furl/detail/host/eights.hpp"
#include "furl/detail/host/means.hpp"
#include "furl/detail/host/sums.hpp"
#include "furl/detail/host/tile.hpp"
#include "furl/plan.hpp"

FURL_HIDDEN_BEGIN

namespace furl::host::detail {

class band_means {
 public:
  /// Whether bands follow each other in memory, and the rows of cells are vectors: of 8 elements,
  /// or of a multiple if all cells are whole. With one windowed dimension bands are single cells,
  /// and must be whole.
  static bool apply_to(const plan& p) {
    const cell_grid& g = p.grid();
    const int width = g.window[2];
    if (!p.has_lfc() || g.inner > 1 || width < 8 || (width & (width - 1)) != 0) return false;
    const bool is_whole = g.extent[2] % width == 0 && g.extent[1] % g.window[1] == 0;
    return g.first_pooled == 1 ? width == 8 || (is_whole && parts_of_band(g) <= max_parts)
                               : g.first_pooled == 2 && is_whole;
  }

  band_means(const plan& p, const void* x, u8* lfc, means_scratch& scratch)
      : grid_(p.grid()),
        meta_(p.codec().meta),
        x_(static_cast<const u8*>(x)),
        num_elements_(p.num_elements()),
        lfc_(lfc),
        is_one_row_(grid_.first_pooled == 2),
        rows_(grid_.window[1]),
        width_(grid_.window[2]),
        columns_(is_one_row_ ? width_ : grid_.extent[2]),
        cells_(is_one_row_ ? 1 : grid_.cells[2]),
        last_width_(int(columns_ - (cells_ - 1) * width_)),
        is_whole_(last_width_ == width_ && grid_.extent[1] % rows_ == 0),
        per_plane_(grid_.cells[1] * cells_),
        scratch_(scratch) {}

  i64 cells_of_band() const { return cells_; }

  /// A band.
  struct place {
    i64 band;
    i64 in_plane;  // bands of its plane before it
    i64 element;   // its first
  };
  place place_of(i64 band) const {
    return {band, is_one_row_ ? 0 : band % grid_.cells[1], grid_.band_begin(band)};
  }

  /// Writes the means of the cells of some bands into the blob. If these have at most
  /// cell_list::most cells and max_parts elements, their means are in the scratch afterwards.
  template <class T>
  void average(place at, i64 bands) {
    const i64 parts = is_one_row_ ? width_ / 8 : parts_of_band(grid_);
    if (is_whole_ && parts <= max_parts) {
      for (i64 some = 0; bands > 0; bands -= some) {
        some = (::std::min)({max_parts / parts, means_scratch::num_means / cells_, bands});
        average_whole<T>(at, int(some));
        at.band += some;
        at.element += some * rows_ * columns_;
      }
      return;
    }
    i64 plane = at.element - at.in_plane * rows_ * columns_;
    i64 in_plane = at.in_plane * cells_;
    for (i64 left = bands * cells_, some = 0; left > 0; left -= some) {
      some = (::std::min)(i64(cell_list::most), left);
      average_ragged<T>(plane, in_plane, int(some), (at.band + bands) * cells_ - left);
      in_plane += some;
      for (; in_plane >= per_plane_; in_plane -= per_plane_) plane += grid_.extent[1] * columns_;
    }
  }

  /// r = x - mean, for the elements of some bands, and up to seven floats more. Sets `first` to the
  /// band behind them.
  /// Pre: their means are in the scratch.
  template <class T>
  void subtract(place& first, i64 num_bands, float* r) const {
    const i64 bands = is_one_row_ ? 1 : num_bands;
    const i64 columns = is_one_row_ ? num_bands * width_ : columns_;
    place at = first;
    // From right to left: where a row's last vector reaches beyond its end, others that come later
    // write over that.
    for (i64 end = (columns + 7) / 8, part = 0; end > 0; end = part) {
      part = (end - 1) / 8 * 8;
      with_bits(int(end - part), [&](auto parts) {
        at = first;
        const float* mean = scratch_.means + part;
        for (i64 band = 0; band < bands; ++band, mean += cells_) {
          const int rows = rows_at(at.in_plane);
          const i64 element = at.element + 8 * part;
          const i64 readable = num_elements_ - element - (rows - 1) * columns;
          subtract_eights<T, parts()>(x_ + element * i64(sizeof(T)), rows, columns, readable, mean,
                                      r + (element - first.element));
          next_band(at);
        }
      });
    }
    first = is_one_row_ ? place{first.band + num_bands, 0, first.element + columns} : at;
  }

 private:
  static constexpr i64 max_parts = means_scratch::num_terms;  // whose sums the scratch holds
  /// Vectors of a whole band.
  static constexpr i64 parts_of_band(const cell_grid& g) { return g.window[1] * (g.extent[2] / 8); }

  int rows_at(i64 band_in_plane) const {
    return int(::std::min<i64>(rows_, grid_.extent[1] - band_in_plane * rows_));
  }
  void next_band(place& at) const {
    at.element += rows_at(at.in_plane) * columns_;
    ++at.band;
    if (++at.in_plane == grid_.cells[1]) at.in_plane = 0;
  }

  /// Means of bands of whole cells, whose parts are all vectors.
  template <class T>
  void average_whole(const place& at, int bands) const {
    int count = int(bands * rows_ * columns_ / 8);
    float* sums = scratch_.rows;
    float* other = scratch_.terms;
    add_eights<T>(x_ + at.element * i64(sizeof(T)), count, sums);
    for (int width = width_; width > 8; width /= 2, ::std::swap(sums, other)) {
      count /= 2;
      add_pairs(sums, count, other);
    }
    const int cells = int(is_one_row_ ? bands : cells_);  // of a row
    for (int row = 0, cell = 0; row * cells < count; row += rows_, cell += cells)
      add_rows(sums + row * cells, rows_, cells, cells, scratch_.means + cell);
    to_lfc(scratch_.means, count / rows_, rows_ * width_, meta_);
    store(at.band * cells_, count / rows_);
  }

  /// Means of any cells, eight at a time.
  /// plane: first element of their plane. in_plane: cells of it before them. cell: the first.
  template <class T>
  void average_ragged(i64 plane, i64 in_plane, int count, i64 cell) {
    cell_list& list = scratch_.cells;
    if (in_plane < listed_first_ || in_plane + count > listed_end_) {
      // As all planes are alike, once for all: but not where a call has less of them than this
      // costs.
      const bool for_all = per_plane_ <= cell_list::most && rows_ * columns_ <= max_parts;
      listed_first_ = for_all ? 0 : in_plane;
      listed_end_ = for_all ? per_plane_ + cell_list::most : in_plane + count;
      fill(list, listed_first_, int(listed_end_ - listed_first_ + 7) / 8 * 8);
    }
    const int skipped = int(in_plane - listed_first_);
    for (int i = 0; i < count; i += 8) {
      const int k = skipped + i;
      const eight_cells cells{
          x_ + plane * i64(sizeof(T)), list.offset + k, list.rows + k, list.columns + k,
          (::std::min)(8, count - i),  columns_};
      add_cells<T>(cells, scratch_.means + i);
    }
    to_lfc(scratch_.means, list.elements + skipped, count, meta_);
    store(cell, count);
  }

  /// Lists cells from one of a plane on. Behind its last come those of the next plane.
  void fill(cell_list& list, i64 first, int count) const {
    i64 plane = 0;
    i64 band = first / cells_;
    i64 cell = first % cells_;
    for (int i = 0; i < count; ++i) {
      list.offset[i] = plane + band * rows_ * columns_ + cell * width_;
      list.rows[i] = rows_at(band);
      list.columns[i] = cell + 1 == cells_ ? last_width_ : 8;
      list.elements[i] = float(list.rows[i] * list.columns[i]);
      if (++cell < cells_) continue;
      cell = 0;
      if (++band < grid_.cells[1]) continue;
      band = 0;
      plane += grid_.extent[1] * columns_;
    }
  }

  /// sums[k] = the tree over the k-th of eight cells.
  template <class T>
  void add_cells(const eight_cells& cells, float* sums) const {
    const int max_rows = *::std::max_element(cells.rows, cells.rows + cells.present);
    const i64 reach = cells.offset[7] + max_rows * columns_ + 8;
    float* const rows = scratch_.rows;
    if (cells.x + reach * i64(sizeof(T)) <= x_ + num_elements_ * i64(sizeof(T))) {
      add_rows_of_cells<T>(cells, max_rows, rows);
    } else {
      add_rows_exactly<T>(cells, max_rows, rows);
    }
    ::std::fill(rows + 8 * max_rows, rows + 8 * rows_, 0.0f);
    add_rows(rows, rows_, 8, 8, sums);
  }

  /// Writes means of the scratch into the blob.
  void store(i64 cell, int count) const {
    store_lfc(scratch_.means, count, meta_, lfc_ + cell * size_bytes(meta_));
  }

  const cell_grid& grid_;
  const dtype meta_;
  const u8* const x_;
  const i64 num_elements_;
  u8* const lfc_;
  const bool is_one_row_;  // bands are single cells, and all of them one row
  const int rows_;         // of elements in a window
  const int width_;        // of a window, in elements
  const i64 columns_;      // elements of a row of a band
  const i64 cells_;        // of a band
  const int last_width_;   // of a band's last cell
  const bool is_whole_;    // no cell is cut off at an edge
  const i64 per_plane_;    // cells of a plane
  i64 listed_first_ = 0;   // of the cells of a plane, the first in the list
  i64 listed_end_ = 0;     // of the cells of a plane, the one behind the list's last
  means_scratch& scratch_;
};

/// Writes the means of the cells of bands first..last - 1 into the blob.
template <class T>
void average_bands(const plan& p, const void* x, u8* blob, i64 first, i64 last,
                   means_scratch& scratch) {
  u8* const lfc = blob + p.lfc_offset();
  if (band_means::apply_to(p)) {
    band_means bands(p, x, lfc, scratch);
    bands.average<T>(bands.place_of(first), last - first);
  } else {
    cell_means(p, x, lfc, scratch).average_bands<T>(first, last);
  }
}

}  // namespace furl::host::detail

FURL_HIDDEN_END
