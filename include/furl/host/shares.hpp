// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Work on tiles that need nothing of each other, in parallel.

#include "furl/config.hpp"
#include "furl/host/arguments.hpp"
#include "furl/host/float_environment.hpp"
#include "furl/plan.hpp"

FURL_HIDDEN_BEGIN

namespace furl::host::detail {

/// Calls function(first, last) for the tiles first..last - 1 of each share, in the arithmetic of
/// the format.
template <class Function>
void compute_shares(const plan& p, thread_pool* pool, const Function& function) {
  const int num_shares = count_shares(pool);
  run_shares(pool, [&](int share) {
    const float_environment environment;
    function(share_begin(p.num_tiles(), share, num_shares),
             share_begin(p.num_tiles(), share + 1, num_shares));
  });
}

}  // namespace furl::host::detail

FURL_HIDDEN_END
