// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Groups that end with lines in the reference (FORMAT.md, A15).

#include <vector>

#include "furl/types.hpp"
#include "support/reference.hpp"

namespace furl::test::reference {

/// The blob of x, of a codec with by_lines.
std::vector<u8> compress_lines(const problem& p, const std::vector<u8>& x, dtype type,
                               random_key key);

/// The values of such a blob.
std::vector<float> values_of_lines(const problem& p, const std::vector<u8>& blob, random_key key);

}  // namespace furl::test::reference
