// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Normalised elements of the reference (FORMAT.md, A14).

#include <vector>

#include "support/reference.hpp"

namespace furl::test::reference {

/// What is coded in place of x: the same without statistics.
std::vector<float> normalised(const problem& p, const std::vector<float>& x);

/// What the value v of element i stands for: the same without statistics.
float denormalised(const problem& p, i64 i, float v);

}  // namespace furl::test::reference
