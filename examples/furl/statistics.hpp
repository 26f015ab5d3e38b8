// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "furl/plan.hpp"
#include "furl/types.hpp"

namespace furl::cli {

/// What a codec did to a tensor: a is what x became. Poisoned groups (which hold a NaN or infinity,
/// or leave the range of the metadata) decode to NaN and are counted, but have no share in the
/// other figures. A figure that does not exist is NaN.
struct statistics {
  double root_mean_square_error = 0;
  double largest_error = 0;
  double bias = 0;            // mean of a - x
  double poisoned_share = 0;  // of the groups, or of the blocks of rotated codes
  double fidelity = 0;        // 1 - |x - a|^2 / |x|^2
};

/// The scales of rotated codes, one for each block of 256 elements.
struct scales {
  i64 blocks = 0;      // that have elements
  i64 zeros = 0;       // blocks that decode to zeros
  i64 poisoned = 0;    // blocks that decode to NaN
  float smallest = 0;  // of the scales of all others; 0 if there are none
  float largest = 0;
};

/// Pre: the plan's codes are rotated, and compress wrote the blob.
scales scales_of(const plan& p, const u8* blob);

/// x : the input; a : decompressed to f32. Both of p.num_elements() elements.
statistics compare(const plan& p, const_values x, const float* a);

}  // namespace furl::cli
