// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// How a plan is made: every check of codec and shape, and the sizes. Part of plan.hpp.

#include "furl/config.hpp"
#include "furl/plan.hpp"
#include "furl/types.hpp"

namespace furl {

FURL_HIDDEN_BEGIN
namespace detail {

/// Sum of two numbers of at most size_limit, or size_limit if that is reached.
constexpr u64 bounded_sum(u64 a, u64 b) {
  return a < size_limit && b < size_limit - a ? a + b : size_limit;
}
constexpr u64 bounded_align(u64 size) {
  return bounded_sum(size, blob_alignment - 1) / blob_alignment * blob_alignment;
}

constexpr status check_bits(int bits, const char* argument) {
  if (bits < 1 || bits > max_bits) return {error::out_of_range, argument, bits, "must be 1..8"};
  return {};
}

constexpr status check_group(int group, const char* argument) {
  for (int size = 32; size <= tile_elements; size *= 2)
    if (group == size) return {};
  return {error::out_of_range, argument, group, "must be 32, 64, 128, 256, 512 or 1024"};
}

constexpr status check_meta(dtype meta, const char* argument) {
  if (meta == dtype::bf16 || meta == dtype::f32) return {};
  return {error::out_of_range, argument, i64(meta), "must be dtype::bf16 or dtype::f32"};
}

constexpr status check_groups(const codec& c) {
  if (const status s = check_group(c.group, "codec.group"); !s) return s;
  if (const status s = check_meta(c.meta, "codec.meta"); !s) return s;
  if (c.rounding != rounding::stochastic && c.rounding != rounding::nearest &&
      c.rounding != rounding::dithered)
    return {error::out_of_range, "codec.rounding", i64(c.rounding),
            "must be rounding::stochastic, rounding::nearest or rounding::dithered"};
  if (c.coding != coding::min_max && c.coding != coding::rotated && c.coding != coding::positives)
    return {error::out_of_range, "codec.coding", i64(c.coding),
            "must be coding::min_max, coding::rotated or coding::positives"};
  return {};
}

/// What rotated codes do not have a choice of. Pre: check_bits and check_groups have passed.
constexpr status check_rotated(const codec& c) {
  if (c.coding == coding::min_max) return {};
  if (c.bits > max_rotated_bits)
    return {error::out_of_range, "codec.bits", c.bits, "must be 1..4 for rotated codes"};
  if (c.group != block_elements)
    return {error::out_of_range, "codec.group", c.group, "must be 256 for rotated codes"};
  if (c.meta != dtype::bf16)
    return {error::out_of_range, "codec.meta", i64(c.meta),
            "must be dtype::bf16 for rotated codes"};
  if (c.rounding != rounding::stochastic)
    return {error::out_of_range, "codec.rounding", i64(c.rounding),
            "must be rounding::stochastic for rotated codes, which are not rounded"};
  return {};
}

}  // namespace detail
FURL_HIDDEN_END

constexpr status plan::set_shape(const extents& shape) {
  shape_ = extents(shape.size, shape.rank);  // without what may stand beyond the rank
  if (shape.rank < 0 || shape.rank > max_rank)
    return {error::out_of_range, "shape.rank", shape.rank, "must be 0..8"};
  bool empty = false;
  for (int d = 0; d < shape.rank; ++d) {
    if (shape[d] < 0)
      return {error::out_of_range, "shape", shape[d], "dimensions must not be negative"};
    empty = empty || shape[d] == 0;
  }
  u64 count = empty ? 0 : 1;
  for (int d = 0; d < shape.rank && !empty; ++d)
    count = detail::bounded_product(count, u64(shape[d]));
  if (count >= detail::size_limit)
    return {error::out_of_range, "shape", shape[0], "the number of elements must be below 2^63"};
  num_elements_ = i64(count);
  return {};
}

constexpr status plan::set_window() {
  codec_.window = extents(codec_.window.size, codec_.window.rank);
  const extents& window = codec_.window;
  if (window.rank == 0) return {};
  if (window.rank != shape_.rank)
    return {error::out_of_range, "codec.window.rank", window.rank,
            "must be the rank of the shape, or 0 for no window"};
  i64 product = 1;
  int pooled = 0;
  int last_pooled = 0;
  for (int d = 0; d < window.rank; ++d) {
    if (window[d] < 1 || window[d] > max_window)
      return {error::out_of_range, "codec.window", window[d], "widths must be 1..64"};
    if (window[d] == 1) continue;
    if (pooled > 0 && d != last_pooled + 1)
      return {error::out_of_range, "codec.window", window[d],
              "the dimensions wider than 1 must be consecutive"};
    if (pooled == 3)
      return {error::out_of_range, "codec.window", window[d],
              "at most three dimensions may be wider than 1"};
    product *= window[d];
    last_pooled = d;
    ++pooled;
  }
  if (product > max_cell_elements)
    return {error::out_of_range, "codec.window", product, "a cell must have at most 4096 elements"};
  if (pooled > 0 && has_mask())
    return {error::out_of_range, "codec.window", window[last_pooled],
            "must be 1 or none for the codes of positives, which have means of their own"};
  has_lfc_ = pooled > 0;
  if (has_lfc_ && num_elements_ > 0) set_grid();
  return {};
}

constexpr status plan::set_lines() {
  num_codes_ = num_elements_;
  if (!codec_.by_lines) return {};
  const char* const argument = "codec.by_lines";
  if (is_rotated()) return {error::out_of_range, argument, 1, "must be false for rotated codes"};
  if (kind_ == plan_kind::mixed)
    return {error::out_of_range, argument, 1, "must be false for a mixed plan"};
  if (has_lfc_) return {error::out_of_range, argument, 1, "must be false with a window"};
  if (num_elements_ == 0) return {};
  const u64 groups = u64(detail::ceil_div(line_elements(), codec_.group)) *
                     u64(num_elements_ / line_elements());  // at most num_elements
  const u64 codes = detail::bounded_product(groups, u64(codec_.group));
  if (codes >= detail::size_limit)
    return {error::out_of_range, "shape", num_elements_, "the number of codes must be below 2^63"};
  num_codes_ = i64(codes);
  return {};
}

constexpr void plan::set_grid() {
  int last = shape_.rank - 1;
  while (codec_.window[last] == 1) --last;
  cell_grid g{};
  g.inner = 1;
  for (int d = shape_.rank - 1; d > last; --d) g.inner *= shape_[d];
  int d = last;
  int place = 2;
  for (; d >= 0 && codec_.window[d] > 1; --d, --place) {
    g.extent[place] = shape_[d];
    g.window[place] = int(codec_.window[d]);
    g.cells[place] = (shape_[d] - 1) / g.window[place] + 1;
  }
  g.first_pooled = place + 1;
  for (; place >= 0; --place) g.extent[place] = g.cells[place] = 1;
  g.outer = 1;
  for (; d >= 0; --d) g.outer *= shape_[d];
  grid_ = g;
}

constexpr status plan::set_sizes() {
  const u64 codes = detail::bounded_product(sum_of_bits_, row_elements);
  const u64 lfc =
      has_mask() ? detail::bounded_product(u64(num_tiles()), row_elements)
                 : detail::bounded_product(u64(num_cells()), u64(furl::size_bytes(codec_.meta)));
  meta_offset_ = codes;  // a multiple of 128
  lfc_offset_ = detail::bounded_sum(codes, detail::bounded_align(meta_bytes()));
  size_bytes_ = detail::bounded_sum(lfc_offset_, detail::bounded_align(lfc));
  if (size_bytes_ >= detail::size_limit)
    return {error::out_of_range, "shape", num_elements_, "the blob must be below 2^63 bytes"};
  return {};
}

constexpr result<plan> plan::finish(plan p, const extents& shape) {
  if (const status s = p.set_shape(shape); !s) return s;
  if (const status s = p.set_window(); !s) return s;
  if (const status s = p.set_lines(); !s) return s;
  const u64 tiles = u64(p.num_tiles());
  if (p.kind_ != plan_kind::mixed) p.sum_of_bits_ = tiles * u64(p.codec_.bits);
  if (p.sum_of_bits_ < tiles || p.sum_of_bits_ > tiles * max_bits)
    return status{error::out_of_range, "sum_of_bits", i64(p.sum_of_bits_),
                  "every tile of 1024 elements has 1..8 bits"};
  if (const status s = p.set_sizes(); !s) return s;
  return p;
}

constexpr result<plan> plan::make(const furl::codec& c, const extents& shape) {
  if (const status s = detail::check_bits(c.bits, "codec.bits"); !s) return s;
  if (const status s = detail::check_groups(c); !s) return s;
  if (const status s = detail::check_rotated(c); !s) return s;
  plan p;
  p.kind_ = plan_kind::uniform;
  p.codec_ = c;
  return finish(p, shape);
}

constexpr result<plan> plan::make_mixed(const furl::codec& c, const extents& shape,
                                        u64 sum_of_bits) {
  if (const status s = detail::check_groups(c); !s) return s;
  if (c.coding != coding::min_max)
    return status{error::out_of_range, "codec.coding", i64(c.coding),
                  "must be coding::min_max for a mixed plan"};
  plan p;
  p.kind_ = plan_kind::mixed;
  p.codec_ = c;
  p.codec_.bits = 0;
  p.sum_of_bits_ = sum_of_bits;
  return finish(p, shape);
}

constexpr plan plan::mask_plan() const {
  return has_mask() ? *make_codes(1, shape_) : plan{};
}

constexpr result<plan> plan::make_codes(int bits, const extents& shape) {
  if (const status s = detail::check_bits(bits, "bits"); !s) return s;
  plan p;
  p.kind_ = plan_kind::codes;
  p.codec_.bits = bits;
  return finish(p, shape);
}

constexpr result<plan> plan::make_scaled(int bits, int group, dtype meta, const extents& shape) {
  if (const status s = detail::check_bits(bits, "bits"); !s) return s;
  if (const status s = detail::check_group(group, "group"); !s) return s;
  if (const status s = detail::check_meta(meta, "meta"); !s) return s;
  plan p;
  p.kind_ = plan_kind::scaled;
  p.codec_.bits = bits;
  p.codec_.group = group;
  p.codec_.meta = meta;
  return finish(p, shape);
}

}  // namespace furl
