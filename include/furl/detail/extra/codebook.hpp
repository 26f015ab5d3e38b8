// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the calls of extra/codebook.hpp are made of: the checks of codebooks, and the way of a tile
// of 1024 values to codes and back.

#if !defined(__CUDACC_RTC__)
#include <algorithm>
#include <cstring>

#include "furl/config.hpp"
#include "furl/detail/checks.hpp"
#include "furl/detail/extra/scaled.hpp"
#include "furl/detail/host/random.hpp"
#include "furl/detail/host/tile.hpp"
#include "furl/detail/host/work.hpp"
#include "furl/detail/number.hpp"
#include "furl/detail/quantize.hpp"
#include "furl/extra/codebook.hpp"
#include "furl/plan.hpp"
#include "furl/thread_pool.hpp"
#include "furl/types.hpp"

FURL_HIDDEN_BEGIN

namespace furl::detail {

inline status check_thresholds(const codebook& book) {
  for (int i = 0; i < book.num_levels - 1; ++i) {
    const float t = book.threshold[i];
    if (is_nan(t) || (i > 0 && book.threshold[i - 1] > t))
      return {error::out_of_range, "book.threshold", i, "must be ascending, none NaN (by index)"};
  }
  return {};
}

inline status check_gaps(const codebook& book) {
  for (int i = 1; i < book.num_levels; ++i) {
    const float gap = book.level[i] - book.level[i - 1];
    if (!(gap >= smallest_normal) || !is_finite(gap))
      return {error::out_of_range, "book.level", i,
              "must be at least 2^-126 above the level before, by a finite difference (by index)"};
  }
  return {};
}

/// What a codebook must be for codes of a number of bits.
inline status check_codebook(const codebook& book, int bits) {
  const host::float_environment environment;
  if (book.num_levels < 2 || book.num_levels > (1 << bits))
    return {error::out_of_range, "book.num_levels", book.num_levels,
            "must be at least 2 and fit in the plan's bits"};
  if (book.rounding != rounding::stochastic && book.rounding != rounding::nearest)
    return {error::out_of_range, "book.rounding", i64(book.rounding),
            "must be rounding::stochastic or rounding::nearest"};
  for (int i = 0; i < book.num_levels; ++i)
    if (!is_finite(book.level[i]))
      return {error::out_of_range, "book.level", i, "must be finite (by index)"};
  return book.rounding == rounding::nearest ? check_thresholds(book) : check_gaps(book);
}

/// The largest magnitude of a codebook's levels.
inline float largest_level(const codebook& book) {
  u32 bits = 0;
  for (int i = 0; i < book.num_levels; ++i)
    bits = (::std::max)(bits, bits_of(book.level[i]) & 0x7fffffffu);
  return float_of(bits);
}

/// The same for a plan, whose groups may have scales.
inline status check_codebook(const codebook& book, const plan& p) {
  if (const status s = check_codebook(book, p.codec().bits); !s) return s;
  if (p.kind() == plan_kind::scaled && is_zero(largest_level(book)))
    return {error::out_of_range, "book.level", 0, "must not all be 0 where groups have scales"};
  return {};
}

/// An array of values and a blob with their codes.
inline status check_coded_values(const plan& p, const_values array, const char* argument,
                                 const_bytes blob) {
  if (const status s = check_elements(p, array, argument); !s) return s;
  if (const status s = check_blob(p, blob); !s) return s;
  return check_apart(bytes_of(p, blob), {bytes_of(array, argument)}, "must not overlap the blob");
}

/// Codes in a blob, an array, and an array that is made from it element by element.
inline status check_coded_output(const plan& p, const_values input, const char* input_name,
                                 const_values output, const char* output_name, const_bytes blob) {
  if (const status s = check_coded_values(p, input, input_name, blob); !s) return s;
  if (const status s = check_elementwise(input, output, output_name); !s) return s;
  return check_apart(bytes_of(p, blob), {bytes_of(output, output_name)},
                     "must not overlap the blob");
}

}  // namespace furl::detail

namespace furl::host {

namespace detail {

/// counts[i] = how many thresholds are at most x[i], for a tile. One loop over all of them is
/// faster than a search as long as they are few. Pre: thresholds has 255 numbers, ascending, NaN
/// from num_thresholds on.
inline void count_thresholds(const float* __restrict x, const float* __restrict thresholds,
                             int num_thresholds, u8* __restrict counts) {
  constexpr int few = 15;
  constexpr int chunk = 32;
  for (int j = 0; j < tile_elements; j += chunk) {
    int n[chunk] = {};
    if (num_thresholds <= few) {
      for (int t = 0; t < num_thresholds; ++t)
        for (int i = 0; i < chunk; ++i) n[i] += int(x[j + i] >= thresholds[t]);
    } else {
      for (int step = max_levels / 2; step > 0; step /= 2)
        for (int i = 0; i < chunk; ++i) n[i] += x[j + i] >= thresholds[n[i] + step - 1] ? step : 0;
    }
    for (int i = 0; i < chunk; ++i) counts[j + i] = u8(n[i]);
  }
}

/// Makes codes of tiles. It refers to the codebook, which must outlive it.
class value_coder {
 public:
  value_coder(const codebook& book, random_key key) : book_(book), key_(key) {
    const float_environment environment;
    const bool nearest = book.rounding == rounding::nearest;
    // A level is the beginning of an interval: all but the first and the last are counted.
    const float* const from = nearest ? book.threshold : book.level + 1;
    num_thresholds_ = nearest ? book.num_levels - 1 : book.num_levels - 2;
    for (int i = 0; i < max_levels - 1; ++i)
      thresholds_[i] = i < num_thresholds_ ? from[i] : float_of(f32_nan_bits);
    for (int i = 0; !nearest && i < book.num_levels - 1; ++i)
      inverse_[i] = div_rn(1.0f, sub_rn(book.level[i + 1], book.level[i]));
  }

  /// Codes of a tile, of which the first `count` elements are present; the others get 0.
  void encode(float* x, int count, i64 tile, u8* codes) const {
    for (int i = count; i < tile_elements; ++i) x[i] = 0.0f;
    if (book_.of_magnitudes)
      for (int i = 0; i < tile_elements; ++i) x[i] = magnitude(x[i]);
    if (book_.rounding == rounding::stochastic) {
      encode_stochastic(x, tile, codes);
    } else {
      count_thresholds(x, thresholds_, num_thresholds_, codes);
    }
    ::std::memset(codes + count, 0, static_cast<::std::size_t>(tile_elements - count));
  }

 private:
  void encode_stochastic(float* x, i64 tile, u8* codes) const {
    const float first = book_.level[0];
    const float last = book_.level[book_.num_levels - 1];
    for (int i = 0; i < tile_elements; ++i) {
      x[i] = x[i] > first ? x[i] : first;  // NaN too
      x[i] = x[i] < last ? x[i] : last;
    }
    count_thresholds(x, thresholds_, num_thresholds_, codes);
    tile_bytes random;
    random_tile(u64(tile), key_, random.word);
    const auto* const u = reinterpret_cast<const u8*>(random.word);
    for (int i = 0; i < tile_elements; ++i) {
      const int interval = codes[i];
      const u32 fixed = fixed_point(x[i], book_.level[interval], inverse_[interval]);
      codes[i] = u8(u32(interval) + round_code(fixed, u[i]));
    }
  }

  const codebook& book_;
  const random_key key_;
  int num_thresholds_;
  float thresholds_[max_levels - 1];
  float inverse_[max_levels] = {};
};

/// Levels of codes. A code that names no level stands for 0.
class level_reader {
 public:
  explicit level_reader(const codebook& book) : num_levels_(book.num_levels) {
    for (int i = 0; i < book.num_levels; ++i) level_[i] = book.level[i];
  }

  /// Levels of a tile of a blob, multiplied by the scales of their groups if there are any.
  void load(const plan& p, const_bytes blob, i64 tile, float* v) const {
    tile_bytes packed;
    load_tile(p, tile, blob, packed);
    const auto* const codes = reinterpret_cast<const u8*>(packed.word);
    if (num_levels_ == 2 && p.codec().bits == 1) {  // selects, which vectorise
      const u32 low = bits_of(level_[0]);
      const u32 high = bits_of(level_[1]);
      for (int i = 0; i < tile_elements; ++i)
        v[i] = float_of(select_bits(codes[i] != 0, high, low));
    } else {
      for (int i = 0; i < tile_elements; ++i) v[i] = level_[codes[i]];
    }
    if (p.kind() == plan_kind::scaled) scale_levels(p, blob, tile, v);
  }

 private:
  int num_levels_;
  float level_[max_levels] = {};
};

/// Multiplies the gradients of a tile by the levels of its elements.
inline void scale_tile(const float* __restrict level, float* __restrict g) {
  for (int i = 0; i < tile_elements; ++i) g[i] = scale_by_level(g[i], level[i]);
}

/// pack after the checks. scales: given ones, or none.
inline void pack_tiles(const plan& p, const_values x, const codebook& book,
                       furl::span<const float> scales, bytes blob, random_key key,
                       thread_pool* pool) {
  const value_coder coder(book, key);
  const group_scaler scaler(p, furl::detail::largest_level(book), scales, blob);
  const bool is_scaled = p.kind() == plan_kind::scaled;
  if (is_scaled) clear_scale_padding(p, blob);
  with_type(x.type, [&](auto element) {
    for_each_unit(p.num_tiles(), pool, [&](i64 tile) {
      const int count = elements_in_tile(p, tile);
      alignas(64) float values[tile_elements];
      load_floats<decltype(element)>(x.data, tile * tile_elements, count, values);
      if (is_scaled) scaler.scale(values, count, tile);
      tile_bytes codes;
      coder.encode(values, count, tile, reinterpret_cast<u8*>(codes.word));
      store_tile(p, tile, codes, blob);
    });
  });
}

}  // namespace detail

inline status pack(const plan& p, const_values x, const codebook& book, bytes blob, random_key key,
                   thread_pool* pool) {
  if (const status s = furl::detail::check_holds_levels(p); !s) return s;
  if (const status s = furl::detail::check_coded_values(p, x, "x", blob); !s) return s;
  if (const status s = furl::detail::check_codebook(book, p); !s) return s;
  detail::pack_tiles(p, x, book, {}, blob, key, pool);
  return {};
}

inline status pack(const plan& p, const_values x, const codebook& book, span<const float> scales,
                   bytes blob, random_key key, thread_pool* pool) {
  if (const status s = furl::detail::check_scales(p, scales, blob); !s) return s;
  if (const status s = detail::check_scale_values(scales); !s) return s;
  if (const status s = furl::detail::check_coded_values(p, x, "x", blob); !s) return s;
  if (const status s = furl::detail::check_codebook(book, p); !s) return s;
  detail::pack_tiles(p, x, book, scales, blob, key, pool);
  return {};
}

inline status unpack(const plan& p, const_bytes blob, const codebook& book, values y,
                     thread_pool* pool) {
  if (const status s = furl::detail::check_holds_levels(p); !s) return s;
  if (const status s = furl::detail::check_coded_values(p, y, "y", blob); !s) return s;
  if (const status s = furl::detail::check_codebook(book, p); !s) return s;
  const detail::level_reader levels(book);
  with_type(y.type, [&](auto element) {
    using type = decltype(element);
    detail::for_each_unit(p.num_tiles(), pool, [&](i64 tile) {
      alignas(64) float v[tile_elements];
      levels.load(p, blob, tile, v);
      u8* const to = static_cast<u8*>(y.data) + tile * tile_elements * i64(sizeof(type));
      const int count = detail::elements_in_tile(p, tile);
      for (int i = 0; i < count; ++i) detail::store_at(to, i, saturate_to<type>(v[i]));
    });
  });
  return {};
}

inline status unpack_multiply(const plan& p, const_bytes blob, const codebook& book, const_values g,
                              values out, thread_pool* pool) {
  if (const status s = furl::detail::check_holds_levels(p); !s) return s;
  if (const status s = furl::detail::check_coded_output(p, g, "g", out, "out", blob); !s) return s;
  if (const status s = furl::detail::check_codebook(book, p); !s) return s;
  const detail::level_reader levels(book);
  with_type(g.type, [&](auto element) {
    using type = decltype(element);
    detail::for_each_unit(p.num_tiles(), pool, [&](i64 tile) {
      alignas(64) float v[tile_elements];
      alignas(64) float gradient[tile_elements] = {};
      const i64 first = tile * tile_elements;
      const int count = detail::elements_in_tile(p, tile);
      levels.load(p, blob, tile, v);
      detail::load_floats<type>(g.data, first, count, gradient);
      detail::scale_tile(v, gradient);
      u8* const to = static_cast<u8*>(out.data) + first * i64(sizeof(type));
      for (int i = 0; i < count; ++i) detail::store_at(to, i, round_to<type>(gradient[i]));
    });
  });
  return {};
}

}  // namespace furl::host

FURL_HIDDEN_END

#endif
