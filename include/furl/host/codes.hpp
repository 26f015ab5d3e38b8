// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Masks and small integers in host memory (README, A8): ReLU and dropout masks, window indices of
// max pooling. Exact, one width for all.

#include <cstring>

#include "furl/config.hpp"
#include "furl/host/arguments.hpp"
#include "furl/host/tile.hpp"
#include "furl/plan.hpp"
#include "furl/status.hpp"
#include "furl/view.hpp"

FURL_HIDDEN_BEGIN

namespace furl::host {

namespace detail {

/// Runs function(tile) over all tiles of a plan.
template <class Function>
void for_each_tile(const plan& p, thread_pool* pool, const Function& function) {
  const int num_shares = count_shares(pool);
  run_shares(pool, [&](int share) {
    const i64 last = share_begin(p.num_tiles(), share + 1, num_shares);
    for (i64 tile = share_begin(p.num_tiles(), share, num_shares); tile < last; ++tile)
      function(tile);
  });
}

}  // namespace detail

/// Packs one code per byte into codes of the plan's bits; higher bits of a byte are dropped.
/// codes : host, plan.num_elements() bytes.
/// blob  : host, plan.size_bytes() bytes or more; aligned to 16 bytes; apart from codes.
/// Errors: see status. The plan must come from plan::make_codes. Allocates nothing.
inline status pack(const plan& p, const_bytes codes, bytes blob, thread_pool* pool = nullptr) {
  if (const status s = detail::check_codes_call(p, codes, {blob.data, blob.size_bytes}); !s)
    return s;
  detail::for_each_tile(p, pool, [&](i64 tile) {
    const int bits = p.codec().bits;
    const int count = detail::elements_in_tile(p, tile);
    detail::tile_bytes bytes_of_tile{};
    std::memcpy(bytes_of_tile.word, static_cast<const u8*>(codes.data) + tile * tile_elements,
                static_cast<std::size_t>(count));
    for (u32& word : bytes_of_tile.word) word &= in_each_byte(low_bits(bits));
    detail::store_codes(bytes_of_tile, bits,
                        static_cast<u8*>(blob.data) + tile * bits * row_elements);
  });
  return {};
}

/// The inverse of pack: one code per byte.
inline status unpack(const plan& p, const_bytes blob, bytes codes, thread_pool* pool = nullptr) {
  if (const status s = detail::check_codes_call(p, {codes.data, codes.size_bytes}, blob); !s)
    return s;
  detail::for_each_tile(p, pool, [&](i64 tile) {
    const int bits = p.codec().bits;
    detail::tile_bytes bytes_of_tile;
    detail::load_codes(static_cast<const u8*>(blob.data) + tile * bits * row_elements, bits,
                       bytes_of_tile);
    std::memcpy(static_cast<u8*>(codes.data) + tile * tile_elements, bytes_of_tile.word,
                static_cast<std::size_t>(detail::elements_in_tile(p, tile)));
  });
  return {};
}

}  // namespace furl::host

FURL_HIDDEN_END
