// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Masks and small integers in host memory (README, A8): ReLU and dropout masks, window indices of
// max pooling. Exact, one width for all.

#include <cstring>

#include "furl/config.hpp"
#include "furl/host/arguments.hpp"
#include "furl/host/shares.hpp"
#include "furl/host/tile.hpp"
#include "furl/plan.hpp"
#include "furl/status.hpp"
#include "furl/view.hpp"

FURL_HIDDEN_BEGIN

namespace furl::host {

namespace detail {

/// Writes a tile's codes to a blob of codes.
inline void store_tile(const plan& p, i64 tile, const tile_bytes& codes, bytes blob) {
  const int bits = p.codec().bits;
  store_codes(codes, bits, static_cast<u8*>(blob.data) + tile * bits * row_elements);
}

/// Reads them.
inline void load_tile(const plan& p, i64 tile, const_bytes blob, tile_bytes& codes) {
  const int bits = p.codec().bits;
  load_codes(static_cast<const u8*>(blob.data) + tile * bits * row_elements, bits, codes);
}

}  // namespace detail

/// Packs one code per byte into codes of the plan's bits; higher bits of a byte are dropped.
/// codes : host, plan.num_elements() bytes.
/// blob  : host, plan.size_bytes() bytes or more; aligned to 16 bytes; apart from codes.
/// Errors: see status. The plan must come from plan::make_codes. Allocates nothing.
inline status pack(const plan& p, const_bytes codes, bytes blob, thread_pool* pool = nullptr) {
  if (const status s = detail::check_codes_call(p, codes, {blob.data, blob.size_bytes}); !s)
    return s;
  detail::for_each_unit(p.num_tiles(), pool, [&](i64 tile) {
    const int count = detail::elements_in_tile(p, tile);
    detail::tile_bytes bytes_of_tile{};
    std::memcpy(bytes_of_tile.word, static_cast<const u8*>(codes.data) + tile * tile_elements,
                static_cast<std::size_t>(count));
    for (u32& word : bytes_of_tile.word) word &= in_each_byte(low_bits(p.codec().bits));
    detail::store_tile(p, tile, bytes_of_tile, blob);
  });
  return {};
}

/// The inverse of pack: one code per byte.
inline status unpack(const plan& p, const_bytes blob, bytes codes, thread_pool* pool = nullptr) {
  if (const status s = detail::check_codes_call(p, {codes.data, codes.size_bytes}, blob); !s)
    return s;
  detail::for_each_unit(p.num_tiles(), pool, [&](i64 tile) {
    detail::tile_bytes bytes_of_tile;
    detail::load_tile(p, tile, blob, bytes_of_tile);
    std::memcpy(static_cast<u8*>(codes.data) + tile * tile_elements, bytes_of_tile.word,
                static_cast<std::size_t>(detail::elements_in_tile(p, tile)));
  });
  return {};
}

}  // namespace furl::host

FURL_HIDDEN_END
