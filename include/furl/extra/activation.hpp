// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Activations whose backward pass needs one bit per element, or none: ReLU with its mask, and
// dropout with a mask or with nothing kept but its rate and key (FORMAT.md, A10). Calls for host
// memory; extra/activation.cuh has them for device memory.

#include "furl/config.hpp"
#include "furl/extra/codebook.hpp"
#include "furl/types.hpp"

#if !defined(__CUDACC_RTC__)
#include "furl/detail/checks.hpp"
#include "furl/detail/host/positives.hpp"
#include "furl/detail/host/random.hpp"
#include "furl/detail/host/tile.hpp"
#include "furl/detail/host/work.hpp"
#include "furl/detail/number.hpp"
#include "furl/plan.hpp"
#include "furl/thread_pool.hpp"
#endif

namespace furl {

/// Whether dropout keeps an element is decided by 16 random bits of two streams of 8 (FORMAT.md,
/// A6). The lower ones are those of the tile this many tiles further on: beyond any tensor.
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

/// Of a probability of dropping: 0 or more, and less than 1 after rounding.
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
inline status check_dropout(const_values x, const_values y) {
  if (x.num_elements < 0)
    return {error::wrong_size, "x", x.num_elements, "must not have a negative number of elements"};
  if (const status s = check_type(x.type, "x"); !s) return s;
  if (const status s = check_not_null(x.data, x.num_elements > 0, "x"); !s) return s;
  return check_elementwise(x, y, "y");
}

/// The arrays of a call that makes y from x and, along with it, a mask of one bit per element.
inline status check_masked(const plan& p, const_values x, const_values y, const_bytes blob) {
  if (p.has_mask())
    return {error::wrong_plan, "plan", 0, "has coding::positives: relu with a random_key takes it"};
  if (const status s = check_kind(p, true); !s) return s;
  if (const status s = check_coded_output(p, x, "x", y, "y", blob); !s) return s;
  if (p.codec().bits == 1) return {};
  return {error::wrong_plan, "plan", 0, "must come from plan::make_codes with 1 bit"};
}

/// The arrays of a call that makes y from x and codes of its positives.
inline status check_positives(const plan& p, const_values x, const_values y, const_bytes blob) {
  if (!p.has_mask())
    return {error::wrong_plan, "plan", 0, "must have codec.coding of coding::positives"};
  if (const status s = check_coded(p, x, "x", blob); !s) return s;
  if (const status s = check_elementwise(x, y, "y"); !s) return s;
  return check_apart({blob.data, p.size_bytes(), "blob"}, {{y.data, y.size_bytes(), "y"}},
                     "must not overlap the blob");
}

}  // namespace detail

/// The codebook for the backward pass of a dropout that has kept its mask, which is
/// unpack_multiply.
/// p : the probability that dropout was called with. One that dropout refuses gives a codebook
///     without levels, which calls refuse.
inline codebook dropout_codebook(double p) {
  codebook book = positive_codebook();
  const result<dropout_rate> rate = detail::make_dropout_rate(p);
  book.level[1] = rate ? rate->scale : 0.0f;
  if (!rate) book.num_levels = 0;
  return book;
}

namespace host {

namespace detail {

/// keep[i] = 1 for the elements of a tile that dropout keeps, else 0.
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

/// Drops and scales a tile of x, of which `count` elements are present, and says what it has kept.
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

/// Writes to y what a ReLU makes of x, and to the blob the mask of x > 0, in one pass. y is x where
/// x > 0, NaN where x is NaN, else +0. The mask is false for NaN. The backward pass is
/// unpack_multiply with positive_codebook().
/// p    : from plan::make_codes with 1 bit.
/// x    : host, plan.num_elements() elements of any dtype, at any alignment.
/// y    : host, as many elements of x's dtype; x itself, or disjoint from it.
/// blob : host, plan.size_bytes() bytes or more, at any alignment, disjoint from x and y.
/// pool : threads to work with; none: the calling thread alone.
/// A bad argument is refused before anything is written: see status. Nothing is allocated.
inline status relu(const plan& p, const_values x, values y, bytes blob,
                   thread_pool* pool = nullptr) {
  if (const status s = furl::detail::check_masked(p, x, y, blob); !s) return s;
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

/// Writes to y what a ReLU makes of x, and to the blob all that the backward pass needs of it, in
/// one pass: the blob of compress(plan, y, blob, key), which is that of compress(plan, x, blob,
/// key) too. decompress restores y for the layer that it is the input of, with zeros where it was
/// zero or NaN; and the mask from plan.mask_offset() on is a blob of plan.mask_plan(), for the
/// ReLU's own gradient by unpack_multiply with positive_codebook(). y is x where x > 0, NaN where x
/// is NaN, else +0.
/// p    : from plan::make with coding::positives.
/// x    : host, plan.num_elements() elements of any dtype, at any alignment.
/// y    : host, as many elements of x's dtype; x itself, or disjoint from it.
/// blob : host, plan.size_bytes() bytes or more, at any alignment, disjoint from x and y.
/// key  : of the random stream, for decompress too; each call needs a new one.
/// pool : threads to work with; none: the calling thread alone.
/// A bad argument is refused before anything is written: see status. Nothing is allocated.
inline status relu(const plan& p, const_values x, values y, bytes blob, random_key key,
                   thread_pool* pool = nullptr) {
  if (const status s = furl::detail::check_positives(p, x, y, blob); !s) return s;
  detail::compress_positives(p, x, y.data, blob, key, pool);
  return {};
}

/// Makes each element +0 with probability p, whatever it is, and multiplies the others by
/// 1 / (1 - p), rounded once to their dtype. Nothing is kept: the backward pass is the same call
/// with the same p and key on the gradient.
/// x    : host, any number of elements of any dtype, at any alignment.
/// p    : at least 0 and below 1 - 2^-17. It is rounded to a multiple of 2^-16, in the scale too.
/// y    : host, as many elements of x's dtype; x itself, or disjoint from it.
/// key  : of the random stream; each dropout needs a new one.
/// pool : threads to work with; none: the calling thread alone.
/// A bad argument is refused before anything is written: see status. Nothing is allocated.
inline status dropout(const_values x, double p, values y, random_key key,
                      thread_pool* pool = nullptr) {
  if (const status s = furl::detail::check_dropout(x, y); !s) return s;
  const result<dropout_rate> rate = furl::detail::make_dropout_rate(p);
  if (!rate) return rate.status();
  const result<plan> codes = plan::make_codes(1, {x.num_elements});  // counts tiles
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

/// Drops elements as the dropout without a plan does, and writes the mask of those that are kept.
/// The backward pass is unpack_multiply with dropout_codebook(p).
/// codes : from plan::make_codes with 1 bit, of as many elements as x and y.
/// blob  : host, codes.size_bytes() bytes or more, at any alignment, disjoint from x and y.
/// x, p, y, key, pool and errors are as without a plan.
inline status dropout(const plan& codes, const_values x, double p, values y, bytes blob,
                      random_key key, thread_pool* pool = nullptr) {
  if (const status s = furl::detail::check_masked(codes, x, y, blob); !s) return s;
  const result<dropout_rate> rate = furl::detail::make_dropout_rate(p);
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

}  // namespace host
}  // namespace furl

FURL_HIDDEN_END

#endif
