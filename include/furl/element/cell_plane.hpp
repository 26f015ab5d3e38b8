// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE THREAD. Planes of two-dimensional cells, as the blocks of a grid see them: each has a run of
// consecutive elements, and needs the cells that its run touches (README, A2).

#include "furl/config.hpp"
#include "furl/element/divisor.hpp"
#include "furl/element/pool.hpp"

namespace furl {

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
