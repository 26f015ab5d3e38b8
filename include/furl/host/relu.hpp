// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ReLU that keeps one bit per element for its backward pass, in host memory.

#include "furl/codebook_arguments.hpp"
#include "furl/config.hpp"
#include "furl/dtype.hpp"
#include "furl/host/arguments.hpp"
#include "furl/host/codes.hpp"
#include "furl/host/shares.hpp"
#include "furl/host/tile.hpp"
#include "furl/plan.hpp"
#include "furl/status.hpp"
#include "furl/view.hpp"

FURL_HIDDEN_BEGIN

namespace furl::host {

/// y = x where x > 0, NaN where x is NaN, else +0; and the mask of x > 0, which is false for NaN,
/// in the same pass. The backward pass is unpack_multiply with positive_codebook().
/// x    : host, plan.num_elements() elements of any dtype, at any alignment.
/// y    : likewise, of x's dtype; x itself, or apart from it.
/// blob : host, the mask: plan.size_bytes() bytes or more; aligned to 16 bytes; apart from x and y.
/// Errors: see status. The plan must come from plan::make_codes with 1 bit. Allocates nothing.
inline status relu(const plan& p, const_values x, values y, bytes blob,
                   thread_pool* pool = nullptr) {
  if (const status s = furl::detail::check_masked(p, x, y, {blob.data, blob.size_bytes}); !s)
    return s;
  with_type(x.type, [&](auto element) {
    using type = decltype(element);
    detail::for_each_unit(p.num_tiles(), pool, [&](i64 tile) {
      const i64 first = tile * tile_elements;
      const int count = detail::elements_in_tile(p, tile);
      alignas(64) float values[tile_elements];
      detail::load_floats<type>(x.data, first, count, values);
      detail::tile_bytes codes{};
      auto* const positive = reinterpret_cast<u8*>(codes.word);
      u8* const to = static_cast<u8*>(y.data) + first * i64(sizeof(type));
      for (int i = 0; i < count; ++i) positive[i] = u8(values[i] > 0.0f);
      for (int i = 0; i < count; ++i)
        detail::store_at(to, i, round_to<type>(values[i] <= 0.0f ? 0.0f : values[i]));
      detail::store_tile(p, tile, codes, blob);
    });
  });
  return {};
}

}  // namespace furl::host

FURL_HIDDEN_END
