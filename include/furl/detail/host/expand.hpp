// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The low-frequency component on the host: from cells back to the elements that they cover.

#include <algorithm>

#include "furl/config.hpp"
#include "furl/detail/cells.hpp"
#include "furl/detail/host/tile.hpp"
#include "furl/detail/number.hpp"
#include "furl/plan.hpp"

FURL_HIDDEN_BEGIN

namespace furl::host::detail {

/// Walks the rows of a tensor (all of the innermost windowed dimension and what is inside it) in
/// order, without divisions.
class row_walk {
 public:
  explicit row_walk(const cell_grid& grid) : grid_(grid) {}

  /// Moves to an element. To be called first.
  void seek(i64 element) {
    const grid_position at = position_of(grid_, element);
    position_ = at.pooled[2] * grid_.inner + at.inner;
    cell_row_ = (at.outer * grid_.cells[0] + at.pooled[0] / grid_.window[0]) * grid_.cells[1] +
                at.pooled[1] / grid_.window[1];
    for (int d = 0; d < 2; ++d) {
      left_in_extent_[d] = grid_.extent[d] - at.pooled[d];
      left_in_cell_[d] = grid_.window[d] - at.pooled[d] % grid_.window[d];
    }
  }

  i64 position() const { return position_; }  // elements from the start of the row
  i64 cell_row() const { return cell_row_; }  // which row of cells the row lies in

  /// This row and those behind it that lie in the same cells.
  i64 rows_left() const { return (::std::min)(left_in_extent_[1], left_in_cell_[1]); }

  /// Moves to a position `rows` rows further on.
  /// Pre: rows <= rows_left(); the position is before the row's end.
  void advance(i64 rows, i64 position) {
    position_ = position;
    if (rows > 0) skip(rows);
  }

 private:
  void skip(i64 rows) {
    left_in_extent_[1] -= rows;
    left_in_cell_[1] -= rows;
    if (left_in_extent_[1] > 0) {
      if (left_in_cell_[1] == 0) {
        left_in_cell_[1] = grid_.window[1];
        ++cell_row_;
      }
      return;
    }
    left_in_extent_[1] = grid_.extent[1];
    left_in_cell_[1] = grid_.window[1];
    --left_in_extent_[0];
    --left_in_cell_[0];
    if (left_in_extent_[0] > 0 && left_in_cell_[0] > 0) {
      cell_row_ -= grid_.cells[1] - 1;  // through the same cells once more
      return;
    }
    if (left_in_extent_[0] == 0) left_in_extent_[0] = grid_.extent[0];
    left_in_cell_[0] = grid_.window[0];
    ++cell_row_;
  }

  const cell_grid& grid_;
  i64 position_ = 0;
  i64 cell_row_ = 0;
  i64 left_in_extent_[2] = {};
  i64 left_in_cell_[2] = {};
};

/// Floats beyond the last that loops over LFC values may read and write.
inline constexpr int expand_slack = 8;

/// LFC values of elements position .. position + count - 1 of a row. lfc: the row's first cell. Up
/// to max_window floats more may be written.
template <class Meta>
void expand_row(const cell_grid& g, const u8* lfc, i64 position, i64 count, float* out) {
  const auto value = [lfc](i64 cell) { return to_f32(load_at<Meta>(lfc, cell)); };
  const float* const end = out + count;
  i64 cell = position == 0 ? 0 : position / g.inner / g.window[2];
  i64 in_cell = position == 0 ? 0 : position / g.inner % g.window[2];
  if (g.inner == 1) {
    for (; out < end; ++cell, in_cell = 0) {
      const i64 run = ::std::min<i64>(g.window[2] - in_cell, end - out);
      const float mean = value(cell);
      for (i64 i = 0; i < run; i += expand_slack)
        for (int j = 0; j < expand_slack; ++j) out[i + j] = mean;
      out += run;
    }
    return;
  }
  for (i64 inner = position % g.inner; out < end; inner = 0) {
    const i64 run = ::std::min<i64>(g.inner - inner, end - out);
    for (i64 i = 0; i < run; ++i) out[i] = value(cell * g.inner + inner + i);
    out += run;
    if (++in_cell == g.window[2]) {
      in_cell = 0;
      ++cell;
    }
  }
}

/// The LFC values of elements in order.
class lfc_reader {
 public:
  static constexpr int num_expanded = tile_elements + 2 * expand_slack;

  /// lfc: the LFC part of the blob. expanded: num_expanded floats of scratch, which keep their
  /// values between calls, or `forget` is called.
  lfc_reader(const plan& p, const u8* lfc, float* expanded)
      : grid_(merged(p.grid())),
        row_length_(grid_.extent[2] * grid_.inner),
        meta_(p.codec().meta),
        lfc_(lfc),
        row_(grid_),
        expanded_(expanded) {}

  /// Calls put(at, lfc, length) for runs of the `count` elements from `first` on, in order: lfc has
  /// the values of elements first + at .. first + at + length - 1, and expand_slack floats more.
  /// Pre: count is at most tile_elements.
  template <class Put>
  void for_each_run(i64 first, int count, const Put& put) {
    if (first != next_) row_.seek(first);
    next_ = first + count;
    // Rows that share their cells follow each other. A row of cells that are one row high shares
    // them with none, and may lack the means of its end yet.
    const bool shared = grid_.first_pooled < 2 && row_length_ <= tile_elements;
    for (int at = 0; at < count;)
      at += shared ? put_rows(at, count - at, put) : put_row(at, count - at, put);
  }

  /// What was expanded is no longer there.
  void forget() { expanded_row_ = -1; }

 private:
  /// The same grid with longer rows, where rows have one cell each: those of a cell are one run.
  static cell_grid merged(cell_grid g) {
    while (g.inner == 1 && g.first_pooled < 2 && g.cells[2] == 1) {
      g.window[2] = int(g.window[1] * g.extent[2]);
      g.extent[2] *= g.extent[1];
      g.cells[2] = g.cells[1];
      g.extent[1] = g.extent[0];
      g.window[1] = g.window[0];
      g.cells[1] = g.cells[0];
      g.extent[0] = g.window[0] = 1;
      g.cells[0] = 1;
      ++g.first_pooled;
    }
    return g;
  }

  /// Values of the row to its end, or `count` if that is less. Returns how many.
  template <class Put>
  int put_row(int at, int count, const Put& put) {
    const i64 position = row_.position();
    const int length = int(::std::min<i64>(row_length_ - position, count));
    expand(position, length);
    put(at, static_cast<const float*>(expanded_), length);
    const bool ends = position + length == row_length_;
    row_.advance(ends ? 1 : 0, ends ? 0 : position + length);
    return length;
  }

  /// The same for all rows that lie in the same cells, which are expanded once.
  template <class Put>
  int put_rows(int at, int count, const Put& put) {
    if (row_.cell_row() != expanded_row_) expand(0, row_length_);
    expanded_row_ = row_.cell_row();
    const i64 rows_left = row_.rows_left();
    const int row = int(row_length_);
    const float* const lfc = expanded_;
    int position = int(row_.position());
    i64 rows = 0;
    int done = 0;
    if (position > 0) {  // the rest of a row
      done = (::std::min)(row - position, count);
      put(at, lfc + position, done);
      position += done;
      if (position == row) position = 0, ++rows;
    }
    for (; rows < rows_left && done + row <= count; ++rows, done += row) put(at + done, lfc, row);
    if (rows < rows_left && done < count) {  // the beginning of one; then position is 0
      position = count - done;
      put(at + done, lfc, position);
      done = count;
    }
    row_.advance(rows, position);
    return done;
  }

  void expand(i64 position, i64 count) {
    const i64 row_bytes = grid_.cells[2] * grid_.inner * size_bytes(meta_);
    const u8* const cells = lfc_ + row_.cell_row() * row_bytes;
    if (meta_ == dtype::f32) {
      expand_row<float>(grid_, cells, position, count, expanded_);
    } else {
      expand_row<bf16>(grid_, cells, position, count, expanded_);
    }
  }

  const cell_grid grid_;
  const i64 row_length_;
  const dtype meta_;
  const u8* const lfc_;
  row_walk row_;
  i64 next_ = -1;          // the element that row_ stands at
  i64 expanded_row_ = -1;  // row of cells that expanded_ holds
  float* const expanded_;
};

}  // namespace furl::host::detail

FURL_HIDDEN_END
