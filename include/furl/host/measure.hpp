// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// How far what a blob decodes to is from what was compressed, in host memory.

#include <algorithm>

#include "furl/config.hpp"
#include "furl/host/arguments.hpp"
#include "furl/host/decompress.hpp"
#include "furl/host/float_environment.hpp"
#include "furl/host/shares.hpp"
#include "furl/host/tile.hpp"
#include "furl/plan.hpp"
#include "furl/quality.hpp"
#include "furl/quality_arguments.hpp"
#include "furl/status.hpp"
#include "furl/view.hpp"

FURL_HIDDEN_BEGIN

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
void measure_tiles(const plan& p, const void* x, const u8* blob, const_bytes widths, i64 first,
                   i64 last, quality* groups) {
  element_reader elements(p, x);
  decompressor<float, output::replace> decoder(p, blob, nullptr, widths);
  alignas(64) float values[tile_elements] = {};
  alignas(64) float present[tile_elements] = {};
  const int group = p.codec().group;
  for (i64 tile = first; tile < last; ++tile) {
    const int count = elements_in_tile(p, tile);
    const float* of_x = elements.tile<T>(tile);
    decoder.decompress_tile(tile, reinterpret_cast<u8*>(values));
    if (count < tile_elements) {  // what is absent adds +0
      std::copy(of_x, of_x + count, present);
      std::fill(present + count, present + tile_elements, 0.0f);
      std::fill(values + count, values + tile_elements, 0.0f);
      of_x = present;
    }
    for (int begin = 0; begin < count; begin += group) {
      groups[(tile * tile_elements + begin) / group] =
          canonical(quality_of_group(of_x + begin, values + begin, group));
    }
  }
}

}  // namespace detail

/// Measures what a blob has kept of x: sums over every group and over all of x, in one read of both
/// and without decompressing to memory. a is what decompress gives in f32.
/// x      : host, the plan.num_elements() elements that were compressed, at any alignment.
/// blob   : host, the plan.size_bytes() bytes that compress wrote; aligned to 16 bytes.
/// groups : host, plan.num_groups() sums; apart from the others.
/// total  : host, one sum, of all groups; apart from the others.
/// Sums are in f64 and in a fixed order: over every four elements of a group, over the eight sums
/// of 32, which have their halves added to each other, and from there on, through groups to the
/// total, pairwise, neighbours first, as if +0 filled up each group and the groups to a power of
/// two. So they do not depend on threads, and the device has the same.
/// Errors: see status. Allocates nothing.
inline status measure(const plan& p, const_values x, const_bytes blob, span<quality> groups,
                      quality* total, const options& o = {}) {
  if (const status s = detail::check_call(p, x, "x", blob, o); !s) return s;
  if (const status s = furl::detail::check_quality(p, x, blob, groups, total); !s) return s;
  with_type(x.type, [&](auto element) {
    detail::compute_shares(p.num_tiles(), o.pool, [&](i64 first, i64 last) {
      detail::measure_tiles<decltype(element)>(p, x.data, static_cast<const u8*>(blob.data),
                                               o.widths, first, last, groups.data);
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
