// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Dropout in host memory (README, A10): with one bit per element for its backward pass, or with
// nothing kept but p and the key.

#include "furl/config.hpp"
#include "furl/dropout.hpp"
#include "furl/dtype.hpp"
#include "furl/element/philox.hpp"
#include "furl/host/arguments.hpp"
#include "furl/host/codes.hpp"
#include "furl/host/random.hpp"
#include "furl/host/shares.hpp"
#include "furl/host/tile.hpp"
#include "furl/plan.hpp"
#include "furl/status.hpp"
#include "furl/view.hpp"

FURL_HIDDEN_BEGIN

namespace furl::host {

namespace detail {

/// keep[i] = 1 for the elements of a tile that are kept, else 0.
inline void draw_mask(i64 tile, random_key key, u32 threshold, u8* keep) {
  tile_bytes high;
  tile_bytes low;
  random_tile(u64(tile), key, high.word);
  random_tile(u64(tile) + low_byte_tiles, key, low.word);
  const auto* const high_byte = reinterpret_cast<const u8*>(high.word);
  const auto* const low_byte = reinterpret_cast<const u8*>(low.word);
  for (int i = 0; i < tile_elements; ++i)
    keep[i] = u8((u32(high_byte[i]) << 8 | low_byte[i]) >= threshold);
}

/// A tile of x, dropped and scaled, to y; and what was kept.
template <class T>
void drop_tile(const_values x, const dropout_rate& rate, values y, random_key key, i64 tile,
               int count, u8* keep) {
  draw_mask(tile, key, rate.threshold, keep);
  alignas(64) float v[tile_elements];
  load_floats<T>(x.data, tile * tile_elements, count, v);
  u8* const to = static_cast<u8*>(y.data) + tile * tile_elements * i64(sizeof(T));
  for (int i = 0; i < count; ++i) {
    const float kept = float_of(select(keep[i] != 0, bits_of(v[i]), 0));
    store_at(to, i, round_to<T>(mul(kept, rate.scale)));
  }
}

}  // namespace detail

/// Each element becomes +0 with probability p, whatever it is, else itself times 1 / (1 - p),
/// rounded once to its dtype. Nothing is kept: the backward pass is the same call with the same p
/// and key on the gradient.
/// x   : host, any number of elements of any dtype, at any alignment.
/// p   : rounded to a multiple of 2^-16, in the scale too; at least 0 and below 1 - 2^-17.
/// y   : host, of x's dtype and size; x itself, or apart from it.
/// key : of the random stream; each dropout takes another.
/// Errors: see status. Allocates nothing.
inline status dropout(const_values x, double p, values y, random_key key,
                      thread_pool* pool = nullptr) {
  if (const status s = furl::detail::check_dropout(x, y); !s) return s;
  const auto rate = furl::detail::make_dropout_rate(p);
  if (!rate) return rate.status();
  const auto codes = plan::make_codes(1, {x.num_elements});
  with_type(x.type, [&](auto element) {
    detail::for_each_unit(codes->num_tiles(), pool, [&](i64 tile) {
      detail::tile_bytes keep;
      detail::drop_tile<decltype(element)>(x, *rate, y, key, tile,
                                           detail::elements_in_tile(*codes, tile),
                                           reinterpret_cast<u8*>(keep.word));
    });
  });
  return {};
}

/// The same, and the mask of what is kept. The backward pass is unpack_multiply with
/// dropout_codebook(p).
/// codes : from plan::make_codes with 1 bit, of as many elements as x and y.
/// blob  : host, codes.size_bytes() bytes or more; aligned to 16 bytes; apart from x and y.
inline status dropout(const plan& codes, const_values x, double p, values y, bytes blob,
                      random_key key, thread_pool* pool = nullptr) {
  if (const status s = furl::detail::check_masked(codes, x, y, {blob.data, blob.size_bytes}); !s)
    return s;
  const auto rate = furl::detail::make_dropout_rate(p);
  if (!rate) return rate.status();
  with_type(x.type, [&](auto element) {
    detail::for_each_unit(codes.num_tiles(), pool, [&](i64 tile) {
      const int count = detail::elements_in_tile(codes, tile);
      detail::tile_bytes mask;
      auto* const keep = reinterpret_cast<u8*>(mask.word);
      detail::drop_tile<decltype(element)>(x, *rate, y, key, tile, count, keep);
      for (int i = count; i < tile_elements; ++i) keep[i] = 0;
      detail::store_tile(codes, tile, mask, blob);
    });
  });
  return {};
}

}  // namespace furl::host

FURL_HIDDEN_END
