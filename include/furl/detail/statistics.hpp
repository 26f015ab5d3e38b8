// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE THREAD. Normalised elements (FORMAT.md, A14): which statistics an element has, without a
// division at run time, and what they make of it. Also the checks of what a call is given.

#include "furl/config.hpp"
#include "furl/detail/cells.hpp"
#include "furl/detail/number.hpp"
#include "furl/types.hpp"

#if !defined(__CUDACC_RTC__)
#include "furl/detail/checks.hpp"
#include "furl/plan.hpp"
#endif

namespace furl {

/// Of the first element of a tile.
struct statistics_origin {
  u32 position;  // how far it is in the elements that share its statistics, as `index` needs it
  u32 index;     // of its statistics
  u32 in_cycle;  // how far these are through the arrays, as `index` needs it
};

/// Means and inverse deviations of elements. What is farther away than a tile reaches is not told
/// apart: so 32 bits suffice, whatever the extent is.
class statistics_map {
 public:
  const float* mean = nullptr;               // of every index, or null: 0
  const float* inverse_deviation = nullptr;  // of every index; null: none are given

  statistics_map() = default;
#if !defined(__CUDACC_RTC__)
  /// Pre: check_statistics has passed.
  FURL_HIDDEN explicit constexpr statistics_map(const statistics& given)
      : mean(given.mean), inverse_deviation(given.inverse_deviation) {
    if (inverse_deviation == nullptr) return;
    extent_ = divisor64(u64(given.extent));
    count_ = divisor64(u64(given.count));
    near_extent_ = divisor32(u32(given.extent < tile_elements ? given.extent : tile_elements));
    near_count_ = divisor32(u32(given.count < tile_elements ? given.count : tile_elements));
  }
#endif

  /// Of a tile that begins at an element.
  FURL_HD statistics_origin origin(i64 element) const {
    const u64 shared = extent_.divide(u64(element));
    const u64 left = extent_.value - (u64(element) - shared * extent_.value);
    const u64 index = shared - count_.divide(shared) * count_.value;
    return {distance_to(left, near_extent_.value), u32(index),
            distance_to(count_.value - index, near_count_.value)};
  }

  /// Index of the statistics of the element `distance` behind a tile's first.
  /// Pre: distance < 1024.
  FURL_HD u32 index(const statistics_origin& at, u32 distance) const {
    const u32 steps = near_extent_.divide(at.position + distance);
    const u32 rounds = near_count_.divide(at.in_cycle + steps);
    return at.index + steps - rounds * u32(count_.value);
  }

  /// Elements from `distance` on that are known to share their statistics: fewer than there are
  /// only if they reach beyond the tile.
  FURL_HD u32 run_length(const statistics_origin& at, u32 distance) const {
    const u32 position = at.position + distance;
    return near_extent_.value - (position - near_extent_.divide(position) * near_extent_.value);
  }

  /// Whether every element has statistics other than its neighbours'.
  FURL_HD constexpr bool change_everywhere() const {
    return extent_.value == 1;
  }
  /// Whether any 32 elements from a multiple of 32 on share them.
  FURL_HD constexpr bool are_of_32() const {
    return extent_.value % 32 == 0;
  }
  /// Whether any 32 elements have at most two.
  FURL_HD constexpr bool are_of_many() const {
    return extent_.value >= 32;
  }
  /// How many statistics there are.
  FURL_HD constexpr u32 count() const {
    return u32(count_.value);
  }

  /// Of an index.
  FURL_HD float mean_at(u32 index) const {
    return mean != nullptr ? mean[index] : 0.0f;
  }

 private:
  /// How far an end that is `left` away lies behind the start of the last `reach` before it.
  FURL_HD static constexpr u32 distance_to(u64 left, u32 reach) {
    return left < reach ? u32(reach - left) : 0;
  }

  divisor64 extent_;
  divisor64 count_;
  divisor32 near_extent_;  // the extent, but no more than a tile
  divisor32 near_count_;   // the count, but no more than the elements of a tile
};

/// What is coded in place of x.
FURL_HD float normalise(float x, float mean, float inverse_deviation) {
  return mul_rn(sub_rn(x, mean), inverse_deviation);
}

/// What takes normalise back, with the deviation that this one gives.
FURL_HD float deviation_of(float inverse_deviation) {
  return div_rn(1.0f, inverse_deviation);
}
FURL_HD float denormalise(float v, float mean, float deviation) {
  return fma_rn(v, deviation, mean);
}

}  // namespace furl

#if !defined(__CUDACC_RTC__)

FURL_HIDDEN_BEGIN

namespace furl::detail {

/// Whether statistics can go with a plan and with given ranges.
inline status check_statistics_allowed(const plan& p, const given_ranges& ranges) {
  const auto refuse = [](const char* limit) {
    return status{error::wrong_plan, "options.statistics", 0, limit};
  };
  if (p.kind() == plan_kind::mixed) return refuse("do not go with a mixed plan");
  if (p.has_lfc()) return refuse("do not go with a window");
  if (p.has_mask()) return refuse("do not go with coding::positives");
  if (p.fills_lines()) return refuse("do not go with lines that are filled (codec.by_lines)");
  if (ranges.scope != range_scope::measured)
    return {error::out_of_range, "options.ranges", i64(ranges.scope), "do not go with statistics"};
  return {};
}

/// Statistics of compress, decompress and decompress_add, which write `output`.
inline status check_statistics(const plan& p, const statistics& given, const given_ranges& ranges,
                               const named_bytes& output) {
  constexpr const char* name_of_mean = "options.statistics.mean";
  constexpr const char* name = "options.statistics.inverse_deviation";
  if (!given.are_given()) return {};
  if (const status s = check_statistics_allowed(p, ranges); !s) return s;
  if (p.num_elements() == 0) return {};
  if (const status s = check_not_null(given.inverse_deviation, true, name); !s) return s;
  for (const named_bytes& array :
       {named_bytes{given.mean, 0, name_of_mean}, named_bytes{given.inverse_deviation, 0, name}})
    if (const status s =
            check_alignment(array.data, alignof(float), array.name, "must be aligned to 4 bytes");
        !s)
      return s;
  if (given.count < 1 || given.count >= i64(1) << 31)
    return {error::out_of_range, "options.statistics.count", given.count, "must be 1..2^31 - 1"};
  if (given.extent < 1)
    return {error::out_of_range, "options.statistics.extent", given.extent, "must be at least 1"};
  const u64 size = u64(given.count) * sizeof(float);
  return check_apart(output,
                     {{given.mean, given.mean == nullptr ? 0 : size, name_of_mean},
                      {given.inverse_deviation, size, name}},
                     apart_from_outputs);
}

}  // namespace furl::detail

FURL_HIDDEN_END

#endif
