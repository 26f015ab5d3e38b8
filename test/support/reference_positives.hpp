// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Codes of positives of the reference (FORMAT.md, R9).

#include <vector>

#include "furl/types.hpp"
#include "support/reference.hpp"

namespace furl::test::reference {

/// Codes, scales, means and mask of x, into a blob of zeros.
void compress_positives(const problem& p, const std::vector<float>& x, random_key key,
                        std::vector<u8>& blob);

/// Makes of the values of a blob's codes those of its positives, and +0 of all else.
void restore_positives(const problem& p, const std::vector<u8>& blob, std::vector<float>& values);

}  // namespace furl::test::reference
