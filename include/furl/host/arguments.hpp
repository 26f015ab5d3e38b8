// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The checks of every host entry point, made before anything is written.

#include "furl/arguments.hpp"
#include "furl/config.hpp"
#include "furl/given_ranges.hpp"
#include "furl/host/thread_pool.hpp"
#include "furl/plan.hpp"
#include "furl/status.hpp"
#include "furl/view.hpp"

/// The same calls for host memory, on the CPU.
namespace furl::host {
inline namespace v0_1 {

/// What most calls leave alone.
struct options {
  thread_pool* pool = nullptr;  // none: the calling thread alone
  /// For a mixed plan: the width of each tile, one byte each; apart from what the call writes.
  const_bytes widths = {};
  /// For compress: ranges in place of measured ones, in host memory.
  given_ranges ranges = {};
};

}  // namespace v0_1

FURL_HIDDEN_BEGIN
namespace detail {

using furl::detail::check_apart;
using furl::detail::check_blob;
using furl::detail::check_codes_call;
using furl::detail::check_elements;
using furl::detail::check_given_ranges;
using furl::detail::check_kind;
using furl::detail::check_widths_array;

inline status check_widths(const plan& p, const_bytes widths) {
  if (const status s = check_widths_array(p, widths); !s) return s;
  if (p.kind() != plan_kind::mixed) return {};
  u64 sum = 0;
  for (u64 t = 0; t < widths.size_bytes; ++t) {
    const int width = static_cast<const u8*>(widths.data)[t];
    if (width < 1 || width > max_bits)
      return {error::out_of_range, "options.widths", width, "each must be 1..8"};
    sum += u64(width);
  }
  if (sum != p.sum_of_widths())
    return {error::wrong_size, "options.widths", i64(sum),
            "must add up to the plan's sum_of_widths"};
  return {};
}

inline status check_ranges(const plan& p, const given_ranges& given) {
  if (const status s = check_given_ranges(p, given); !s) return s;
  if (given.scope == range_scope::measured || p.num_elements() == 0) return {};
  for (i64 i = 0; i < given.num_pairs; ++i) {
    if (!is_range(given.pairs[2 * i], given.pairs[2 * i + 1]))
      return {error::out_of_range, "options.ranges", i, "the pair there must be finite, lo <= hi"};
  }
  return {};
}

/// The checks that compress, decompress and decompress_add share.
inline status check_call(const plan& p, const_values array, const char* argument, const_bytes blob,
                         const options& o) {
  if (const status s = check_kind(p, false); !s) return s;
  if (const status s = check_elements(p, array.data, array.num_elements, array.type, argument); !s)
    return s;
  if (const status s = check_blob(p, blob.data, blob.size_bytes); !s) return s;
  if (const status s = check_apart(p, blob.data, array.data, array.size_bytes(), argument); !s)
    return s;
  return check_widths(p, o.widths);
}

/// First of num_units that a share works on, for share 0..num_shares.
constexpr i64 share_begin(i64 num_units, int share, int num_shares) {
  return num_units / num_shares * share + num_units % num_shares * share / num_shares;
}

inline int count_shares(const thread_pool* pool) {
  return pool == nullptr ? 1 : pool->num_threads();
}

/// Runs function(share) for every share of the pool, or on the calling thread.
template <class Function>
void run_shares(thread_pool* pool, const Function& function) {
  if (pool == nullptr) {
    function(0);
  } else {
    pool->run(function);
  }
}

}  // namespace detail
FURL_HIDDEN_END
}  // namespace furl::host
