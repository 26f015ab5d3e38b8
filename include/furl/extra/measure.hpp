// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// How far what a blob decodes to is from what was compressed: sums of errors over groups and over a
// tensor. Calls for host memory; extra/measure.cuh has them for device memory.

#include "furl/config.hpp"
#include "furl/detail/extra/binary64.hpp"
#include "furl/detail/number.hpp"
#include "furl/types.hpp"

#if !defined(__CUDACC_RTC__)
#include <algorithm>

#include "furl/detail/checks.hpp"
#include "furl/detail/host/decompress.hpp"
#include "furl/detail/host/tile.hpp"
#include "furl/detail/host/work.hpp"
#include "furl/plan.hpp"
#endif

namespace furl {
inline namespace v0_2 {

/// Sums over some elements x and the values a that stand in for them.
struct quality {
  double sum_error = 0;          // of a - x, each rounded to f32
  double sum_squared_error = 0;  // of the squares of those
  double sum_squares = 0;        // of x^2

  /// Of `num_elements` elements: the mean of a - x.
  FURL_HD double bias(i64 num_elements) const { return sum_error / double(num_elements); }
  /// Of `num_elements` elements: the mean of (a - x)^2.
  FURL_HD double mean_squared_error(i64 num_elements) const {
    return sum_squared_error / double(num_elements);
  }
  /// 1 - |x - a|^2 / |x|^2: above 0, training on a in place of x can work (auxiliary-activation
  /// learning, Woo and Jeon, ICLR 2023). 1 where a is x.
  FURL_HD double learning_indicator() const {
    return sum_squared_error == 0 ? 1.0 : 1.0 - sum_squared_error / sum_squares;
  }
  /// Whether the elements are those of a group that decodes to NaN, or have such a group among
  /// them. That is a group with a NaN, or whose range is beyond the largest float (FORMAT.md, A3).
  FURL_HD bool is_poisoned() const { return sum_squared_error != sum_squared_error; }
};

}  // namespace v0_2

FURL_HD constexpr bool operator==(const quality& a, const quality& b) {
  return a.sum_error == b.sum_error && a.sum_squared_error == b.sum_squared_error &&
         a.sum_squares == b.sum_squares;
}
FURL_HD constexpr bool operator!=(const quality& a, const quality& b) {
  return !(a == b);
}

/// Sums over the elements of both.
FURL_HD quality combine(const quality& a, const quality& b) {
  return {add_rn(a.sum_error, b.sum_error), add_rn(a.sum_squared_error, b.sum_squared_error),
          add_rn(a.sum_squares, b.sum_squares)};
}

/// Sums over those of q and one element more. The squares are exact, so that they need no rounding
/// of their own.
FURL_HD quality add_element(const quality& q, float x, float a) {
  const double error = to_f64(sub_rn(a, x));
  return {add_rn(q.sum_error, error), add_square(q.sum_squared_error, error),
          add_square(q.sum_squares, to_f64(x))};
}

/// Over four elements: over two each, added.
FURL_HD quality quality_of(const float (&x)[4], const float (&a)[4]) {
  const quality none{};
  return combine(add_element(add_element(none, x[0], a[0]), x[1], a[1]),
                 add_element(add_element(none, x[2], a[2]), x[3], a[3]));
}

/// As it is written: any NaN is furl's own.
FURL_HD quality canonical(const quality& q) {
  return {canonical(q.sum_error), canonical(q.sum_squared_error), canonical(q.sum_squares)};
}

}  // namespace furl

#if !defined(__CUDACC_RTC__)

FURL_HIDDEN_BEGIN

namespace furl::detail {

inline named_bytes total_bytes(const quality* total) {
  return {total, sizeof *total, "total"};
}

/// The arrays of measure, but for options.
inline status check_quality(const plan& p, const_values x, const_bytes blob, span<quality> groups,
                            const quality* total) {
  if (const status s = check_coded(p, x, "x", blob); !s) return s;
  if (p.needs_key())
    return {error::wrong_plan, "plan", 0,
            "must not have rotated or dithered codes: decompress those with their key to measure"};
  if (const status s = check_fills_no_lines(p); !s) return s;
  if (const status s = check_array(groups, p.num_groups(), "groups", "must have one sum per group");
      !s)
    return s;
  if (const status s = check_array(span<const quality>{total, 1}, 1, "total", ""); !s) return s;
  for (const named_bytes& input : {bytes_of(x, "x"), bytes_of(p, blob)})
    if (const status s = check_apart(input, {bytes_of(groups, "groups"), total_bytes(total)},
                                     "must not overlap x or the blob");
        !s)
      return s;
  return check_apart(bytes_of(groups, "groups"), {total_bytes(total)},
                     "must not overlap the groups");
}

}  // namespace furl::detail

namespace furl::host {

namespace detail {

/// Over 32 elements: over every four, then halves of the eight sums added to each other.
inline quality quality_of_32(const float* x, const float* a) {
  quality sum[8];
  for (int i = 0; i < 8; ++i, x += 4, a += 4)
    sum[i] = quality_of({x[0], x[1], x[2], x[3]}, {a[0], a[1], a[2], a[3]});
  for (int half = 4; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) sum[i] = combine(sum[i], sum[i + half]);
  return sum[0];
}

/// Over a group: of every 32 elements, added up pairwise, neighbours first.
inline quality quality_of_group(const float* x, const float* a, int group) {
  quality sum[tile_elements / 32];
  int count = group / 32;
  for (int i = 0; i < count; ++i) sum[i] = quality_of_32(x + 32 * i, a + 32 * i);
  for (count /= 2; count > 0; count /= 2)
    for (int i = 0; i < count; ++i) sum[i] = combine(sum[2 * i], sum[2 * i + 1]);
  return sum[0];
}

/// Sum of a sequence as a pairwise tree: neighbours first, as if +0 filled it up to a power of two.
class quality_tree {
 public:
  /// Adds the next term.
  void push(quality term) {
    int level = 0;
    for (; (count_ >> level & 1) != 0; ++level) term = combine(partial_[level], term);
    partial_[level] = term;
    ++count_;
  }
  /// Of all terms so far.
  quality total() const {
    quality sum;
    for (int level = 0; count_ >> level != 0; ++level)
      if ((count_ >> level & 1) != 0) sum = combine(partial_[level], sum);
    return sum;
  }

 private:
  quality partial_[63];
  i64 count_ = 0;
};

/// The groups of tiles first..last - 1.
template <class T>
void measure_tiles(const plan& p, const void* x, const u8* blob, const_bytes tile_bits, i64 first,
                   i64 last, quality* groups) {
  element_reader elements(p, x);
  decompressor<float, output::replace> decoder(p, blob, nullptr, {}, tile_bits);
  alignas(64) float values[tile_elements] = {};
  alignas(64) float present[tile_elements] = {};
  const int group = p.codec().group;
  for (i64 tile = first; tile < last; ++tile) {
    const int count = elements_in_tile(p, tile);
    const float* of_x = elements.tile<T>(tile);
    decoder.decompress_tile(tile, reinterpret_cast<u8*>(values));
    if (count < tile_elements) {  // what is absent adds +0
      ::std::copy(of_x, of_x + count, present);
      ::std::fill(present + count, present + tile_elements, 0.0f);
      ::std::fill(values + count, values + tile_elements, 0.0f);
      of_x = present;
    }
    for (int begin = 0; begin < count; begin += group) {
      groups[(tile * tile_elements + begin) / group] =
          canonical(quality_of_group(of_x + begin, values + begin, group));
    }
  }
}

}  // namespace detail

/// Measures what a blob has kept of x: sums over every group and over all of x, of x and what
/// decompress gives in f32. Both are read once, and nothing is decompressed to memory. The order of
/// the sums, which are in f64, is fixed, so that they depend neither on threads nor on whether host
/// or device adds up. First every four elements of a group, two and two. Then the eight sums of 32
/// elements, whose halves are added to each other. From there on, through groups to the total,
/// neighbours pairwise, as if +0 filled up each group and the groups to a power of two.
/// p      : the plan of the blob, not from plan::make_codes, nor one that needs a key to decode.
/// x      : host, the plan.num_elements() elements that were compressed, at any alignment.
/// blob   : host, the plan.size_bytes() bytes that compress wrote, at any alignment.
/// groups : host, plan.num_groups() sums, disjoint from the others.
/// total  : host, one sum, that of all groups, disjoint from the others.
/// o      : for a mixed plan the bits of tiles that the blob was made with.
/// A bad argument is refused before anything is written: see status. Nothing is allocated.
inline status measure(const plan& p, const_values x, const_bytes blob, span<quality> groups,
                      quality* total, const options& o = {}) {
  if (const status s = furl::detail::check_quality(p, x, blob, groups, total); !s) return s;
  if (const status s = furl::detail::check_nothing_given(o); !s) return s;
  for (const furl::detail::named_bytes& output :
       {furl::detail::bytes_of(groups, "groups"), furl::detail::total_bytes(total)})
    if (const status s = detail::check_bits_of_tiles(p, o.tile_bits, output); !s) return s;
  with_type(x.type, [&](auto element) {
    detail::compute_shares(p.num_tiles(), o.pool, [&](i64 first, i64 last) {
      detail::measure_tiles<decltype(element)>(p, x.data, static_cast<const u8*>(blob.data),
                                               o.tile_bits, first, last, groups.data);
    });
  });
  const float_environment environment;
  detail::quality_tree sum;
  for (i64 group = 0; group < groups.size; ++group) sum.push(groups.data[group]);
  *total = canonical(sum.total());
  return {};
}

}  // namespace furl::host

FURL_HIDDEN_END

#endif
