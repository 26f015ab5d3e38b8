// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Codec and shape in, every size and offset out (README, Format). A plan is all that is known
// before the data: a plain value, to be made once and used for any number of tensors of that shape.

#include "furl/codec.hpp"
#include "furl/config.hpp"
#include "furl/dtype.hpp"
#include "furl/element/pool.hpp"
#include "furl/status.hpp"

namespace furl {

namespace detail {

/// Without overflow for any count.
FURL_HIDDEN constexpr i64 ceil_div(i64 count, i64 size) {
  return count / size + (count % size != 0 ? 1 : 0);
}

}  // namespace detail

inline namespace v0_1 {

/// What a plan is for: one width for all codes, a width per tile, or ready-made codes.
enum class plan_kind : u8 { uniform, mixed, codes };

/// Layout of a blob. Trivially copyable and comparable; made by the functions below only, so that a
/// plan at hand is a valid one.
class plan {
 public:
  /// For compress and decompress, with codec.bits for every code.
  static constexpr result<plan> make(const codec& c, const extents& shape);

  /// For compress and decompress with a width for every tile of 1024 elements, 1..8 each, which add
  /// up to sum_of_widths. codec.bits is ignored.
  static constexpr result<plan> make_mixed(const codec& c, const extents& shape, u64 sum_of_widths);

  /// For pack and unpack: masks and small integers of 1..8 bits (README, A8).
  static constexpr result<plan> make_codes(int bits, const extents& shape);

  /// An empty tensor: zero bytes.
  constexpr plan() = default;

  constexpr u64 size_bytes() const { return size_bytes_; }      // of the blob
  constexpr u64 meta_offset() const { return meta_offset_; }    // bytes from the blob's base
  constexpr u64 lfc_offset() const { return lfc_offset_; }      // likewise
  constexpr i64 num_elements() const { return num_elements_; }  // of the tensor
  /// Of 1024 elements, the last perhaps partial.
  constexpr i64 num_tiles() const { return detail::ceil_div(num_elements_, tile_elements); }
  /// Of codec().group elements, the last perhaps partial. Ready-made codes have none.
  constexpr i64 num_groups() const {
    return kind_ == plan_kind::codes ? 0 : detail::ceil_div(num_elements_, codec_.group);
  }
  /// Of the LFC: 0 without a window.
  constexpr i64 num_cells() const { return has_lfc() ? grid_.num_cells() : 0; }
  /// Whether a dimension is pooled.
  constexpr bool has_lfc() const { return has_lfc_; }
  /// Bits of a code, summed over the tiles.
  constexpr u64 sum_of_widths() const { return sum_of_widths_; }
  /// Size of the blob in bits over the number of elements; 0 for an empty tensor.
  constexpr double bits_per_value() const {
    return num_elements_ == 0 ? 0.0 : 8.0 * double(size_bytes_) / double(num_elements_);
  }

  constexpr plan_kind kind() const { return kind_; }             // which function made it
  constexpr const furl::codec& codec() const { return codec_; }  // as it was given, in essence
  constexpr const extents& shape() const { return shape_; }      // as it was given
  constexpr const cell_grid& grid() const { return grid_; }      // meaningful if has_lfc()

  friend constexpr bool operator==(const plan& a, const plan& b) {
    return a.kind_ == b.kind_ && a.codec_ == b.codec_ && a.shape_ == b.shape_ &&
           a.sum_of_widths_ == b.sum_of_widths_;
  }
  friend constexpr bool operator!=(const plan& a, const plan& b) { return !(a == b); }

 private:
  static constexpr i64 no_elements[1] = {0};

  constexpr status set_shape(const extents& shape);
  constexpr status set_window();
  constexpr void set_grid();
  constexpr status set_sizes();
  static constexpr result<plan> finish(plan p, const extents& shape);

  furl::codec codec_{};
  extents shape_{no_elements, 1};
  cell_grid grid_{};
  i64 num_elements_ = 0;
  u64 sum_of_widths_ = 0;
  u64 meta_offset_ = 0;
  u64 lfc_offset_ = 0;
  u64 size_bytes_ = 0;
  plan_kind kind_ = plan_kind::uniform;
  bool has_lfc_ = false;
};

}  // namespace v0_1

// ---- Making a plan --------------------------------------------------------------------------

FURL_HIDDEN_BEGIN
namespace detail {

inline constexpr u64 size_limit = u64(1) << 63;  // sizes and counts are below it

/// Product, or size_limit if that is reached.
constexpr u64 bounded_product(u64 a, u64 b) {
  return b != 0 && a > (size_limit - 1) / b ? size_limit : a * b;
}
/// Sum of two numbers of at most size_limit, or size_limit if that is reached.
constexpr u64 bounded_sum(u64 a, u64 b) {
  return a + b < size_limit ? a + b : size_limit;
}
constexpr u64 bounded_align(u64 size) {
  return bounded_sum(size, blob_alignment - 1) / blob_alignment * blob_alignment;
}

constexpr status check_bits(int bits, const char* argument) {
  if (bits < 1 || bits > max_bits) return {error::out_of_range, argument, bits, "must be 1..8"};
  return {};
}

constexpr status check_groups(const codec& c) {
  bool known = false;
  for (int size = 32; size <= tile_elements; size *= 2) known = known || c.group == size;
  if (!known)
    return {error::out_of_range, "codec.group", c.group, "must be 32, 64, 128, 256, 512 or 1024"};
  if (c.meta != dtype::bf16 && c.meta != dtype::f32)
    return {error::out_of_range, "codec.meta", i64(c.meta), "must be dtype::bf16 or dtype::f32"};
  if (c.rounding != rounding::stochastic && c.rounding != rounding::nearest)
    return {error::out_of_range, "codec.rounding", i64(c.rounding),
            "must be rounding::stochastic or rounding::nearest"};
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
  has_lfc_ = pooled > 0;
  if (has_lfc_ && num_elements_ > 0) set_grid();
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
  const u64 meta_bytes = u64(furl::size_bytes(codec_.meta));
  const u64 codes = detail::bounded_product(sum_of_widths_, row_elements);
  const u64 meta = detail::bounded_product(u64(num_groups()), 2 * meta_bytes);
  const u64 lfc = detail::bounded_product(u64(num_cells()), meta_bytes);
  meta_offset_ = codes;  // a multiple of 128
  lfc_offset_ = detail::bounded_sum(codes, detail::bounded_align(meta));
  size_bytes_ = detail::bounded_sum(lfc_offset_, detail::bounded_align(lfc));
  if (size_bytes_ >= detail::size_limit)
    return {error::out_of_range, "shape", num_elements_, "the blob must be below 2^63 bytes"};
  return {};
}

constexpr result<plan> plan::finish(plan p, const extents& shape) {
  if (const status s = p.set_shape(shape); !s) return s;
  if (const status s = p.set_window(); !s) return s;
  const u64 tiles = u64(p.num_tiles());
  if (p.kind_ != plan_kind::mixed) p.sum_of_widths_ = tiles * u64(p.codec_.bits);
  if (p.sum_of_widths_ < tiles || p.sum_of_widths_ > tiles * max_bits)
    return status{error::out_of_range, "sum_of_widths", i64(p.sum_of_widths_),
                  "every tile of 1024 elements has a width of 1..8"};
  if (const status s = p.set_sizes(); !s) return s;
  return p;
}

constexpr result<plan> plan::make(const furl::codec& c, const extents& shape) {
  if (const status s = detail::check_bits(c.bits, "codec.bits"); !s) return s;
  if (const status s = detail::check_groups(c); !s) return s;
  plan p;
  p.kind_ = plan_kind::uniform;
  p.codec_ = c;
  return finish(p, shape);
}

constexpr result<plan> plan::make_mixed(const furl::codec& c, const extents& shape,
                                        u64 sum_of_widths) {
  if (const status s = detail::check_groups(c); !s) return s;
  plan p;
  p.kind_ = plan_kind::mixed;
  p.codec_ = c;
  p.codec_.bits = 0;
  p.sum_of_widths_ = sum_of_widths;
  return finish(p, shape);
}

constexpr result<plan> plan::make_codes(int bits, const extents& shape) {
  if (const status s = detail::check_bits(bits, "bits"); !s) return s;
  plan p;
  p.kind_ = plan_kind::codes;
  p.codec_.bits = bits;
  return finish(p, shape);
}

}  // namespace furl
