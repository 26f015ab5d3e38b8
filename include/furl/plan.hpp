// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Plans (FORMAT.md): a codec says what to do with a tensor. With a shape it gives a plan, which
// holds every size and offset of the blob. A plan is a plain value, made once, before there is any
// data, and used for any number of tensors of that shape. As plan_bytes it can be kept beside a
// blob that outlives the process.
//
// Also what most callers can ignore: options of calls for device memory and for host memory, ranges
// that are given to compress, and statistics to normalise by.

#include "furl/config.hpp"
#include "furl/detail/cells.hpp"
#include "furl/types.hpp"

namespace furl {
inline namespace v0_2 {

/// Which elements share a range: those of a group, as measured or given, of a channel, or all.
enum class range_scope : u8 { measured, tensor, channel, group };

/// Pairs (lo, hi) of f32 to code elements with, in place of measured ranges (FORMAT.md, A3): one
/// for a tensor as in BLPA (Chakrabarti and Moseley, NeurIPS 2019), or running ones of channels as
/// in Mesa (Pan et al., 2021). A group is coded over the smallest range that holds those of all its
/// elements, and elements beyond it become its ends; infinities too, but a NaN always poisons its
/// group. The blob is like any other: it has the ranges in it. With a window they are ranges of the
/// residuals. A pair that is not finite or not in order poisons the groups it belongs to; the host,
/// which can read it beforehand, refuses it.
struct given_ranges {
  const float* pairs = nullptr;               // lo, hi, lo, hi, ...
  i64 num_pairs = 0;                          // each of two numbers
  range_scope scope = range_scope::measured;  // of a pair; measured: none are given
  int dimension = 0;                          // of the shape: its index is an element's channel

  /// One for all elements.
  FURL_HD static constexpr given_ranges of_tensor(const float* pair) {
    return {pair, 1, range_scope::tensor, 0};
  }
  /// One for every index of a dimension, such as 1 of NCHW.
  FURL_HD static constexpr given_ranges of_channels(const float* pairs, i64 num_pairs,
                                                    int dimension) {
    return {pairs, num_pairs, range_scope::channel, dimension};
  }
  /// One for every group.
  FURL_HD static constexpr given_ranges of_groups(const float* pairs, i64 num_pairs) {
    return {pairs, num_pairs, range_scope::group, 0};
  }
};

/// What a norm layer keeps: means and inverse deviations (FORMAT.md, A14). compress codes
/// (x - mean) * inverse_deviation in place of x, so that all elements have about the same scale and
/// no loud token or channel spoils its neighbours. Element i, counted through the tensor, has the
/// numbers at index (i / extent) mod count. So layer norm has the width as extent and the tokens as
/// count, batch norm on NCHW the pixels of a plane and the channels, on channels-last 1 and the
/// channels, group norm the elements of a group and the groups of all samples.
struct statistics {
  const float* mean = nullptr;  // `count` numbers; null: 0, as RMS norm has it
  const float* inverse_deviation =
      nullptr;     // `count` numbers; null: elements are coded as they are
  i64 count = 0;   // of each, 1 to 2^31 - 1
  i64 extent = 0;  // elements in a row that share theirs, at least 1

  /// Whether there are any.
  FURL_HD constexpr bool are_given() const {
    return mean != nullptr || inverse_deviation != nullptr || count != 0 || extent != 0;
  }
};

/// Options of calls for device memory. All pointers are to device memory, and what they point to
/// must stay until the call's work on the stream is done.
struct options {
  /// For a mixed plan: the bits of each tile's codes, one byte each. They cannot be checked without
  /// waiting: each must be 1..8, and together the plan's sum_of_bits. Apart from what the call
  /// writes.
  const_bytes tile_bits = {};
  /// For a mixed plan: what index_tiles (extra/allocate_bits.cuh) has made of tile_bits,
  /// tile_index_bytes(plan) bytes or more, aligned to 8.
  const_bytes tile_index = {};
  /// compress, and decompress with a key, read the random stream from here when they run, instead
  /// of from `key`: so a replay of a CUDA graph can draw fresh bits. Aligned to 8.
  const random_key* device_key = nullptr;
  /// For compress: ranges in place of measured ones, read when it runs. Other calls refuse them.
  given_ranges ranges = {};
  /// For compress: what to normalise elements by. For decompress and decompress_add: what takes
  /// that back; without, they give normalised values. Read when the call runs, and disjoint from
  /// what it writes. Not for windows, mixed plans, given ranges, filled lines or
  /// coding::positives. Other calls refuse them.
  furl::statistics statistics = {};
  /// Whether the driver is asked if the stream's device can reach every pointer, one runtime call
  /// for each. Without, memory that it cannot reach is an error of the kernel, as in any kernel.
  bool check_pointers = true;
};

}  // namespace v0_2

namespace host {
inline namespace v0_2 {

class thread_pool;

/// Options of calls for host memory.
struct options {
  thread_pool* pool = nullptr;  // none: the calling thread alone
  /// For a mixed plan: the bits of each tile's codes, one byte each; disjoint from what the call
  /// writes.
  const_bytes tile_bits = {};
  /// For compress: ranges in place of measured ones, in host memory. Other calls refuse them.
  given_ranges ranges = {};
  /// For compress, decompress and decompress_add: as for device memory, in host memory.
  furl::statistics statistics = {};
};

}  // namespace v0_2
}  // namespace host
}  // namespace furl

namespace furl {
inline namespace v0_2 {

/// What to do with a tensor. The defaults are ActNN's; window = {1, 1, 8, 8} makes it DIVISION on
/// NCHW.
struct codec {
  int bits = 2;              // 1..8, of a code
  int group = 256;           // elements that share lo and step: 32, 64, 128, 256, 512 or 1024
  dtype meta = dtype::bf16;  // type of lo, step and the LFC: bf16 or f32
  furl::rounding rounding = rounding::stochastic;  // unbiased, nearest, or unbiased and dithered
  extents window = {};  // elements per cell along each dimension; none, or all 1: no LFC
  /// Rotated codes have 1 to 4 bits, groups of 256, metadata in bf16 and stochastic rounding. Those
  /// of positives have no window either.
  furl::coding coding = coding::min_max;
  /// Whether no group holds elements of two lines, which are the elements along the last dimension:
  /// lines are filled up to whole groups (FORMAT.md, A15). For uniform min-max codes without a
  /// window. Where lines must be filled, no block functions, given ranges, statistics, nor
  /// calls that measure or allocate bits take the plan.
  bool by_lines = false;
};

constexpr bool operator==(const codec& a, const codec& b) {
  return a.bits == b.bits && a.group == b.group && a.meta == b.meta && a.rounding == b.rounding &&
         a.window == b.window && a.coding == b.coding && a.by_lines == b.by_lines;
}
constexpr bool operator!=(const codec& a, const codec& b) {
  return !(a == b);
}

}  // namespace v0_2

namespace detail {

/// Without overflow for any count.
FURL_HIDDEN constexpr i64 ceil_div(i64 count, i64 size) {
  return count / size + (count % size != 0 ? 1 : 0);
}

inline constexpr u64 size_limit = u64(1) << 63;  // sizes and counts are below it

/// Product, or size_limit if that is reached.
FURL_HIDDEN constexpr u64 bounded_product(u64 a, u64 b) {
  return b != 0 && a > (size_limit - 1) / b ? size_limit : a * b;
}

}  // namespace detail

inline namespace v0_2 {

/// What a plan is for: codes of one number of bits, of a number for each tile, ready-made codes, or
/// codes by a codebook with a scale for each group.
enum class plan_kind : u8 { uniform, mixed, codes, scaled };

/// Layout of a blob. Trivially copyable and comparable; made by the functions below only, so that a
/// plan at hand is a valid one.
class plan {
 public:
  /// For compress and decompress, with codec.bits for every code.
  static constexpr result<plan> make(const codec& c, const extents& shape);

  /// For compress and decompress with bits for every tile of 1024 elements, 1..8 each, which add up
  /// to sum_of_bits. codec.bits is ignored.
  static constexpr result<plan> make_mixed(const codec& c, const extents& shape, u64 sum_of_bits);

  /// For pack and unpack: masks and small integers of 1..8 bits (FORMAT.md, A8).
  static constexpr result<plan> make_codes(int bits, const extents& shape);

  /// For pack and unpack by a codebook with a scale for each group (FORMAT.md, A13). meta is the
  /// type of the scales; what group, meta and bits may be is as in a codec.
  static constexpr result<plan> make_scaled(int bits, int group, dtype meta, const extents& shape);

  /// An empty tensor: zero bytes.
  constexpr plan() = default;

  constexpr u64 size_bytes() const { return size_bytes_; }    // of the blob
  constexpr u64 meta_offset() const { return meta_offset_; }  // bytes from the blob's base
  constexpr u64 meta_end() const { return meta_offset_ + meta_bytes(); }  // before its padding
  constexpr u64 lfc_offset() const { return lfc_offset_; }                // as meta_offset
  constexpr u64 mask_offset() const { return lfc_offset_; }  // the same: of the mask of positives
  constexpr i64 num_elements() const { return num_elements_; }  // of the tensor
  /// As many as elements, and more where codec().by_lines has filled lines.
  constexpr i64 num_codes() const { return num_codes_; }
  /// Of 1024 codes, the last perhaps partial.
  constexpr i64 num_tiles() const { return detail::ceil_div(num_codes_, tile_elements); }
  /// Of codec().group elements, the last perhaps partial. Ready-made codes have none; rotated ones
  /// have four for every tile, those of absent elements too.
  constexpr i64 num_groups() const {
    if (is_rotated()) return blocks_per_tile * num_tiles();
    return kind_ == plan_kind::codes ? 0 : detail::ceil_div(num_codes_, codec_.group);
  }
  /// Of the LFC: 0 without a window.
  constexpr i64 num_cells() const { return has_lfc() ? grid_.num_cells() : 0; }
  /// Whether lines have codes beyond their elements.
  constexpr bool fills_lines() const { return num_codes_ != num_elements_; }
  /// Elements of a line: the last dimension.
  constexpr i64 line_elements() const { return shape_.rank == 0 ? 1 : shape_[shape_.rank - 1]; }
  /// Codes of a line, of a plan that fills lines.
  constexpr i64 line_codes() const {
    return detail::ceil_div(line_elements(), codec_.group) * codec_.group;
  }
  /// Whether means of cells are stored: some dimension has a window wider than 1.
  constexpr bool has_lfc() const { return has_lfc_; }
  /// Whether codec().coding is coding::rotated or coding::positives.
  constexpr bool is_rotated() const { return codec_.coding != coding::min_max; }
  /// Whether codec().coding is coding::positives, so that the blob ends with a mask.
  constexpr bool has_mask() const { return codec_.coding == coding::positives; }
  /// Of the mask in a blob, from mask_offset() on: a blob by itself, for unpack and
  /// unpack_multiply. Empty if there is none.
  constexpr plan mask_plan() const;
  /// Whether decompress needs the key that compress had.
  constexpr bool needs_key() const { return is_rotated() || codec_.rounding == rounding::dithered; }
  /// Bits of a code, summed over the tiles.
  constexpr u64 sum_of_bits() const { return sum_of_bits_; }
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
           a.sum_of_bits_ == b.sum_of_bits_;
  }
  friend constexpr bool operator!=(const plan& a, const plan& b) { return !(a == b); }

 private:
  /// Of a pair (lo, step) or (scale, mean) for every group, or of one scale.
  constexpr u64 meta_bytes() const {
    const bool has_one = (is_rotated() && !has_mask()) || kind_ == plan_kind::scaled;
    const u64 numbers = has_one ? 1 : 2;
    return detail::bounded_product(u64(num_groups()), numbers * u64(furl::size_bytes(codec_.meta)));
  }

  static constexpr i64 no_elements[1] = {0};

  constexpr status set_shape(const extents& shape);
  constexpr status set_window();
  constexpr status set_lines();
  constexpr void set_grid();
  constexpr status set_sizes();
  static constexpr result<plan> finish(plan p, const extents& shape);

  furl::codec codec_{};
  extents shape_{no_elements, 1};
  cell_grid grid_{};
  i64 num_elements_ = 0;
  i64 num_codes_ = 0;
  u64 sum_of_bits_ = 0;
  u64 meta_offset_ = 0;
  u64 lfc_offset_ = 0;
  u64 size_bytes_ = 0;
  plan_kind kind_ = plan_kind::uniform;
  bool has_lfc_ = false;
};

}  // namespace v0_2

/// Bytes of the index that a mixed plan needs in device memory (options.tile_index), 0 for other
/// plans.
FURL_HIDDEN constexpr u64 tile_index_bytes(const plan& p) {
  return p.kind() == plan_kind::mixed
             ? u64(detail::ceil_div(p.num_tiles(), tiles_per_chunk)) * sizeof(u64)
             : 0;
}

}  // namespace furl

#include "furl/detail/make_plan.hpp"
#include "furl/detail/plan_bytes.hpp"
