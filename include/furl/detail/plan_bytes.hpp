// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A plan as bytes (FORMAT.md), to be kept beside a blob that outlives the process. Part of
// plan.hpp.

#include "furl/config.hpp"
#include "furl/plan.hpp"
#include "furl/types.hpp"

namespace furl {

/// Little-endian: "FURL", format version, kind, bits, meta, rounding, rank, window rank, coding
/// (one byte each), group (2), by_lines (1), one byte of 0, shape (8 x 8), sum_of_bits (8), window
/// (8 x 1). What a plan does not use is 0. The version is the first that has all that the plan
/// uses.
struct plan_bytes {
  u8 data[96];  // in the order above
};

FURL_HIDDEN_BEGIN

namespace detail {

constexpr void put_number(u8* at, u64 value, int num_bytes) {
  for (int i = 0; i < num_bytes; ++i) at[i] = u8(value >> (8 * i) & 0xffu);
}
constexpr u64 get_number(const u8* at, int num_bytes) {
  u64 value = 0;
  for (int i = 0; i < num_bytes; ++i) value |= u64(at[i]) << (8 * i);
  return value;
}

}  // namespace detail

/// The bytes that deserialize takes.
constexpr plan_bytes serialize(const plan& p) {
  const bool is_new = p.needs_key() || p.kind() == plan_kind::scaled || p.codec().by_lines;
  plan_bytes out{{'F', 'U', 'R', 'L', u8(is_new ? 2 : 1)}};
  out.data[5] = u8(p.kind());
  out.data[6] = u8(p.codec().bits);
  out.data[7] = u8(p.codec().meta);
  out.data[8] = u8(p.codec().rounding);
  out.data[9] = u8(p.shape().rank);
  out.data[10] = u8(p.codec().window.rank);
  out.data[11] = u8(p.codec().coding);
  detail::put_number(out.data + 12, u64(p.codec().group), 2);
  out.data[14] = u8(p.codec().by_lines);
  for (int d = 0; d < max_rank; ++d) {
    detail::put_number(out.data + 16 + 8 * d, u64(p.shape()[d]), 8);
    out.data[88 + d] = u8(p.codec().window[d]);
  }
  detail::put_number(out.data + 80, p.sum_of_bits(), 8);
  return out;
}

/// The plan that serialize wrote, or why the bytes are none: any other bytes are refused.
constexpr result<plan> deserialize(const plan_bytes& in) {
  const status corrupt{error::corrupt, "plan_bytes", 0, "not a plan of this version"};
  const u8* data = in.data;
  if (data[0] != 'F' || data[1] != 'U' || data[2] != 'R' || data[3] != 'L') return corrupt;
  static_assert(format_version == 2, "the next line names it");
  if (data[4] > format_version)
    return status{error::newer_format, "plan_bytes.format_version", data[4],
                  "written by a later furl; this one reads versions 1 and 2"};
  if (data[4] == 0 || data[5] > u8(plan_kind::scaled)) return corrupt;

  codec c;
  c.bits = data[6];
  c.meta = dtype(data[7]);
  c.rounding = rounding(data[8]);
  c.coding = coding(data[11]);
  c.group = int(detail::get_number(data + 12, 2));
  c.by_lines = data[14] != 0;
  extents shape;
  shape.rank = data[9];
  c.window.rank = data[10];
  for (int d = 0; d < max_rank; ++d) {
    shape.size[d] = i64(detail::get_number(data + 16 + 8 * d, 8));
    c.window.size[d] = data[88 + d];
  }
  const u64 sum_of_bits = detail::get_number(data + 80, 8);
  const auto kind = plan_kind(data[5]);
  const result<plan> made = kind == plan_kind::codes ? plan::make_codes(c.bits, shape)
                            : kind == plan_kind::scaled
                                ? plan::make_scaled(c.bits, c.group, c.meta, shape)
                            : kind == plan_kind::mixed ? plan::make_mixed(c, shape, sum_of_bits)
                                                       : plan::make(c, shape);
  if (!made) return made;
  // The version, and fields that the plan does not use, or derives, must be what it would write
  // itself.
  const plan_bytes again = serialize(*made);
  for (int i = 0; i < int(sizeof again.data); ++i)
    if (again.data[i] != data[i]) return corrupt;
  return made;
}

FURL_HIDDEN_END

}  // namespace furl
