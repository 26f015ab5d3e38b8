// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE THREAD. What decides whether dropout keeps an element (FORMAT.md, A10): 16 random bits, of two
// streams of 8 (FORMAT.md, A6), against the rate.
//
// What dropout in host and in device memory share: the rate, and its checks (FORMAT.md, A10).
//
// ReLU that keeps one bit per element for its backward pass, in host memory.
//
// Dropout in host memory (FORMAT.md, A10): with one bit per element for its backward pass, or with
// nothing kept but p and the key.

#include "furl/compress.hpp"
#include "furl/config.hpp"
#include "furl/detail/checks.hpp"
#include "furl/detail/host/random.hpp"
#include "furl/detail/host/tile.hpp"
#include "furl/detail/host/work.hpp"
#include "furl/detail/number.hpp"
#include "furl/detail/quantize.hpp"
#include "furl/extra/codebook.hpp"
#include "furl/plan.hpp"
#include "furl/types.hpp"

namespace furl {

/// Tiles of the second stream of random bits, which the low bytes are of: beyond those of any
/// tensor.
inline constexpr u64 low_byte_tiles = u64(1) << 57;

/// A rate of dropping as it is applied: rounded to a multiple of 2^-16.
struct dropout_rate {
  u32 threshold;  // 16 random bits below it drop an element; at most 65535
  float scale;    // 1 over the part that is kept
};

}  // namespace furl

#if !defined(__CUDACC_RTC__)

FURL_HIDDEN_BEGIN

namespace furl {

namespace detail {

/// p : of dropping: 0 or more, and less than 1 after rounding.
inline result<dropout_rate> make_dropout_rate(double p) {
  const host::float_environment environment;
  const double scaled = p * 65536.0 + 0.5;
  if (!(p >= 0.0) || !(scaled < 65536.0))
    return status{error::out_of_range, "p", p >= 1.0 ? 1 : 0,
                  "must be at least 0 and below 1 - 2^-17"};
  const u32 threshold = u32(scaled);
  return dropout_rate{threshold, div_rn(65536.0f, float(int(65536 - threshold)))};
}

/// The arrays of a dropout that keeps no mask.
inline status check_dropout(const_values x, values y) {
  if (x.num_elements < 0)
    return {error::wrong_size, "x", x.num_elements, "must not have a negative number of elements"};
  if (x.type != dtype::f32 && x.type != dtype::f16 && x.type != dtype::bf16)
    return {error::out_of_range, "x", i64(x.type), "dtype must be f32, f16 or bf16"};
  if (x.data == nullptr && x.num_elements > 0)
    return {error::null_pointer, "x", 0, "must not be null"};
  return check_elementwise(x, y, "y");
}

}  // namespace detail

/// For the backward pass of a dropout that kept its mask: unpack_multiply with this codebook. A
/// rate that dropout would refuse gives a codebook that is refused.
inline codebook dropout_codebook(double p) {
  codebook book = positive_codebook();
  if (const auto rate = detail::make_dropout_rate(p)) {
    book.level[1] = rate->scale;
  } else {
    book.num_levels = 0;
  }
  return book;
}

}  // namespace furl

FURL_HIDDEN_END

#endif

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
    const float kept = float_of(select_bits(keep[i] != 0, bits_of(v[i]), 0));
    store_at(to, i, round_to<T>(mul_rn(kept, rate.scale)));
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
