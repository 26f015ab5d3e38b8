// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The low-frequency component on the host (README, A2): means of cells into the blob, and the mean
// of every element of a tile out of it.

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
    float* row = scratch_;
    for (int a = 0; a < rows_a; ++a) {
      for (int b = 0; b < rows_b; ++b, row += count * width)
        load_row<T>(element_row(run, a, b) + begin, present, window, width, count, row);
    }
    int terms = rows_a * rows_b * count * width;
    for (int remaining = width; remaining > 1; remaining /= 2) {
      terms /= 2;
      for (int i = 0; i < terms; ++i) scratch_[i] = scratch_[2 * i] + scratch_[2 * i + 1];
    }
    add_rows(rows_a, rows_b, count);
    const int last_width = present - (count - 1) * window;  // elements along this, of the last cell
    const i64 first_cell = cell_row(run) + run.cell[2];
    for (int i = 0; i < count; ++i) {
      const int elements = rows_a * rows_b * (i + 1 < count ? window : last_width);
      store_mean(first_cell + i, scratch_[i], elements);
    }
  }

  /// Loads `present` elements as cells of `window` that start every `width` floats, filled with +0.
  template <class T>
  void load_row(i64 first, int present, int window, int width, int count, float* row) const {
    if (window == width) {
      for (int i = 0; i < present; ++i) row[i] = to_f32(load_at<T>(x_, first + i));
      for (int i = present; i < count * width; ++i) row[i] = 0.0f;
      return;
    }
    for (int cell = 0; cell < count; ++cell, row += width) {
      const int elements = std::min(window, present - cell * window);
      for (int i = 0; i < elements; ++i)
        row[i] = to_f32(load_at<T>(x_, first + i64(cell) * window + i));
      for (int i = elements; i < width; ++i) row[i] = 0.0f;
    }
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
            for (int i = 0; i < count; ++i) terms[i] = to_f32(load_at<T>(x_, first + i));
          }
        }
      }
      for (int r = 0; r < rows_a * rows_b; ++r)
        add_tree(scratch_ + i64(r) * width * count, width, count, count);
      for (int r = 1; r < rows_a * rows_b; ++r)
        for (int i = 0; i < count; ++i)
          scratch_[r * count + i] = scratch_[i64(r) * width * count + i];
      add_rows(rows_a, rows_b, count);
      for (int i = 0; i < count; ++i) store_mean(first_cell + inner + i, scratch_[i], elements);
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
    for (int step = 1; step < terms; step *= 2) {
      for (int t = 0; t + step < terms; t += 2 * step) {
        float* const left = vectors + t * stride;
        const float* const right = left + step * stride;
        for (int i = 0; i < count; ++i) left[i] += right[i];
      }
    }
  }

  void store_mean(i64 cell, float sum, int elements) const {
    store_meta(lfc_, cell, meta_, lfc_value(cell_mean(sum, elements), meta_));
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
};

/// Writes the means of the cells of bands first..last - 1 into the blob.
template <class T>
void pool_bands(const plan& p, const void* x, u8* blob, i64 first, i64 last) {
  cell_pooler(p, x, blob + p.lfc_offset()).pool_bands<T>(first, last);
}

/// Floats that expand_lfc may write beyond the last element asked for.
inline constexpr int expand_slack = 8;

/// The LFC value of each of `count` elements from `first` on, into out.
/// Pre: out has room for count + expand_slack floats.
inline void expand_lfc(const plan& p, const u8* lfc, i64 first, int count, float* out) {
  const cell_grid& g = p.grid();
  const dtype meta = p.codec().meta;
  grid_position at = position_of(g, first);
  for (float* const end = out + count; out < end;) {
    // The rest of this row along the innermost pooled dimension.
    i64 cell = cell_of(g, at);
    if (g.inner == 1) {
      i64 in_cell = at.pooled[2] % g.window[2];
      const i64 in_row = std::min<i64>(g.extent[2] - at.pooled[2], end - out);
      float* const row_end = out + in_row;
      while (out < row_end) {
        const i64 run = std::min<i64>(g.window[2] - in_cell, row_end - out);
        const float value = load_meta(lfc, cell++, meta);
        for (i64 i = 0; i < run; i += expand_slack)
          for (int j = 0; j < expand_slack; ++j) out[i + j] = value;
        out += run;
        in_cell = 0;
      }
      at.pooled[2] += in_row;
    } else {
      const i64 run = std::min<i64>(g.inner - at.inner, end - out);
      for (i64 i = 0; i < run; ++i) out[i] = load_meta(lfc, cell + i, meta);
      out += run;
      at.inner = 0;
      ++at.pooled[2];
    }
    for (int d = 2; d > 0 && at.pooled[d] == g.extent[d]; --d) {
      at.pooled[d] = 0;
      ++at.pooled[d - 1];
    }
    if (at.pooled[0] == g.extent[0]) {
      at.pooled[0] = 0;
      ++at.outer;
    }
  }
}

}  // namespace furl::host::detail
