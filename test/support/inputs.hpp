// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Inputs that are the same on every machine: std::mt19937's words are fixed by the standard, its
// distributions are not.

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "furl/config.hpp"

namespace furl::test {

inline constexpr float nan = std::numeric_limits<float>::quiet_NaN();
inline constexpr float infinity = std::numeric_limits<float>::infinity();

inline std::vector<u8> bytes_of(const std::vector<float>& x) {
  std::vector<u8> out(4 * x.size());
  if (!x.empty()) std::memcpy(out.data(), x.data(), out.size());
  return out;
}

inline std::vector<float> floats_of(const std::vector<u8>& bytes) {
  std::vector<float> out(bytes.size() / 4);
  if (!out.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

/// Uniform in [-1, 1), multiples of 2^-23.
inline std::vector<float> uniform_floats(std::size_t count, u32 seed) {
  std::mt19937 random(seed);
  std::vector<float> out(count);
  for (float& x : out)
    x = static_cast<float>(static_cast<int>(random() >> 8) - (1 << 23)) * 0x1p-23f;
  return out;
}

/// About normal, with mean 0 and variance 1: the sum of twelve uniform numbers.
inline std::vector<float> normal_floats(std::size_t count, u32 seed) {
  std::mt19937 random(seed);
  std::vector<float> out(count);
  for (float& x : out) {
    i64 sum = 0;
    for (int k = 0; k < 12; ++k) sum += random() >> 8;
    x = static_cast<float>(static_cast<double>(sum) * 0x1p-24 - 6.0);
  }
  return out;
}

inline std::vector<u8> random_bytes(std::size_t count, u32 seed) {
  std::mt19937 random(seed);
  std::vector<u8> out(count);
  for (u8& b : out) b = static_cast<u8>(random() >> 24);
  return out;
}

}  // namespace furl::test
