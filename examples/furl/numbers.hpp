// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "furl/config.hpp"

namespace furl::cli {

// Exact or nothing: what does not fit the type, or has anything behind it, is no number.

/// Decimal, with or without a minus sign.
std::optional<i64> parse_i64(std::string_view text);

/// Decimal, or hexadecimal after 0x.
std::optional<u64> parse_u64(std::string_view text);

/// Sizes with commas between them, also in brackets or parentheses as Python prints lists and
/// tuples: "2,3", "[2, 3]", "(2,)". Nothing, or an empty pair, is no size at all: rank 0.
std::optional<std::vector<i64>> parse_sizes(std::string_view text);

}  // namespace furl::cli
