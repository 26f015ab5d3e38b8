// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE THREAD. From elements to cells and back without a division: everything that depends on the
// shape alone is worked out beforehand (FORMAT.md, A2). The same answers as cell_of() in cells.hpp.
// And planes of two-dimensional cells, as the blocks of a grid see them: each has a run of
// consecutive elements, and needs the cells that its run touches.

#include "furl/config.hpp"
#include "furl/detail/cells.hpp"

namespace furl {

/// Position of a tile's first element: its outer index, and the rest as one index of each
/// dimension.
struct tile_origin {
  i64 first_cell;  // of the outer index
  u32 pooled[3];   // indices in the pooled dimensions
  u32 inner;       // index behind them
};

/// Cells of elements. It needs less than 2^30 elements in an outer index; a grid with more is wide,
/// and takes divisions.
class cell_locator {
 public:
  /// In an outer index.
  static constexpr i64 max_plane_elements = i64(1) << 30;

  cell_locator() = default;
  /// Pre: the grid has elements.
  FURL_HD explicit constexpr cell_locator(const cell_grid& g) {
    const u64 plane = plane_elements(g);
    is_wide_ = plane >= u64(max_plane_elements);
    grid_ = g;
    // As long as all that begin at a multiple of it lie in one row of a cell, or of cells.
    const i64 adjacent = g.inner > 1 ? g.inner : g.extent[2];
    const int most = g.inner > 1 ? 2 : 5;
    while (log2_granule_ < most) {
      const int twice = 2 << log2_granule_;
      if (adjacent % twice != 0 || (g.inner == 1 && g.window[2] % twice != 0)) break;
      ++log2_granule_;
    }
    if (is_wide_) return;
    plane_ = divisor64(plane);
    for (int d = 0; d < 3; ++d) {
      extent_[d] = divisor32(u32(g.extent[d]));
      window_[d] = divisor32(u32(g.window[d]));
      cells_[d] = u32(g.cells[d]);
    }
    inner_ = divisor32(u32(g.inner));
    plane_cells_ = cells_[0] * cells_[1] * cells_[2] * inner_.value;
  }

  /// Elements that lie in one cell, from every multiple of it on: a power of two up to 32. Or in as
  /// many neighbouring cells: up to 4.
  FURL_HD constexpr u32 granule() const { return 1u << log2_granule_; }
  FURL_HD constexpr int log2_granule() const { return log2_granule_; }  // of granule()
  /// How far the cells of such neighbours are apart: 0 or 1.
  FURL_HD constexpr u32 cell_step() const { return grid_.inner > 1 ? 1 : 0; }

  FURL_HD constexpr bool is_wide() const { return is_wide_; }  // takes divisions
  /// The cell of an element of any grid, by divisions.
  FURL_HD i64 cell_by_division(i64 index) const { return cell_of(grid_, index); }

  /// Of the tile that begins at an element. Pre: the grid is not wide.
  FURL_HD tile_origin origin(i64 index) const {
    tile_origin at{};
    const u64 plane = plane_.divide(u64(index));
    u32 rest = u32(u64(index) - plane * plane_.value);
    at.first_cell = i64(plane) * plane_cells_;
    at.inner = split(rest, inner_);
    FURL_UNROLL
    for (int d = 2; d > 0; --d) at.pooled[d] = split(rest, extent_[d]);
    at.pooled[0] = rest;
    return at;
  }

  /// The cell of the element `distance` behind a tile's first.
  /// Pre: distance < 1024; the grid is not wide.
  FURL_HD i64 cell(const tile_origin& at, u32 distance) const {
    u32 position = at.inner + distance;
    u32 inner = 0;
    // A dimension of 1, as unused ones are, would only hand on the quotient.
    if (inner_.value > 1) inner = split(position, inner_);
    const row_position p = row_of(at, position);
    return at.first_cell + ((row_cell(at, p.row) + p.cell) * inner_.value + inner);
  }

  // The same in two steps, for grids without an inner dimension: most elements share their row.

  FURL_HD constexpr bool has_rows() const { return grid_.inner == 1; }  // if it is such a grid
  /// A row of the innermost pooled dimension, and a cell of it.
  struct row_position {
    u32 row;   // counted from the one that the tile begins in
    u32 cell;  // within the row
  };
  /// Of the element `distance` behind a tile's first.
  FURL_HD row_position row_of(const tile_origin& at, u32 distance) const {
    u32 row = at.pooled[2] + distance;
    const u32 column = split(row, extent_[2]);
    return {row, window_[2].divide(column)};
  }
  /// The first cell of a row, from at.first_cell on.
  FURL_HD u32 row_cell(const tile_origin& at, u32 row) const {
    u32 a = 0;
    u32 b = 0;
    row += at.pooled[1];
    if (extent_[1].value > 1) b = split(row, extent_[1]);
    row += at.pooled[0];
    if (extent_[0].value > 1) a = split(row, extent_[0]);
    u32 cell = row * cells_[0] + window_[0].divide(a);
    cell = cell * cells_[1] + window_[1].divide(b);
    return cell * cells_[2];
  }

 private:
  /// Leaves the quotient in n and returns the remainder.
  FURL_HD static u32 split(u32& n, const divisor32& d) {
    const u32 quotient = d.divide(n);
    const u32 remainder = n - quotient * d.value;
    n = quotient;
    return remainder;
  }

  /// Elements of an outer index; saturates.
  FURL_HD static constexpr u64 plane_elements(const cell_grid& g) {
    u64 product = u64(g.inner);
    for (int d = 0; d < 3; ++d) product *= u64(g.extent[d]);  // at most n < 2^63
    return product;
  }

  cell_grid grid_{};
  divisor64 plane_;
  divisor32 inner_;
  divisor32 extent_[3];
  divisor32 window_[3];
  u32 cells_[3] = {};
  u32 plane_cells_ = 0;
  int log2_granule_ = 0;
  bool is_wide_ = false;
};

/// Where cells are that a run of elements touches. Elements are counted from `head` before the run.
struct cell_run {
  i64 first_cell;    // in the grid; the others follow it
  u32 num_cells;     // touched
  u32 head;          // elements of the first cells that lie before the run
  u32 tail;          // elements of the last cells that lie behind it
  u32 first_band;    // of its plane
  u32 first_column;  // cells before the first one in its row: 0 unless planes have one row
};

/// A cell of a run.
struct cell_box {
  u32 begin;        // its first element
  u32 num_rows;     // less than a window's at an edge
  u32 num_columns;  // likewise
  bool is_owned;    // whether it is this run that has its first element, or that of its band
};

/// A tensor as planes of rows x columns elements, pooled by windows of window_rows x
/// window_columns. Without a division at run time.
class cell_plane {
 public:
  /// Of a plane: fewer than this.
  static constexpr i64 max_elements = i64(1) << 30;

  /// Whether a grid can be seen that way: two pooled dimensions that are the last, or one, whatever
  /// follows it.
  FURL_HD static constexpr bool fits(const cell_grid& g) {
    if (g.first_pooled == 0 || (g.first_pooled == 1 && g.inner > 1)) return false;
    const i64 longest = max_elements - 1;
    return g.inner <= longest && g.extent[2] <= longest / g.inner &&
           g.extent[1] <= longest / (g.inner * g.extent[2]);
  }

  cell_plane() = default;
  /// Pre: fits(g), and the grid has elements.
  FURL_HD explicit constexpr cell_plane(const cell_grid& g) {
    // One pooled dimension before others: its windows are one element wide.
    const bool across = g.inner > 1;
    num_rows_ = u32(across ? g.extent[2] : g.extent[1]);
    columns_ = divisor32(u32(across ? g.inner : g.extent[2]));
    // A window may be wider than its dimension.
    window_rows_ = divisor32(smaller(u32(across ? g.window[2] : g.window[1]), num_rows_));
    window_columns_ = divisor32(across ? 1 : smaller(u32(g.window[2]), columns_.value));
    bands_ = divisor32(u32(across ? g.cells[2] : g.cells[1]));
    cells_ = divisor32(u32(across ? g.inner : g.cells[2]));
    elements_ = divisor32(num_rows_ * columns_.value);
    planes_ = divisor64(elements_.value);
  }

  /// @{
  /// Of a plane, and of its cells.
  FURL_HD constexpr u32 num_rows() const { return num_rows_; }
  FURL_HD constexpr u32 num_columns() const { return columns_.value; }
  FURL_HD constexpr u32 num_elements() const { return elements_.value; }
  FURL_HD constexpr u32 num_bands() const { return bands_.value; }
  FURL_HD constexpr u32 window_rows() const { return window_rows_.value; }
  FURL_HD constexpr u32 window_columns() const { return window_columns_.value; }
  FURL_HD constexpr u32 cells_per_row() const { return cells_.value; }
  /// @}
  /// Elements of a band, a row of whole cells.
  FURL_HD constexpr u32 band_elements() const { return window_rows_.value * columns_.value; }
  /// Whether a plane is a row.
  FURL_HD constexpr bool has_one_row() const { return num_rows_ == 1; }
  /// Whether no cell is cut off at an edge.
  FURL_HD constexpr bool is_whole() const {
    return num_rows_ % window_rows_.value == 0 && columns_.value % window_columns_.value == 0;
  }

  /// The cells of elements begin .. begin + count - 1 of the tensor.
  /// Pre: 1 <= count <= 2^20.
  FURL_HD cell_run run_of(i64 begin, u32 count) const {
    const u64 plane = planes_.divide(u64(begin));
    const u32 first = u32(u64(begin) - plane * planes_.value);
    const u32 last = first + count - 1;
    const u32 last_plane = elements_.divide(last);
    const u32 last_in_plane = last - last_plane * elements_.value;
    cell_run run{};
    if (has_one_row()) {  // cells follow one another: their bands need not be whole
      run.first_column = window_columns_.divide(first);
      const u32 last_column = window_columns_.divide(last_in_plane);
      const u32 behind = (last_column + 1) * window_columns_.value;
      run.head = first - run.first_column * window_columns_.value;
      run.tail = smaller(behind, columns_.value) - last_in_plane - 1;
      run.num_cells = last_plane * cells_.value + last_column + 1 - run.first_column;
    } else {
      run.first_band = window_rows_.divide(columns_.divide(first));
      const u32 last_band = window_rows_.divide(columns_.divide(last_in_plane));
      const u32 behind = smaller((last_band + 1) * window_rows_.value, num_rows_);
      run.head = first - run.first_band * band_elements();
      run.tail = behind * columns_.value - last_in_plane - 1;
      run.num_cells = (last_plane * bands_.value + last_band + 1 - run.first_band) * cells_.value;
    }
    run.first_cell =
        i64((plane * bands_.value + run.first_band) * cells_.value) + i64(run.first_column);
    return run;
  }

  /// Cell `index` of a run.
  FURL_HD cell_box box_of(const cell_run& run, u32 index) const {
    const u32 band_of_run = cells_.divide(index + run.first_column);
    const u32 column = index + run.first_column - band_of_run * cells_.value;
    const row_span rows = rows_of(run, band_of_run);
    cell_box box;
    box.begin = rows.begin * columns_.value + (column - run.first_column) * window_columns_.value;
    box.num_rows = rows.count;
    box.num_columns =
        smaller(window_columns_.value, columns_.value - column * window_columns_.value);
    box.is_owned = run.head == 0 || (has_one_row() ? index : band_of_run) > 0;
    return box;
  }

  /// Rows of a run's band, counted from the first of its first band.
  struct row_span {
    u32 begin;  // the first row
    u32 count;  // rows
  };
  /// Of the band with a number in the run.
  FURL_HD row_span rows_of(const cell_run& run, u32 band_of_run) const {
    const u32 band = run.first_band + band_of_run;
    const u32 plane = bands_.divide(band);
    const u32 row = (band - plane * bands_.value) * window_rows_.value;
    return {plane * num_rows_ + row - run.first_band * window_rows_.value,
            smaller(window_rows_.value, num_rows_ - row)};
  }

  /// The same of a run that begins with a band, where no cell is cut off.
  FURL_HD cell_box whole_box(u32 index) const {
    const u32 band = cells_.divide(index);
    const u32 column = index - band * cells_.value;
    return {band * band_elements() + column * window_columns_.value, window_rows_.value,
            window_columns_.value, true};
  }

  /// Row and column of the element at `distance` behind the first of a run's first band.
  FURL_HD u32 row_of(u32 distance) const { return columns_.divide(distance); }
  /// Band of a cell, both counted from the first of a plane's.
  FURL_HD u32 band_of_cell(u32 cell) const { return cells_.divide(cell); }

 private:
  FURL_HD static constexpr u32 smaller(u32 a, u32 b) { return a < b ? a : b; }

  u32 num_rows_ = 1;
  divisor32 columns_;
  divisor32 window_rows_;
  divisor32 window_columns_;
  divisor32 bands_;     // in a plane
  divisor32 cells_;     // in a row
  divisor32 elements_;  // in a plane
  divisor64 planes_;
};

}  // namespace furl
