// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Rotated codes of the reference (FORMAT.md, R0 to R8).

#include <vector>

#include "furl/types.hpp"
#include "support/reference.hpp"

namespace furl::test::reference {

/// Where the scale of a block is.
u64 scale_position(const problem& p, i64 tile, int block);

/// Codes and scales of residuals, into a blob of zeros.
void compress_rotated(const problem& p, const std::vector<float>& r, random_key key,
                      std::vector<u8>& blob);

/// Values of a blob before the means are added. A NaN is any.
std::vector<float> rotated_values_of(const problem& p, const std::vector<u8>& blob, random_key key);

}  // namespace furl::test::reference
