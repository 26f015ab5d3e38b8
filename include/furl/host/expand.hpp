// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The low-frequency component on the host: from cells back to the elements that they cover.

#include <algorithm>
#include <cstring>

#include "furl/config.hpp"
#include "furl/dtype.hpp"
#include "furl/element/pool.hpp"
#include "furl/host/tile.hpp"
#include "furl/plan.hpp"

namespace furl::host::detail {

/// Walks the rows of a tensor (all of the innermost pooled dimension and what is inside it) in
/// order, without divisions.
class row_walk {
 public:
  row_walk(const cell_grid& grid, i64 first) : grid_(grid) {
    const grid_position at = position_of(grid, first);
    position_ = at.pooled[2] * grid.inner + at.inner;
    cell_row_ = (at.outer * grid.cells[0] + at.pooled[0] / grid.window[0]) * grid.cells[1] +
                at.pooled[1] / grid.window[1];
    for (int d = 0; d < 2; ++d) {
      left_in_extent_[d] = grid.extent[d] - at.pooled[d];
      left_in_cell_[d] = grid.window[d] - at.pooled[d] % grid.window[d];
    }
  }

  i64 position() const { return position_; }  // elements from the start of the row
  i64 cell_row() const { return cell_row_; }  // which row of cells the row lies in

  void next() {
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

 private:
  const cell_grid& grid_;
  i64 position_;
  i64 cell_row_;
  i64 left_in_extent_[2];
  i64 left_in_cell_[2];
};

/// Floats that expand_lfc may write beyond the last element asked for.
inline constexpr int expand_slack = 8;

/// Copies at least `count` floats, eight at a time, each eight read before they are written.
inline void copy_eights(const float* from, i64 count, float* to) {
  for (i64 i = 0; i < count; i += expand_slack) {
    float eight[expand_slack];
    std::memcpy(eight, from + i, sizeof eight);
    std::memcpy(to + i, eight, sizeof eight);
  }
}

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

/// The LFC value of each of `count` elements from `first` on, into out.
/// Pre: out has room for count + expand_slack floats.
inline void expand_lfc(const plan& p, const u8* lfc, i64 first, int count, float* out) {
  const cell_grid& g = p.grid();
  const i64 row_length = g.extent[2] * g.inner;
  const i64 row_bytes = g.cells[2] * g.inner * size_bytes(p.codec().meta);
  row_walk row(g, first);
  i64 row_before = -1;  // row of cells whose values fill the row_length floats before `out`
  for (float* const end = out + count; out < end; row.next()) {
    const i64 length = std::min<i64>(row_length - row.position(), end - out);
    const u8* const cells = lfc + row.cell_row() * row_bytes;
    if (row.cell_row() == row_before) {
      copy_eights(out - row_length, length, out);
    } else if (p.codec().meta == dtype::f32) {
      expand_row<float>(g, cells, row.position(), length, out);
    } else {
      expand_row<bf16>(g, cells, row.position(), length, out);
    }
    row_before = row.position() == 0 ? row.cell_row() : -1;
    out += length;
  }
}

}  // namespace furl::host::detail
