// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The low-frequency component on the host (README, A2): the means of cells.

#include <algorithm>

#include "furl/config.hpp"
#include "furl/dtype.hpp"
#include "furl/element/pool.hpp"
#include "furl/host/tile.hpp"
#include "furl/plan.hpp"

namespace furl::host::detail {

/// Cells that are pooled together: the same index along all pooled dimensions but the innermost,
/// `count` neighbours along that.
struct cell_run {
  i64 outer;
  i64 cell[3];  // of the first cell
  i64 count;
};

/// Pools runs of cells in a fixed scratch. A run is laid out as vectors of partial sums that the
/// tree adds to each other, innermost pooled dimension first.
class cell_pooler {
 public:
  cell_pooler(const plan& p, const void* x, u8* lfc)
      : grid_(p.grid()), meta_(p.codec().meta), x_(x), lfc_(lfc) {}

  /// Means of all cells of bands first..last - 1.
  template <class T>
  void pool_bands(i64 first, i64 last) {
    const cell_grid& g = grid_;
    const i64 per_outer = g.cells[g.first_pooled];
    for (i64 band = first; band < last;) {
      const i64 outer = band / per_outer;
      const i64 begin = band % per_outer;
      const i64 end = std::min(per_outer, begin + (last - band));
      if (g.first_pooled == 2) {
        pool_cells<T>({outer, {0, 0, begin}, end - begin});
      } else {
        for (i64 c = begin; c < end; ++c) {
          if (g.first_pooled == 1) {
            pool_cells<T>({outer, {0, c, 0}, g.cells[2]});
          } else {
            for (i64 b = 0; b < g.cells[1]; ++b) pool_cells<T>({outer, {c, b, 0}, g.cells[2]});
          }
        }
      }
      band += end - begin;
    }
  }

 private:
  // The largest cell, with its innermost dimension filled up to a power of two.
  static constexpr int scratch_elements = 2 * max_cell_elements;

  int extent_in_cell(int d, i64 cell) const {
    return int(std::min<i64>(grid_.window[d], grid_.extent[d] - cell * grid_.window[d]));
  }

  template <class T>
  void pool_cells(cell_run run) {
    if (grid_.inner > 1) {
      const i64 last = run.cell[2] + run.count;
      for (; run.cell[2] < last; ++run.cell[2]) pool_strided<T>(run);
      return;
    }
    const int rows = extent_in_cell(0, run.cell[0]) * extent_in_cell(1, run.cell[1]);
    const i64 fitting = scratch_elements / (rows * padded_width());
    const i64 last = run.cell[2] + run.count;
    for (; run.cell[2] < last; run.cell[2] += run.count) {
      run.count = std::min(fitting, last - run.cell[2]);
      pool_adjacent<T>(run);
    }
  }

  int padded_width() const {
    int width = 1;
    while (width < grid_.window[2]) width *= 2;
    return width;
  }

  /// Cells whose elements are adjacent in memory along the innermost pooled dimension.
  template <class T>
  void pool_adjacent(const cell_run& run) {
    const int window = grid_.window[2];
    const int width = padded_width();
    const int count = int(run.count);
    const i64 begin = run.cell[2] * window;
    const int present = int(std::min(run.count * window, grid_.extent[2] - begin));
    const int rows_a = extent_in_cell(0, run.cell[0]);
    const int rows_b = extent_in_cell(1, run.cell[1]);
    const bool whole_rows = present == grid_.extent[2] && present == count * width;
    float* row = scratch_;
    for (int a = 0; a < rows_a; ++a) {
      const i64 first = element_row(run, a, 0) + begin;
      if (whole_rows) {  // which follow each other in memory as they do in the scratch
        load_floats<T>(x_, first, rows_b * present, row);
        row += rows_b * present;
        continue;
      }
      for (int b = 0; b < rows_b; ++b, row += count * width)
        load_row<T>(first + b * grid_.extent[2], present, window, width, count, row);
    }
    add_neighbours(rows_a * rows_b * count, width);
    add_rows(rows_a, rows_b, count);
    const int last_width = present - (count - 1) * window;  // elements along this, of the last cell
    const i64 first_cell = cell_row(run) + run.cell[2];
    store_means(first_cell, count - 1, rows_a * rows_b * window, scratch_);
    store_means(first_cell + count - 1, 1, rows_a * rows_b * last_width, scratch_ + count - 1);
  }

  /// Loads `present` elements as cells of `window` that start every `width` floats, filled with +0.
  template <class T>
  void load_row(i64 first, int present, int window, int width, int count, float* row) const {
    if (window == width) {
      load_floats<T>(x_, first, present, row);
      std::fill(row + present, row + count * width, 0.0f);
      return;
    }
    for (int cell = 0; cell < count; ++cell, row += width) {
      const int elements = std::min(window, present - cell * window);
      load_floats<T>(x_, first + i64(cell) * window, elements, row);
      std::fill(row + elements, row + width, 0.0f);
    }
  }

  /// Reduces `sums` runs of `width` neighbours, a power of two, to their sums.
  void add_neighbours(int sums, int width) {
    for (; width > 1; width /= 2) {
      halve(scratch_, sums * width / 2, halves_);
      std::copy(halves_, halves_ + sums * width / 2, scratch_);
    }
  }

  static void halve(const float* __restrict terms, int count, float* __restrict sums) {
    for (int i = 0; i < count; ++i) sums[i] = add(terms[2 * i], terms[2 * i + 1]);
  }

  /// One cell per inner index, whose elements lie `inner` apart along the innermost dimension.
  template <class T>
  void pool_strided(const cell_run& run) {
    const int width = extent_in_cell(2, run.cell[2]);
    const int rows_a = extent_in_cell(0, run.cell[0]);
    const int rows_b = extent_in_cell(1, run.cell[1]);
    const int elements = rows_a * rows_b * width;
    const i64 begin = run.cell[2] * grid_.window[2];
    const i64 first_cell = (cell_row(run) + run.cell[2]) * grid_.inner;
    const i64 fitting = scratch_elements / elements;
    for (i64 inner = 0; inner < grid_.inner; inner += fitting) {
      const int count = int(std::min(fitting, grid_.inner - inner));
      float* terms = scratch_;
      for (int a = 0; a < rows_a; ++a) {
        for (int b = 0; b < rows_b; ++b) {
          for (int c = 0; c < width; ++c, terms += count) {
            const i64 first = (element_row(run, a, b) + begin + c) * grid_.inner + inner;
            load_floats<T>(x_, first, count, terms);
          }
        }
      }
      for (int r = 0; r < rows_a * rows_b; ++r)
        add_tree(scratch_ + i64(r) * width * count, width, count, count);
      for (int r = 1; r < rows_a * rows_b; ++r)
        for (int i = 0; i < count; ++i)
          scratch_[r * count + i] = scratch_[i64(r) * width * count + i];
      add_rows(rows_a, rows_b, count);
      store_means(first_cell + inner, count, elements, scratch_);
    }
  }

  /// Adds a row-major (rows_a, rows_b) array of vectors of `count` into its first vector.
  void add_rows(int rows_a, int rows_b, int count) {
    for (int a = 0; a < rows_a; ++a)
      add_tree(scratch_ + i64(a) * rows_b * count, rows_b, count, count);
    add_tree(scratch_, rows_a, i64(rows_b) * count, count);
  }

  /// Pairwise tree over `terms` vectors of `count` floats, `stride` apart, into the first.
  static void add_tree(float* vectors, int terms, i64 stride, int count) {
    for (int step = 1; step < terms; step *= 2)
      for (int t = 0; t + step < terms; t += 2 * step)
        add_to(vectors + t * stride, vectors + (t + step) * stride, count);
  }

  static void add_to(float* __restrict left, const float* __restrict right, int count) {
    for (int i = 0; i < count; ++i) left[i] = add(left[i], right[i]);
  }

  void store_means(i64 first_cell, int count, int elements, const float* sums) const {
    for (int i = 0; i < count; ++i)
      store_meta(lfc_, first_cell + i, meta_, lfc_value(cell_mean(sums[i], elements), meta_));
  }

  /// Index of the row of cells along the innermost pooled dimension.
  i64 cell_row(const cell_run& run) const {
    return ((run.outer * grid_.cells[0] + run.cell[0]) * grid_.cells[1] + run.cell[1]) *
           grid_.cells[2];
  }
  /// Index of the first element, over `inner`, of row (a, b) of the cells.
  i64 element_row(const cell_run& run, int a, int b) const {
    const i64 row_a = run.cell[0] * grid_.window[0] + a;
    const i64 row_b = run.cell[1] * grid_.window[1] + b;
    return ((run.outer * grid_.extent[0] + row_a) * grid_.extent[1] + row_b) * grid_.extent[2];
  }

  const cell_grid& grid_;
  const dtype meta_;
  const void* const x_;
  u8* const lfc_;
  alignas(64) float scratch_[scratch_elements];
  alignas(64) float halves_[scratch_elements / 2];
};

/// Writes the means of the cells of bands first..last - 1 into the blob.
template <class T>
void pool_bands(const plan& p, const void* x, u8* blob, i64 first, i64 last) {
  cell_pooler(p, x, blob + p.lfc_offset()).pool_bands<T>(first, last);
}

}  // namespace furl::host::detail
