// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Parts of cells: eight columns, each row of which is a vector. Their sums, of eight cells at a
// time, and what is left of the elements when the means are subtracted.

#include <algorithm>

#include "furl/config.hpp"
#include "furl/detail/host/sums.hpp"
#include "furl/detail/host/tile.hpp"
#include "furl/detail/number.hpp"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

FURL_HIDDEN_BEGIN

namespace furl::host::detail {

/// Cells whose means are made together.
struct eight_cells {
  const u8* x;         // the array from which their first elements are so far:
  const i64* offset;   // in elements
  const int* rows;     // of elements
  const int* columns;  // likewise, 1..8
  int present;         // how many there are, if not all
  i64 stride;          // elements from row to row
};

/// sums[8 * row + k] = the tree over a row of cell k, for rows up to max_rows.
template <class T>
void add_rows_exactly(const eight_cells& cells, int max_rows, float* sums) {
  alignas(32) float terms[64];
  for (int row = 0; row < max_rows; ++row, sums += 8) {
    for (int k = 0; k < 8; ++k) {
      const int count = k < cells.present && row < cells.rows[k] ? cells.columns[k] : 0;
      load_floats<T>(cells.x, cells.offset[k] + row * cells.stride, count, terms + 8 * k);
      ::std::fill(terms + 8 * k + count, terms + 8 * k + 8, 0.0f);
    }
    add_eights<float>(terms, 8, sums);
  }
}

/// The same if max_rows rows of 8 elements can be read at each cell.
template <class T>
void add_rows_of_cells(const eight_cells& cells, int max_rows, float* sums) {
#if defined(__AVX2__)
  alignas(32) static constexpr u32 masks[16] = {~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u};
  __m256 in_row[8];
  const u8* at[8];
  FURL_UNROLL
  for (int k = 0; k < 8; ++k) {
    in_row[k] = _mm256_loadu_ps(reinterpret_cast<const float*>(masks + 8 - cells.columns[k]));
    at[k] = cells.x + cells.offset[k] * i64(sizeof(T));
  }
  const __m256i rows = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(cells.rows));
  i64 offset = 0;
  for (int row = 0; row < max_rows; ++row, sums += 8) {
    const __m256 sum = add_eight_vectors(
        [&](int k) { return _mm256_and_ps(load_eight<T>(at[k] + offset), in_row[k]); });
    const __m256i in_cell = _mm256_cmpgt_epi32(rows, _mm256_set1_epi32(row));
    _mm256_storeu_ps(sums, _mm256_and_ps(sum, _mm256_castsi256_ps(in_cell)));
    offset += cells.stride * i64(sizeof(T));
  }
#else
  add_rows_exactly<T>(cells, max_rows, sums);
#endif
}

#if defined(__AVX2__)
/// r = x - mean for elements that follow one another, and up to seven floats more. `readable`
/// elements are there.
template <class T>
FURL_FORCE_INLINE void subtract_run(const u8* x, int count, i64 readable, float mean, float* r) {
  const __m256 means = _mm256_set1_ps(mean);
  const int end = readable < (count + 7) / 8 * 8 ? count - 7 : count;
  int i = 0;
  for (; i < end; i += 8)
    _mm256_storeu_ps(r + i, _mm256_sub_ps(load_eight<T>(x + i * int(sizeof(T))), means));
  for (; i < count; ++i) r[i] = sub_rn(to_f32(load_at<T>(x, i)), mean);
}
#endif

/// r = x - mean[i] for the i-th of some vectors of each row, of which the last may reach beyond the
/// row's end. `readable` elements are there from the beginning of the last row on.
template <class T, int Vectors>
FURL_FORCE_INLINE void subtract_eights(const u8* x, int rows, i64 columns, i64 readable,
                                       const float* mean, float* r) {
  int row = 0;
#if defined(__AVX2__)
  if (Vectors == 1 && columns <= 8) {
    subtract_run<T>(x, rows * int(columns), readable + (rows - 1) * columns, *mean, r);
    return;
  }
  // Rows are longer than a vector here, so that each but the last may read into the next.
  __m256 means[Vectors];
  FURL_UNROLL
  for (int i = 0; i < Vectors; ++i) means[i] = _mm256_broadcast_ss(mean + i);
  for (const int last = readable < 8 * Vectors ? rows - 1 : rows; row < last; ++row) {
    FURL_UNROLL
    for (int i = 0; i < Vectors; ++i)
      _mm256_storeu_ps(r + 8 * i,
                       _mm256_sub_ps(load_eight<T>(x + 8 * i * int(sizeof(T))), means[i]));
    x += columns * i64(sizeof(T));
    r += columns;
  }
#endif
  for (; row < rows; ++row, x += columns * i64(sizeof(T)), r += columns)
    for (int i = 0; i < 8 * Vectors && i < readable; ++i)
      r[i] = sub_rn(to_f32(load_at<T>(x, i)), mean[i / 8]);
}

}  // namespace furl::host::detail

FURL_HIDDEN_END
