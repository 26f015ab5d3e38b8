// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the baselines share.

#include "furl/config.hpp"

namespace furl::bench {

/// `Count` adjacent bytes, for one load or store.
template <int Count>
struct alignas(Count) byte_vector {
  u8 v[Count];
};

template <int Bits>
struct bit_width {
  static constexpr int value = Bits;
};

/// Calls function with the bit_width of `bits`. Pre: bits is 1, 2, 4 or 8.
template <class Function>
void with_bits(int bits, const Function& function) {
  switch (bits) {
    case 1:
      return function(bit_width<1>{});
    case 2:
      return function(bit_width<2>{});
    case 4:
      return function(bit_width<4>{});
    default:
      return function(bit_width<8>{});
  }
}

}  // namespace furl::bench
