// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The low-frequency component on the host: from cells back to the elements that they cover.

#include <algorithm>

#include "furl/config.hpp"
#include "furl/dtype.hpp"
#include "furl/element/pool.hpp"
#include "furl/host/tile.hpp"
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

  /// Moves on by `count` elements, at most to the start of the next row.
  void advance(i64 count) {
    position_ += count;
    if (position_ == grid_.extent[2] * grid_.inner) next_row();
  }

 private:
  void next_row() {
    position_ = 0;
    if (--left_in_extent_[1] > 0) {
      if (--left_in_cell_[1] == 0) {
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
      : grid_(p.grid()), meta_(p.codec().meta), lfc_(lfc), row_(p.grid()) {}

  /// Calls function(begin, count, values) for consecutive stretches begin .. begin + count - 1 of
  /// the `count` elements from `first` on. Pre: count is at most tile_elements.
  template <class Function>
  void visit(i64 first, int count, const Function& function) {
    if (first != next_) row_.seek(first);
    next_ = first + count;
    const i64 row_length = grid_.extent[2] * grid_.inner;
    // Rows that share their cells follow each other. A row that is pooled along itself alone shares
    // them with none, and may not be pooled to its end yet.
    const bool shared = grid_.first_pooled < 2 && row_length <= tile_elements;
    for (int begin = 0; begin < count;) {
      const i64 length = std::min<i64>(row_length - row_.position(), count - begin);
      if (!shared) {
        expand(row_.position(), length);
        function(begin, int(length), values_);
      } else {
        if (row_.cell_row() != expanded_row_) expand(0, row_length);
        expanded_row_ = row_.cell_row();
        function(begin, int(length), values_ + row_.position());
      }
      begin += int(length);
      row_.advance(length);
    }
  }

 private:
  void expand(i64 position, i64 count) {
    const i64 row_bytes = grid_.cells[2] * grid_.inner * size_bytes(meta_);
    const u8* const cells = lfc_ + row_.cell_row() * row_bytes;
    if (meta_ == dtype::f32) {
      expand_row<float>(grid_, cells, position, count, values_);
    } else {
      expand_row<bf16>(grid_, cells, position, count, values_);
    }
  }

  const cell_grid& grid_;
  const dtype meta_;
  const u8* const lfc_;
  row_walk row_;
  i64 next_ = -1;          // the element that row_ stands at
  i64 expanded_row_ = -1;  // row of cells that values_ holds
  alignas(64) float values_[tile_elements + 2 * expand_slack] = {};
};

}  // namespace furl::host::detail

FURL_HIDDEN_END
