// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE THREAD. From elements to cells and back without a division: everything that depends on the
// shape alone is worked out beforehand (README, A2). The same answers as cell_of() in pool.hpp.

#include "furl/config.hpp"
#include "furl/element/divisor.hpp"
#include "furl/element/pool.hpp"

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

}  // namespace furl
