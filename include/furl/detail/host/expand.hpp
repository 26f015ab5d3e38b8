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

/// Walks the rows of a tensor (all of the innermost pooled dimension and what is inside it) in
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
  i64 rows_left() const { return (std::min)(left_in_extent_[1], left_in_cell_[1]); }

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

/// Floats that expand_row may write beyond the last element asked for.
inline constexpr int expand_slack = 8;

/// LFC values of elements position .. position + count - 1 of a row. lfc: the row's first cell.
template <class Meta>
void expand_row(const cell_grid& g, const u8* lfc, i64 position, i64 count, float* out) {
  const auto value = [lfc](i64 cell) { return to_f32(load_at<Meta>(lfc, cell)); };
  const float* const end = out + count;
  i64 cell = position / g.inner / g.window[2];
  i64 in_cell = position / g.inner % g.window[2];
  if (g.inner == 1) {
    for (; out < end; ++cell, in_cell = 0) {
      const i64 run = std::min<i64>(g.window[2] - in_cell, end - out);
      const float mean = value(cell);
      for (i64 i = 0; i < run; i += expand_slack)
        for (int j = 0; j < expand_slack; ++j) out[i + j] = mean;
      out += run;
    }
    return;
  }
  for (i64 inner = position % g.inner; out < end; inner = 0) {
    const i64 run = std::min<i64>(g.inner - inner, end - out);
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
  /// lfc: the LFC part of the blob.
  lfc_reader(const plan& p, const u8* lfc)
      : grid_(p.grid()),
        row_length_(grid_.extent[2] * grid_.inner),
        meta_(p.codec().meta),
        lfc_(lfc),
        row_(p.grid()) {}

  /// Those of the `count` elements from `first` on, and expand_slack floats more; until the next
  /// call. Pre: count is at most tile_elements.
  const float* values_of(i64 first, int count) {
    if (first != next_) row_.seek(first);
    next_ = first + count;
    // Rows that share their cells follow each other. A row that is pooled along itself alone shares
    // them with none, and may not be pooled to its end yet.
    const bool shared = grid_.first_pooled < 2 && row_length_ <= tile_elements;
    for (int begin = 0; begin < count;)
      begin += shared ? put_rows(count - begin, values_ + begin)
                      : put_row(count - begin, values_ + begin);
    return values_;
  }

 private:
  /// Writes values of the row to its end, or `count` if that is less. Returns how many.
  int put_row(int count, float* out) {
    const i64 position = row_.position();
    const int length = int(std::min<i64>(row_length_ - position, count));
    expand(position, length, out);
    const bool ends = position + length == row_length_;
    row_.advance(ends ? 1 : 0, ends ? 0 : position + length);
    return length;
  }

  /// The same for all rows that lie in the same cells, which are expanded once.
  int put_rows(int count, float* out) {
    if (row_.cell_row() != expanded_row_) expand(0, row_length_, expanded_);
    expanded_row_ = row_.cell_row();
    const i64 rows_left = row_.rows_left();
    i64 position = row_.position();
    i64 rows = 0;
    int done = 0;
    while (rows < rows_left && done < count) {
      const int length = int(std::min<i64>(row_length_ - position, count - done));
      copy(expanded_ + position, length, out + done);
      done += length;
      position += length;
      if (position < row_length_) break;
      position = 0;
      ++rows;
    }
    row_.advance(rows, position);
    return done;
  }

  void expand(i64 position, i64 count, float* out) {
    const i64 row_bytes = grid_.cells[2] * grid_.inner * size_bytes(meta_);
    const u8* const cells = lfc_ + row_.cell_row() * row_bytes;
    if (meta_ == dtype::f32) {
      expand_row<float>(grid_, cells, position, count, out);
    } else {
      expand_row<bf16>(grid_, cells, position, count, out);
    }
  }

  /// Copies up to expand_slack floats beyond the count.
  static void copy(const float* __restrict from, int count, float* __restrict to) {
    for (int j = 0; j < count; j += expand_slack)
      for (int i = j; i < j + expand_slack; ++i) to[i] = from[i];
  }

  const cell_grid& grid_;
  const i64 row_length_;
  const dtype meta_;
  const u8* const lfc_;
  row_walk row_;
  i64 next_ = -1;          // the element that row_ stands at
  i64 expanded_row_ = -1;  // row of cells that expanded_ holds
  alignas(64) float expanded_[tile_elements + 2 * expand_slack] = {};
  alignas(64) float values_[tile_elements + 2 * expand_slack] = {};
};

}  // namespace furl::host::detail

FURL_HIDDEN_END
