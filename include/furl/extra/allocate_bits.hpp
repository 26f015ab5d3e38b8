// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The bits of each tile's codes for a mixed plan (ActNN, Chen et al., ICML 2021): squared ranges
// and sensitivities of tiles, and the bits that make the most of their sum. Calls for host memory;
// extra/allocate_bits.cuh has them for device memory.

#include "furl/config.hpp"
#include "furl/detail/extra/binary64.hpp"
#include "furl/types.hpp"

#if !defined(__CUDACC_RTC__)
#include <algorithm>

#include "furl/detail/checks.hpp"
#include "furl/detail/host/tile.hpp"
#include "furl/detail/host/work.hpp"
#include "furl/plan.hpp"
#include "furl/thread_pool.hpp"

FURL_HIDDEN_BEGIN

namespace furl {

namespace detail {

inline constexpr const char* one_per_tile = "must have one number per tile of 1024 elements";

inline status check_ranges_call(const plan& p, const_values x, span<double> squared) {
  if (const status s = check_kind(p, false); !s) return s;
  if (const status s = check_has_ranges(p); !s) return s;
  if (p.has_lfc())
    return {error::wrong_plan, "plan", 0,
            "has a window: take the ranges of its residuals from a blob"};
  if (const status s = check_elements(p, x, "x"); !s) return s;
  if (const status s = check_array(squared, p.num_tiles(), "squared", one_per_tile); !s) return s;
  return check_apart(bytes_of(x, "x"), {bytes_of(squared, "squared")}, "must not overlap x");
}

inline status check_ranges_call(const plan& p, const_bytes blob, span<double> squared) {
  if (const status s = check_kind(p, false); !s) return s;
  if (const status s = check_has_ranges(p); !s) return s;
  if (const status s = check_blob(p, blob); !s) return s;
  if (const status s = check_array(squared, p.num_tiles(), "squared", one_per_tile); !s) return s;
  return check_apart(bytes_of(p, blob), {bytes_of(squared, "squared")},
                     "must not overlap the blob");
}

inline status check_expand_call(const plan& p, span<const float> of_parts, span<float> of_tiles) {
  if (const status s = check_kind(p, false); !s) return s;
  if (const status s = check_fills_no_lines(p); !s) return s;
  if (of_parts.size < (p.num_elements() > 0 ? 1 : 0) ||
      (of_parts.size > 0 && p.num_elements() % of_parts.size != 0))
    return {error::wrong_size, "of_parts", of_parts.size,
            "must be a positive number that divides the number of elements"};
  if (const status s = check_array(of_parts, of_parts.size, "of_parts", ""); !s) return s;
  if (const status s = check_array(of_tiles, p.num_tiles(), "of_tiles", one_per_tile); !s) return s;
  return check_apart(bytes_of(of_parts, "of_parts"), {bytes_of(of_tiles, "of_tiles")},
                     "must not overlap of_parts");
}

inline status check_allocation(u64 sum_of_bits, span<const float> sensitivity,
                               span<const double> squared_range, bytes tile_bits) {
  const u64 tiles = tile_bits.size_bytes;
  if (tiles >= size_limit / max_bits)
    return {error::wrong_size, "tile_bits", i64(tiles), "must be below 2^60"};
  if (sum_of_bits < tiles || sum_of_bits > tiles * max_bits)
    return {error::out_of_range, "sum_of_bits", i64(sum_of_bits), "every tile has 1..8 bits"};
  if (const status s = check_array(sensitivity, i64(tiles), "sensitivity", one_per_tile); !s)
    return s;
  if (const status s = check_array(squared_range, i64(tiles), "squared_range", one_per_tile); !s)
    return s;
  if (const status s = check_not_null(tile_bits.data, tiles > 0, "tile_bits"); !s) return s;
  return check_apart(
      {tile_bits.data, tiles, "tile_bits"},
      {bytes_of(sensitivity, "sensitivity"), bytes_of(squared_range, "squared_range")},
      apart_from_outputs);
}

}  // namespace detail

namespace host {

namespace detail {

inline constexpr int max_groups_per_tile = tile_elements / 32;

/// Sum of one term per group of a tile as a pairwise tree, neighbours first. Absent terms are +0.
inline double add_pairwise(double (&terms)[max_groups_per_tile]) {
  for (int count = max_groups_per_tile / 2; count > 0; count /= 2)
    for (int i = 0; i < count; ++i) terms[i] = add_rn(terms[2 * i], terms[2 * i + 1]);
  return terms[0];
}

/// Of a tile's elements, of which `count` are present, the others repeat the last.
inline double sum_squared_ranges(const float* x, int count, int group) {
  double terms[max_groups_per_tile] = {};
  for (int begin = 0; begin < count; begin += group) {
    const range span = min_max(x + begin, group);
    terms[begin / group] = squared_range(sub_rn(span.hi, span.lo));
  }
  return add_pairwise(terms);
}

/// From the metadata of a tile with codes of `bits` bits.
inline double sum_squared_coded_ranges(const plan& p, const u8* metadata, i64 tile, int bits) {
  double terms[max_groups_per_tile] = {};
  const i64 groups = tile_elements / p.codec().group;
  const i64 begin = tile * groups;
  const i64 end = (::std::min)(begin + groups, p.num_groups());
  for (i64 group = begin; group < end; ++group) {
    const float step = load_meta(metadata, 2 * group + 1, p.codec().meta);
    terms[group - begin] = squared_range(coded_range(step, bits));
  }
  return add_pairwise(terms);
}

/// Which gains are granted: all whose key is above `threshold`, and the first `ties` tiles of those
/// that have one equal to it.
struct granted_gains {
  u64 threshold;
  u64 ties;
};

/// The `raises` largest gains of the tiles' costs, by radix selection from the highest digit on.
template <class Cost>
granted_gains select_gains(i64 num_tiles, u64 raises, const Cost& cost_of_tile) {
  constexpr int digit_bits = 9;
  constexpr int num_digits = 1 << digit_bits;
  static_assert(gain_key_bits % digit_bits == 0, "digits fill a key");
  granted_gains found{0, raises};
  for (int shift = gain_key_bits - digit_bits; shift >= 0; shift -= digit_bits) {
    u64 count[num_digits] = {};
    for (i64 tile = 0; tile < num_tiles; ++tile) {
      const double cost = cost_of_tile(tile);
      for (int bits = 1; bits < max_bits; ++bits) {
        const u64 key = gain_key(cost, bits) >> shift;
        count[key % num_digits] += u64(key >> digit_bits == found.threshold);
      }
    }
    int digit = num_digits - 1;
    while (found.ties > count[digit]) found.ties -= count[digit--];
    found.threshold = found.threshold << digit_bits | u64(digit);
  }
  return found;
}

}  // namespace detail

/// Sums the squared ranges of the groups of each tile of x: what the error of a tile grows with.
/// Groups that are not finite count as 0. This reads x once more than compress does, since compress
/// needs the bits that come of it. Where those of the last step will do, a blob has the ranges
/// already.
/// p       : uniform or mixed. One with a window is refused: its codes are of residuals, whose
///           ranges a blob has. So is one with rotated codes, which have no ranges.
/// x       : host, plan.num_elements() elements of any dtype, at any alignment.
/// squared : host, plan.num_tiles() numbers, disjoint from x.
/// pool    : threads to work with; none: the calling thread alone.
/// A bad argument is refused before anything is written: see status. Nothing is allocated.
inline status squared_ranges(const plan& p, const_values x, span<double> squared,
                             thread_pool* pool = nullptr) {
  if (const status s = furl::detail::check_ranges_call(p, x, squared); !s) return s;
  with_type(x.type, [&](auto element) {
    detail::compute_shares(p.num_tiles(), pool, [&](i64 first, i64 last) {
      detail::element_reader elements(p, x.data);
      for (i64 tile = first; tile < last; ++tile)
        squared.data[tile] =
            detail::sum_squared_ranges(elements.tile<decltype(element)>(tile),
                                       detail::elements_in_tile(p, tile), p.codec().group);
    });
  });
  return {};
}

/// Sums the squared ranges of the groups of each tile as a blob has them, such as that of the last
/// step: compress has stored the range of every group, rounded up to the metadata type. With a
/// window it is that of the residuals.
/// p       : the plan of the blob, not from plan::make_codes, and not with rotated codes.
/// blob    : host, the plan.size_bytes() bytes that compress wrote, at any alignment.
/// squared : host, plan.num_tiles() numbers, disjoint from the blob and the bits of tiles.
/// o       : for a mixed plan the bits of tiles that the blob was made with.
/// A bad argument is refused before anything is written: see status. Nothing is allocated.
inline status squared_ranges(const plan& p, const_bytes blob, span<double> squared,
                             const options& o = {}) {
  if (const status s = furl::detail::check_ranges_call(p, blob, squared); !s) return s;
  if (const status s = furl::detail::check_nothing_given(o); !s) return s;
  if (const status s =
          detail::check_bits_of_tiles(p, o.tile_bits, furl::detail::bytes_of(squared, "squared"));
      !s)
    return s;
  const auto* const tile_bits = static_cast<const u8*>(o.tile_bits.data);
  const u8* const metadata = static_cast<const u8*>(blob.data) + p.meta_offset();
  detail::compute_shares(p.num_tiles(), o.pool, [&](i64 first, i64 last) {
    for (i64 tile = first; tile < last; ++tile)
      squared.data[tile] = detail::sum_squared_coded_ranges(
          p, metadata, tile, tile_bits == nullptr ? p.codec().bits : tile_bits[tile]);
  });
  return {};
}

/// Makes sensitivities of tiles of those of equal parts of the tensor, such as its samples, or of
/// the one part that is all of it. A tile that reaches over several gets the largest of theirs.
/// What is negative or NaN counts as 0.
/// p        : not from plan::make_codes.
/// of_parts : host, a positive number of them that divides plan.num_elements(). Part i is elements
///            i * n .. (i + 1) * n - 1 of the tensor.
/// of_tiles : host, plan.num_tiles() numbers, disjoint from of_parts.
/// A bad argument is refused before anything is written: see status. Nothing is allocated.
inline status expand_sensitivity(const plan& p, span<const float> of_parts, span<float> of_tiles) {
  if (const status s = furl::detail::check_expand_call(p, of_parts, of_tiles); !s) return s;
  if (p.num_elements() == 0) return {};
  const i64 elements = p.num_elements() / of_parts.size;
  for (i64 tile = 0; tile < of_tiles.size; ++tile) {
    const i64 first = tile * tile_elements;
    const i64 last = first + detail::elements_in_tile(p, tile) - 1;
    of_tiles.data[tile] = largest_sensitivity(of_parts.data, first / elements, last / elements);
  }
  return {};
}

/// Writes the bits of 1..8 for each tile that add up to sum_of_bits and make the sum over all tiles
/// of sensitivity * squared_range / (2^bits - 1)^2 smallest (ActNN, Chen et al., ICML 2021). Bits
/// are granted one by one where they save most; where they save the same, to the tile that has
/// fewer, then to the first. The tiles may be of one tensor or of several.
/// sum_of_bits   : that of the plan or plans: 1..8 per tile.
/// sensitivity   : host, one per tile. What is negative or NaN counts as 0, in squared_range too.
/// squared_range : host, one per tile, as squared_ranges makes them.
/// tile_bits     : host, one byte per tile, disjoint from the others.
/// A bad argument is refused before anything is written: see status. Nothing is allocated.
inline status allocate_bits(u64 sum_of_bits, span<const float> sensitivity,
                            span<const double> squared_range, bytes tile_bits) {
  if (const status s =
          furl::detail::check_allocation(sum_of_bits, sensitivity, squared_range, tile_bits);
      !s)
    return s;
  const float_environment environment;
  const i64 num_tiles = i64(tile_bits.size_bytes);
  const auto cost = [&](i64 tile) {
    return tile_cost(sensitivity.data[tile], squared_range.data[tile]);
  };
  detail::granted_gains granted =
      detail::select_gains(num_tiles, sum_of_bits - u64(num_tiles), cost);
  for (i64 tile = 0; tile < num_tiles; ++tile) {
    int allocated = 1;
    for (int bits = 1; bits < max_bits; ++bits) {
      const u64 key = gain_key(cost(tile), bits);
      const bool tie = key == granted.threshold && granted.ties > 0;
      if (tie) --granted.ties;
      allocated += key > granted.threshold || tie ? 1 : 0;
    }
    static_cast<u8*>(tile_bits.data)[tile] = u8(allocated);
  }
  return {};
}

}  // namespace host
}  // namespace furl

FURL_HIDDEN_END

#endif
