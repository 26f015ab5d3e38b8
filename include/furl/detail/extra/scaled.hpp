// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Codebooks with a scale for each group (FORMAT.md, A13). ONE THREAD: how a group is scaled. Then
// the checks of the calls, and the groups of a tile on the host.

#include "furl/config.hpp"
#include "furl/detail/number.hpp"
#include "furl/detail/quantize.hpp"
#include "furl/types.hpp"

#if !defined(__CUDACC_RTC__)
#include <algorithm>

#include "furl/detail/checks.hpp"
#include "furl/detail/host/tile.hpp"
#include "furl/plan.hpp"
#endif

namespace furl {

/// How a group is scaled.
struct group_scale {
  float scale;    // of the levels, exact in the metadata type: what is stored
  float inverse;  // of the elements; NaN where all codes are 0, as that of NaN is
};

/// The scale by which a codebook reaches as far as a group, or the one that is given for it.
/// largest       : the largest magnitude of the group, NaN if it has a NaN.
/// given         : the scale that the caller gives, or null.
/// largest_level : the largest magnitude of the levels, above 0.
/// meta          : bf16 or f32.
FURL_HD group_scale make_scale(float largest, const float* given, float largest_level, dtype meta) {
  const float nan = float_of(f32_nan_bits);
  float scale = given == nullptr ? div_rn(largest, largest_level) : add_rn(*given, 0.0f);
  if (meta == dtype::bf16) scale = f32_from_bf16(bf16_up(scale));
  // Patterns from that of infinity on are those of NaN and of all negative numbers, too.
  const bool is_scale = bits_of(mul_rn(largest_level, scale)) < f32_infinity_bits;
  if (is_nan(largest) || !is_scale) return {nan, nan};
  if (bits_of(scale) < bits_of(smallest_normal)) return {0.0f, nan};
  return {scale, div_rn(1.0f, scale)};
}

/// A level as its group has it. It is +0 where the level or the scale is 0.
FURL_HD float scale_level(float level, float scale) {
  return fma_rn(level, scale, 0.0f);
}

}  // namespace furl

#if !defined(__CUDACC_RTC__)

FURL_HIDDEN_BEGIN

namespace furl::detail {

/// Of calls with a codebook.
inline status check_holds_levels(const plan& p) {
  if (p.kind() == plan_kind::codes || p.kind() == plan_kind::scaled) return {};
  return {error::wrong_plan, "plan", 0, "must come from plan::make_codes or make_scaled"};
}

/// Scales that are given for a plan's groups. They are not read.
inline status check_scales(const plan& p, span<const float> scales, const_bytes blob) {
  if (p.kind() != plan_kind::scaled)
    return {error::wrong_plan, "plan", 0, "must come from plan::make_scaled"};
  if (scales.size != 1 && scales.size != p.num_groups())
    return {error::wrong_size, "scales", scales.size, "must be one, or one per group"};
  if (const status s = check_array(scales, scales.size, "scales", ""); !s) return s;
  return check_apart({blob.data, p.size_bytes(), "blob"},
                     {{scales.data, u64(scales.size) * sizeof(float), "scales"}},
                     apart_from_outputs);
}

}  // namespace furl::detail

namespace furl::host::detail {

/// Of scales that can be read: none is negative, an infinity or NaN.
inline status check_scale_values(furl::span<const float> scales) {
  for (i64 i = 0; i < scales.size; ++i)
    if (!is_zero(scales.data[i]) && bits_of(scales.data[i]) >= f32_infinity_bits)
      return {error::out_of_range, "scales", i, "must be finite and not negative (by index)"};
  return {};
}

/// Brings the groups of tiles into the range of a codebook's levels, and stores their scales.
class group_scaler {
 public:
  /// largest_level : as make_scale takes it.
  /// scales        : given ones: for all groups or for each; none: they are measured.
  group_scaler(const plan& p, float largest_level, furl::span<const float> scales, bytes blob)
      : plan_(p),
        largest_level_(largest_level),
        scales_(scales),
        meta_(static_cast<u8*>(blob.data) + p.meta_offset()) {}

  /// A tile, of which the first `count` elements are present.
  void scale(float* __restrict x, int count, i64 tile) const {
    const int group = plan_.codec().group;
    for (int begin = 0; begin < count; begin += group) {
      const int end = (::std::min)(begin + group, count);
      const i64 index = (tile * tile_elements + begin) / group;
      u32 largest = 0;  // a NaN is above all numbers
      for (int i = begin; i < end; ++i)
        largest = (::std::max)(largest, bits_of(x[i]) & 0x7fffffffu);
      const float* const given = scales_.size == 0 ? nullptr : scales_.data + given_index(index);
      const group_scale found =
          make_scale(float_of(largest), given, largest_level_, plan_.codec().meta);
      store_meta(meta_, index, plan_.codec().meta, found.scale);
      for (int i = begin; i < end; ++i) x[i] = mul_rn(x[i], found.inverse);
    }
  }

 private:
  i64 given_index(i64 group) const { return scales_.size == 1 ? 0 : group; }

  const plan& plan_;
  const float largest_level_;
  const furl::span<const float> scales_;
  u8* const meta_;
};

/// Multiplies the levels of a tile by the scales of their groups.
inline void scale_levels(const plan& p, const_bytes blob, i64 tile, float* __restrict v) {
  const int group = p.codec().group;
  const dtype meta = p.codec().meta;
  const u8* const scales = static_cast<const u8*>(blob.data) + p.meta_offset();
  for (int begin = 0; begin < elements_in_tile(p, tile); begin += group) {
    const float scale = load_meta(scales, (tile * tile_elements + begin) / group, meta);
    for (int i = begin; i < begin + group; ++i) v[i] = scale_level(v[i], scale);
  }
}

/// Writes the zeros that the scales of a blob are padded with.
inline void clear_scale_padding(const plan& p, bytes blob) {
  u8* const base = static_cast<u8*>(blob.data);
  ::std::fill(base + p.meta_end(), base + p.size_bytes(), u8(0));
}

}  // namespace furl::host::detail

FURL_HIDDEN_END

#endif
