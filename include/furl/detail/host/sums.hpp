// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Pairwise sums (FORMAT.md, A2) over vectors of partial sums, the means made of them, and the
// scratch that both ways to the means of cells use (means.hpp, bands.hpp).

#include <algorithm>
#include <type_traits>
#include <utility>

#include "furl/config.hpp"
#include "furl/detail/cells.hpp"
#include "furl/detail/host/tile.hpp"
#include "furl/detail/number.hpp"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

FURL_HIDDEN_BEGIN

namespace furl::host::detail {

/// Cells of a plane, and of those behind it.
struct cell_list {
  static constexpr int most = 192;  // whose means are made together
  i64 offset[2 * most + 8];         // first element of each, from that of the plane
  int rows[2 * most + 8];           // of elements
  int columns[2 * most + 8];        // likewise
  float elements[2 * most + 8];     // of the cell
};

/// Scratch for the means of cells. What is in it means nothing between two calls; what shares its
/// place is never needed together.
struct means_scratch {
  static constexpr int num_terms = 2 * tile_elements;  // at least the elements of half a cell
  static constexpr int num_means = num_terms / 2;      // that are made together
  union {
    alignas(64) float terms[num_terms];
    cell_list cells;
  };
  alignas(64) float rows[num_terms + 8];  // at least eight for each row of a cell
  union {
    alignas(64) float sums[num_means];
    float means[num_means + 8];
  };
};

/// sums[i] = terms[2i] + terms[2i + 1].
inline void add_pairs(const float* __restrict terms, int count, float* __restrict sums) {
  for (int i = 0; i < count; ++i) sums[i] = add_rn(terms[2 * i], terms[2 * i + 1]);
}

#if defined(__AVX2__)
/// Eight elements as floats.
template <class T>
__m256 load_eight(const void* x) {
  if constexpr (::std::is_same_v<T, float>) {
    return _mm256_loadu_ps(static_cast<const float*>(x));
  } else if constexpr (::std::is_same_v<T, bf16>) {
    const __m128i bits = _mm_loadu_si128(static_cast<const __m128i*>(x));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  } else {
    alignas(32) float values[8];
    load_floats<T>(x, 0, 8, values);
    return _mm256_load_ps(values);
  }
}

/// The trees over eight vectors, of which load(k) gives the k-th.
template <class Load>
FURL_FORCE_INLINE __m256 add_eight_vectors(const Load& load) {
  // Shuffles limit this, so blends take their place where they can; the order of two terms does
  // not matter.
  const auto two = [&](int k) {  // of vectors k and k + 2
    const __m256 a = load(k);
    const __m256 b = load(k + 2);
    return _mm256_add_ps(_mm256_shuffle_ps(a, b, 0x88), _mm256_shuffle_ps(a, b, 0xdd));
  };
  const auto four = [&](int k) {  // sums of the low halves of vectors k .. k + 3, and of the high
    const __m256 a = two(k);
    const __m256 b = two(k + 1);
    return _mm256_add_ps(_mm256_blend_ps(a, b, 0xaa),
                         _mm256_permute_ps(_mm256_blend_ps(a, b, 0x55), 0xb1));
  };
  const __m256 a = four(0);
  const __m256 b = four(4);
  return _mm256_add_ps(_mm256_blend_ps(a, b, 0xf0), _mm256_permute2f128_ps(a, b, 0x21));
}
#endif

/// sums[i] = the tree over elements 8i .. 8i + 7 of x: three add_pairs at once.
template <class T>
void add_eights(const void* x, int count, float* __restrict sums) {
  int i = 0;
#if defined(__AVX2__)
  for (; i + 8 <= count; i += 8) {
    const u8* const at = static_cast<const u8*>(x) + 8 * i * i64(sizeof(T));
    const auto load = [at](int k) { return load_eight<T>(at + 8 * k * int(sizeof(T))); };
    _mm256_storeu_ps(sums + i, add_eight_vectors(load));
  }
#endif
  for (; i < count; ++i) {
    float terms[8];
    load_floats<T>(x, 8 * i, 8, terms);
    sums[i] = add_rn(add_rn(add_rn(terms[0], terms[1]), add_rn(terms[2], terms[3])),
                     add_rn(add_rn(terms[4], terms[5]), add_rn(terms[6], terms[7])));
  }
}

/// sums[i] = the tree over the eight terms[i], terms[i + stride] .., for `count` sums and up to
/// seven more, which may be read and written too.
inline void add_eight_rows(const float* __restrict terms, i64 stride, int count,
                           float* __restrict sums) {
  const auto row = [terms, stride](int r, int i) { return terms[r * stride + i]; };
  for (int j = 0; j < count; j += 8) {
    for (int i = j; i < j + 8; ++i) {
      sums[i] = add_rn(add_rn(add_rn(row(0, i), row(1, i)), add_rn(row(2, i), row(3, i))),
                       add_rn(add_rn(row(4, i), row(5, i)), add_rn(row(6, i), row(7, i))));
    }
  }
}

/// Reduces `sums` runs of `width` neighbours, a power of two above 1, to their sums in `out`, by
/// way of two scratch arrays of a half and a quarter as many floats; the terms may be the second.
inline void add_neighbours(const float* terms, int sums, int width, float* scratch, float* other,
                           float* out) {
  while (width > 1) {
    const bool by_eight = width >= 8;
    width /= by_eight ? 8 : 2;
    float* const to = width == 1 ? out : scratch;
    if (by_eight) {
      add_eights<float>(terms, sums * width, to);
    } else {
      add_pairs(terms, sums * width, to);
    }
    terms = scratch;
    ::std::swap(scratch, other);
  }
}

inline void add_to(float* __restrict left, const float* __restrict right, int count) {
  for (int i = 0; i < count; ++i) left[i] = add_rn(left[i], right[i]);
}

/// Tree over `terms` vectors of `count` floats, `stride` apart, into the first of them.
inline void add_vectors(float* vectors, int terms, i64 stride, int count) {
  if (terms == 8) {  // the commonest: in one pass
    for (float* v = vectors; v < vectors + count; ++v) {
      const float low = add_rn(add_rn(v[0], v[stride]), add_rn(v[2 * stride], v[3 * stride]));
      const float high =
          add_rn(add_rn(v[4 * stride], v[5 * stride]), add_rn(v[6 * stride], v[7 * stride]));
      *v = add_rn(low, high);
    }
    return;
  }
  for (int step = 1; step < terms; step *= 2)
    for (int t = 0; t + step < terms; t += 2 * step)
      add_to(vectors + t * stride, vectors + (t + step) * stride, count);
}

/// sums[i] = the tree over vectors[i], vectors[i + stride] .., of `rows` vectors of `count` floats
/// and up to seven more, which may be read and written too. The vectors change.
inline void add_rows(float* vectors, int rows, i64 stride, int count, float* sums) {
  if (rows == 8) return add_eight_rows(vectors, stride, count, sums);
  add_vectors(vectors, rows, stride, count);
  ::std::copy(vectors, vectors + count, sums);
}

/// Sums of cells of `elements` elements each become the values to store and to subtract.
inline void to_lfc(float* sums, int count, int elements, dtype meta) {
  for (int i = 0; i < count; ++i) sums[i] = lfc_value(cell_mean(sums[i], elements), meta);
}

/// The same for cells of different sizes.
inline void to_lfc(float* __restrict sums, const float* __restrict elements, int count,
                   dtype meta) {
  for (int i = 0; i < count; ++i) sums[i] = lfc_value(div_rn(sums[i], elements[i]), meta);
}

inline void store_lfc(const float* __restrict lfc, int count, dtype meta, u8* __restrict out) {
  if (meta == dtype::f32) {
    for (int i = 0; i < count; ++i) store_at(out, i, lfc[i]);
  } else {
    for (int i = 0; i < count; ++i) store_at(out, i, stored_bf16(lfc[i]));
  }
}

}  // namespace furl::host::detail

FURL_HIDDEN_END
