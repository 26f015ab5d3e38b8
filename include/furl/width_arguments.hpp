// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checks of the calls that find widths (host/widths.hpp, widths.cuh), made before anything is
// written or launched. They read no array.

#include "furl/arguments.hpp"
#include "furl/config.hpp"
#include "furl/plan.hpp"
#include "furl/status.hpp"
#include "furl/view.hpp"

#if !defined(__CUDACC_RTC__)

FURL_HIDDEN_BEGIN

namespace furl::detail {

inline constexpr const char* one_per_tile = "must have one number per tile of 1024 elements";

inline status check_ranges_call(const plan& p, const_values x, span<double> squared) {
  if (const status s = check_kind(p, false); !s) return s;
  if (p.has_lfc())
    return {error::wrong_plan, "plan", 0,
            "has a window: take the ranges of its residuals from a blob"};
  if (const status s = check_elements(p, x.data, x.num_elements, x.type, "x"); !s) return s;
  if (const status s = check_array(squared, p.num_tiles(), "squared", one_per_tile); !s) return s;
  if (!overlap(x.data, x.size_bytes(), squared.data, squared.size_bytes())) return {};
  return {error::overlap, "squared", 0, "must not overlap x"};
}

inline status check_ranges_call(const plan& p, const_bytes blob, span<double> squared) {
  if (const status s = check_kind(p, false); !s) return s;
  if (const status s = check_blob(p, blob.data, blob.size_bytes); !s) return s;
  if (const status s = check_array(squared, p.num_tiles(), "squared", one_per_tile); !s) return s;
  return check_apart(p, blob.data, squared.data, squared.size_bytes(), "squared");
}

inline status check_expand_call(const plan& p, span<const float> of_parts, span<float> of_tiles) {
  if (const status s = check_kind(p, false); !s) return s;
  if (of_parts.size < (p.num_elements() > 0 ? 1 : 0) ||
      (of_parts.size > 0 && p.num_elements() % of_parts.size != 0))
    return {error::wrong_size, "of_parts", of_parts.size,
            "must be a positive number that divides the number of elements"};
  if (const status s = check_array(of_parts, of_parts.size, "of_parts", ""); !s) return s;
  if (const status s = check_array(of_tiles, p.num_tiles(), "of_tiles", one_per_tile); !s) return s;
  if (!overlap(of_parts.data, of_parts.size_bytes(), of_tiles.data, of_tiles.size_bytes()))
    return {};
  return {error::overlap, "of_tiles", 0, "must not overlap of_parts"};
}

inline status check_allocation(u64 sum_of_widths, span<const float> sensitivity,
                               span<const double> squared_range, bytes widths) {
  const u64 tiles = widths.size_bytes;
  if (tiles >= size_limit / max_bits)
    return {error::wrong_size, "widths", i64(tiles), "must be below 2^60"};
  if (sum_of_widths < tiles || sum_of_widths > tiles * max_bits)
    return {error::out_of_range, "sum_of_widths", i64(sum_of_widths),
            "every tile has a width of 1..8"};
  if (const status s = check_array(sensitivity, i64(tiles), "sensitivity", one_per_tile); !s)
    return s;
  if (const status s = check_array(squared_range, i64(tiles), "squared_range", one_per_tile); !s)
    return s;
  if (widths.data == nullptr && tiles > 0)
    return {error::null_pointer, "widths", 0, "must not be null"};
  if (overlap(widths.data, tiles, sensitivity.data, sensitivity.size_bytes()) ||
      overlap(widths.data, tiles, squared_range.data, squared_range.size_bytes()))
    return {error::overlap, "widths", 0, "must not overlap the arrays they are made from"};
  return {};
}

}  // namespace furl::detail

FURL_HIDDEN_END

#endif
