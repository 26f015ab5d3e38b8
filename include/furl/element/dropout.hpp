// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE THREAD. What decides whether dropout keeps an element (README, A10): 16 random bits, of two
// streams of 8 (README, A6), against the rate.

#include "furl/config.hpp"

namespace furl {

/// Tiles of the second stream of random bits, which the low bytes are of: beyond those of any
/// tensor.
inline constexpr u64 low_byte_tiles = u64(1) << 57;

/// A rate of dropping as it is applied: rounded to a multiple of 2^-16.
struct dropout_rate {
  u32 threshold;  // 16 random bits below it drop an element; at most 65535
  float scale;    // 1 over the part that is kept
};

}  // namespace furl
