// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The low-frequency component on the host (FORMAT.md, A2): the means of cells of any window.

#include <algorithm>

#include "furl/config.hpp"
#include "furl/detail/cells.hpp"
#include "furl/detail/host/sums.hpp"
#include "furl/detail/host/tile.hpp"
#include "furl/plan.hpp"

FURL_HIDDEN_BEGIN

namespace furl::host::detail {

/// Cells that are averaged together: `count` neighbours along the innermost windowed dimension, at
/// the same place in each of `outers` consecutive outer indices.
struct cell_run {
  i64 outer;
  int outers;
  i64 cell[3];  // of the first cell
  i64 count;
};

/// Averages cells in a fixed scratch, as vectors of partial sums that the tree adds to each other,
/// innermost windowed dimension first.
class cell_means {
 public:
  cell_means(const plan& p, const void* x, u8* lfc, means_scratch& scratch)
      : grid_(p.grid()), meta_(p.codec().meta), x_(x), lfc_(lfc), scratch_(scratch) {
    while (width_ < grid_.window[2]) width_ *= 2;
  }

  /// Writes the means of all cells of bands first..last - 1 into the blob.
  template <class T>
  void average_bands(i64 first, i64 last) {
    const i64 per_outer = grid_.cells[grid_.first_pooled];
    while (first < last) {
      const i64 outer = first / per_outer;
      const i64 begin = first % per_outer;
      const bool all = begin == 0 && last - first >= per_outer;
      const i64 outers = all ? (last - first) / per_outer : 1;
      const i64 end = all ? per_outer : (::std::min)(per_outer, begin + (last - first));
      for (i64 done = 0, some = 0; done < outers; done += some) {
        some = (::std::min)(outers - done, outers_at_once());
        average_part<T>(outer + done, int(some), begin, end);
      }
      first += outers * (end - begin);
    }
  }

 private:
  /// How many outer indices go through the scratch together, so that small planes make long
  /// vectors.
  i64 outers_at_once() const {
    const i64 elements = i64(grid_.window[0]) * grid_.window[1] * grid_.cells[2] * width_;
    return grid_.inner > 1 ? 1 : ::std::max<i64>(1, means_scratch::num_terms / elements);
  }

  /// Cells begin..end - 1 along the outermost windowed dimension, in `outers` outer indices.
  template <class T>
  void average_part(i64 outer, int outers, i64 begin, i64 end) {
    if (grid_.first_pooled == 2)
      return average_cells<T>({outer, outers, {0, 0, begin}, end - begin});
    for (i64 c = begin; c < end; ++c) {
      if (grid_.first_pooled == 1) {
        average_cells<T>({outer, outers, {0, c, 0}, grid_.cells[2]});
        continue;
      }
      for (i64 b = 0; b < grid_.cells[1]; ++b)
        average_cells<T>({outer, outers, {c, b, 0}, grid_.cells[2]});
    }
  }

  int extent_in_cell(int d, i64 cell) const {
    return int(::std::min<i64>(grid_.window[d], grid_.extent[d] - cell * grid_.window[d]));
  }

  template <class T>
  void average_cells(cell_run run) {
    const int rows_a = extent_in_cell(0, run.cell[0]);
    const int rows_b = extent_in_cell(1, run.cell[1]);
    const i64 last = run.cell[2] + run.count;
    const i64 fitting = grid_.inner > 1 ? 1 : cells_at_once(rows_a * rows_b, width_) / run.outers;
    for (; run.cell[2] < last; run.cell[2] += run.count) {
      run.count = (::std::min)(fitting, last - run.cell[2]);
      if (grid_.inner > 1) {
        average_strided<T>(run, rows_a, rows_b);
      } else {
        average_adjacent<T>(run, rows_a, rows_b);
      }
    }
  }

  /// Cells of which the scratch holds a row of elements, `width` each, and the sums of all rows.
  static int cells_at_once(int rows, int width) {
    return means_scratch::num_terms / (::std::max)(rows, width);
  }

  /// Cells whose elements are adjacent in memory along the innermost windowed dimension: so many
  /// rows at a time as the scratch holds.
  template <class T>
  void average_adjacent(const cell_run& run, int rows_a, int rows_b) {
    const int window = grid_.window[2];
    const int count = int(run.count);
    const i64 begin = run.cell[2] * window;
    const int present = int((::std::min)(run.count * window, grid_.extent[2] - begin));
    const int vector = run.outers * count;
    const int rows = rows_a * rows_b;
    const int rows_at_once = means_scratch::num_terms / (vector * width_);
    int a = 0;
    int b = 0;
    for (int done = 0, some = 0; done < rows; done += some) {
      some = (::std::min)(rows_at_once, rows - done);
      float* row = scratch_.terms;
      for (int r = 0; r < some; ++r) {
        for (int o = 0; o < run.outers; ++o, row += count * width_)
          load_row<T>(element_row(run, o, a, b) + begin, present, count, row);
        if (++b == rows_b) {
          b = 0;
          ++a;
        }
      }
      add_neighbours(scratch_.terms, some * vector, width_, scratch_.sums, scratch_.terms,
                     scratch_.rows + done * vector);
    }
    add_rows(scratch_.rows, rows_a, rows_b, vector);
    const int last_width = present - (count - 1) * window;  // elements along this, of the last cell
    for (int o = 0; o < run.outers; ++o) {
      const i64 first_cell = cell_row(run, o) + run.cell[2];
      float* const sum = scratch_.rows + o * count;
      store_means(first_cell, count - 1, rows * window, sum);
      store_means(first_cell + count - 1, 1, rows * last_width, sum + count - 1);
    }
  }

  /// Loads `present` elements as `count` cells that start every width_ floats, filled with +0.
  template <class T>
  void load_row(i64 first, int present, int count, float* row) const {
    const int window = grid_.window[2];
    if (window == width_) {
      load_floats<T>(x_, first, present, row);
      for (int i = present; i < count * width_; ++i) row[i] = 0.0f;
      return;
    }
    for (int cell = 0; cell < count; ++cell, row += width_) {
      const int elements = (::std::min)(window, present - cell * window);
      load_floats<T>(x_, first + i64(cell) * window, elements, row);
      ::std::fill(row + elements, row + width_, 0.0f);
    }
  }

  /// One cell per inner index, whose elements lie `inner` apart along the innermost dimension.
  template <class T>
  void average_strided(const cell_run& run, int rows_a, int rows_b) {
    const int width = extent_in_cell(2, run.cell[2]);
    const int rows = rows_a * rows_b;
    const i64 begin = run.cell[2] * grid_.window[2];
    const i64 first_cell = (cell_row(run, 0) + run.cell[2]) * grid_.inner;
    const i64 fitting = cells_at_once(rows, width);
    for (i64 inner = 0; inner < grid_.inner; inner += fitting) {
      const int count = int((::std::min)(fitting, grid_.inner - inner));
      for (int r = 0; r < rows; ++r) {
        const i64 row = element_row(run, 0, r / rows_b, r % rows_b) + begin;
        for (int c = 0; c < width; ++c)
          load_floats<T>(x_, (row + c) * grid_.inner + inner, count, scratch_.terms + c * count);
        add_vectors(scratch_.terms, width, count, count);
        ::std::copy(scratch_.terms, scratch_.terms + count, scratch_.rows + r * count);
      }
      add_rows(scratch_.rows, rows_a, rows_b, count);
      store_means(first_cell + inner, count, rows * width, scratch_.rows);
    }
  }

  /// Adds a row-major (rows_a, rows_b) array of vectors of `count` into its first vector.
  static void add_rows(float* vectors, int rows_a, int rows_b, int count) {
    for (int a = 0; a < rows_a; ++a)
      add_vectors(vectors + i64(a) * rows_b * count, rows_b, count, count);
    add_vectors(vectors, rows_a, i64(rows_b) * count, count);
  }

  void store_means(i64 first_cell, int count, int elements, float* sums) const {
    to_lfc(sums, count, elements, meta_);
    store_lfc(sums, count, meta_, lfc_ + first_cell * size_bytes(meta_));
  }

  /// Index of the first cell of a row along the innermost windowed dimension, over `inner`.
  i64 cell_row(const cell_run& run, int o) const {
    return (((run.outer + o) * grid_.cells[0] + run.cell[0]) * grid_.cells[1] + run.cell[1]) *
           grid_.cells[2];
  }
  /// Index of the first element, over `inner`, of row (a, b) of the cells.
  i64 element_row(const cell_run& run, int o, int a, int b) const {
    const i64 row_a = run.cell[0] * grid_.window[0] + a;
    const i64 row_b = run.cell[1] * grid_.window[1] + b;
    return (((run.outer + o) * grid_.extent[0] + row_a) * grid_.extent[1] + row_b) *
           grid_.extent[2];
  }

  const cell_grid& grid_;
  const dtype meta_;
  int width_ = 1;  // of a cell in the scratch, along the innermost windowed dimension
  const void* const x_;
  u8* const lfc_;
  means_scratch& scratch_;
};

}  // namespace furl::host::detail

FURL_HIDDEN_END
