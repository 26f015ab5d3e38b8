// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Work on tiles, or others that need nothing of each other, in parallel.

#include "furl/config.hpp"
#include "furl/host/arguments.hpp"
#include "furl/host/float_environment.hpp"

FURL_HIDDEN_BEGIN

namespace furl::host::detail {

/// Calls function(first, last) for the units first..last - 1 of each share, in the arithmetic of
/// the format.
template <class Function>
void compute_shares(i64 num_units, thread_pool* pool, const Function& function) {
  const int num_shares = count_shares(pool);
  run_shares(pool, [&](int share) {
    const float_environment environment;
    function(share_begin(num_units, share, num_shares),
             share_begin(num_units, share + 1, num_shares));
  });
}

/// Calls function(unit) for all units, likewise.
template <class Function>
void for_each_unit(i64 num_units, thread_pool* pool, const Function& function) {
  compute_shares(num_units, pool, [&](i64 first, i64 last) {
    for (i64 unit = first; unit < last; ++unit) function(unit);
  });
}

}  // namespace furl::host::detail

FURL_HIDDEN_END
