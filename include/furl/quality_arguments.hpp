// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checks of measure (host/measure.hpp, measure.cuh) beyond those of decompress.

#include "furl/arguments.hpp"
#include "furl/config.hpp"
#include "furl/plan.hpp"
#include "furl/quality.hpp"
#include "furl/status.hpp"
#include "furl/view.hpp"

#if !defined(__CUDACC_RTC__)

FURL_HIDDEN_BEGIN

namespace furl::detail {

inline status check_quality(const plan& p, const_values x, const_bytes blob, span<quality> groups,
                            const quality* total) {
  if (const status s = check_array(groups, p.num_groups(), "groups", "must have one sum per group");
      !s)
    return s;
  if (total == nullptr) return {error::null_pointer, "total", 0, "must not be null"};
  if (reinterpret_cast<std::uintptr_t>(total) % alignof(quality) != 0)
    return {error::misaligned, "total", 0, "must be aligned to its elements"};
  const auto overlaps = [&](const void* data, u64 size) {
    return overlap(data, size, x.data, x.size_bytes()) ||
           overlap(data, size, blob.data, p.size_bytes());
  };
  if (overlaps(groups.data, groups.size_bytes()))
    return {error::overlap, "groups", 0, "must not overlap x or the blob"};
  if (overlaps(total, sizeof *total) ||
      overlap(total, sizeof *total, groups.data, groups.size_bytes()))
    return {error::overlap, "total", 0, "must not overlap x, the blob or the groups"};
  return {};
}

}  // namespace furl::detail

FURL_HIDDEN_END

#endif
