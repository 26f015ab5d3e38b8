// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The checks of arguments that several extras share, beyond those in detail/checks.hpp.

#include "furl/config.hpp"
#include "furl/detail/checks.hpp"
#include "furl/options.hpp"
#include "furl/plan.hpp"
#include "furl/types.hpp"

#if !defined(__CUDACC_RTC__)
#include <initializer_list>

FURL_HIDDEN_BEGIN

namespace furl::detail {

inline constexpr const char* apart_from_outputs = "must not overlap what the call writes";

inline named_bytes bytes_of(const_values array, const char* argument) {
  return {array.data, array.size_bytes(), argument};
}
template <class T>
named_bytes bytes_of(span<T> array, const char* argument) {
  return {array.data, array.size_bytes(), argument};
}
/// The part of a blob that its plan describes.
inline named_bytes bytes_of(const plan& p, const_bytes blob) {
  return {blob.data, p.size_bytes(), "blob"};
}

/// An output that is made element by element from an input: it has the input's size and dtype, and
/// is the same array or one apart.
inline status check_elementwise(const_values input, const_values output, const char* argument) {
  if (output.num_elements != input.num_elements)
    return {error::wrong_size, argument, output.num_elements,
            "must have as many elements as the input"};
  if (output.type != input.type)
    return {error::out_of_range, argument, i64(output.type), "must have the dtype of the input"};
  if (const status s = check_not_null(output.data, output.num_elements > 0, argument); !s) return s;
  if (output.data == input.data) return {};
  return check_apart(bytes_of(input, ""), {bytes_of(output, argument)},
                     "must be the input itself or not overlap it");
}

/// An index of tiles goes with a mixed plan, and only with that.
inline status check_no_index(const options& o) {
  if (o.tile_index.data == nullptr && o.tile_index.size_bytes == 0) return {};
  return {error::wrong_plan, "options.tile_index", 0,
          "goes with a plan from plan::make_mixed only"};
}

/// Options of a call for device memory that takes no ranges, and that writes `outputs`. A call that
/// does not look at the bits of tiles passes plan{}.
inline status check_extra_options(const plan& p, const options& o,
                                  ::std::initializer_list<named_bytes> outputs) {
  if (const status s = check_no_ranges(o.ranges); !s) return s;
  if (p.kind() != plan_kind::mixed) {
    if (const status s = check_no_index(o); !s) return s;
  }
  for (const named_bytes& output : outputs)
    if (const status s = check_options(p, o, output); !s) return s;
  return {};
}

/// Scratch memory that a call writes. What it must be apart from is the caller's to check.
inline status check_workspace(bytes workspace, u64 needed_bytes, const char* limit) {
  if (needed_bytes == 0) return {};
  if (workspace.size_bytes < needed_bytes)
    return {error::wrong_size, "workspace", i64(workspace.size_bytes), limit};
  if (const status s = check_not_null(workspace.data, true, "workspace"); !s) return s;
  return check_alignment(workspace.data, sizeof(u64), "workspace", "must be aligned to 8 bytes");
}

}  // namespace furl::detail

FURL_HIDDEN_END

#endif
