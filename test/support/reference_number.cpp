// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Numbers of the reference: 16-bit formats through double, and sums by recursion.

#include <cmath>
#include <cstring>
#include <limits>

#include "support/reference.hpp"

namespace furl::test::reference {
namespace {

constexpr u16 canonical_nan = 0x7fff;

int exponent_bias(format16 format) {
  return (1 << (format.exponent_bits - 1)) - 1;
}

/// Largest finite magnitude.
double largest(format16 format) {
  return std::ldexp(2.0 - std::ldexp(1.0, -format.fraction_bits), exponent_bias(format));
}

/// An integral value next to x: x counts last places, so that it fits a double.
double round_integral(double x, direction rounding) {
  const double below = std::floor(x);
  if (below == x || rounding == direction::down) return below;
  if (rounding == direction::up) return below + 1;
  const double rest = x - below;
  if (rest != 0.5) return rest < 0.5 ? below : below + 1;
  return std::fmod(below, 2.0) == 0 ? below : below + 1;
}

u16 pattern_of(double magnitude, format16 format) {
  if (std::isinf(magnitude))
    return static_cast<u16>(((1 << format.exponent_bits) - 1) << format.fraction_bits);
  if (magnitude == 0) return 0;
  int exponent = 0;
  std::frexp(magnitude, &exponent);  // magnitude is in [2^(exponent - 1), 2^exponent)
  const int biased = std::max(exponent - 1 + exponent_bias(format), 1);
  const double places =
      std::ldexp(magnitude, format.fraction_bits - (biased - exponent_bias(format)));
  const int one = 1 << format.fraction_bits;  // the hidden bit; less in a subnormal
  return static_cast<u16>((biased - 1) * one + static_cast<int>(places));
}

}  // namespace

double decode(u16 pattern, format16 format) {
  const int fraction = pattern & ((1 << format.fraction_bits) - 1);
  const int exponent = (pattern & 0x7fff) >> format.fraction_bits;
  const double sign = (pattern & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == (1 << format.exponent_bits) - 1) {
    if (fraction != 0) return std::numeric_limits<double>::quiet_NaN();
    return sign * std::numeric_limits<double>::infinity();
  }
  const int hidden = exponent == 0 ? 0 : 1 << format.fraction_bits;
  const int scale = std::max(exponent, 1) - exponent_bias(format) - format.fraction_bits;
  return sign * std::ldexp(fraction + hidden, scale);
}

u16 encode(double x, format16 format, direction rounding) {
  if (std::isnan(x)) return canonical_nan;
  const u16 sign = std::signbit(x) ? 0x8000 : 0;
  double rounded = x;
  if (x != 0 && std::isfinite(x)) {
    const int exponent = std::max(std::ilogb(x), 1 - exponent_bias(format));
    const double places = std::ldexp(x, format.fraction_bits - exponent);
    rounded = std::ldexp(round_integral(places, rounding), exponent - format.fraction_bits);
    const double limit = largest(format);
    const double infinity = std::numeric_limits<double>::infinity();
    if (rounded > limit) rounded = rounding == direction::down ? limit : infinity;
    if (rounded < -limit) rounded = rounding == direction::up ? -limit : -infinity;
  }
  double magnitude = std::fabs(rounded);
  if (rounding == direction::saturated) magnitude = std::fmin(magnitude, largest(format));
  return static_cast<u16>(sign | pattern_of(magnitude, format));
}

std::vector<float> to_floats(const std::vector<u8>& elements, dtype type) {
  const std::size_t size = type == dtype::f32 ? 4 : 2;
  std::vector<float> out(elements.size() / size);
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (type == dtype::f32) {
      std::memcpy(&out[i], &elements[4 * i], 4);
    } else {
      const auto pattern = static_cast<u16>(elements[2 * i] | elements[2 * i + 1] << 8);
      out[i] = static_cast<float>(decode(pattern, type == dtype::f16 ? f16_format : bf16_format));
    }
  }
  return out;
}

std::vector<u8> from_floats(const std::vector<float>& elements, dtype type) {
  std::vector<u8> out;
  for (const float x : elements) {
    u32 bits = 0;
    if (type == dtype::f32) {
      std::memcpy(&bits, &x, 4);
    } else {
      bits = encode(x, type == dtype::f16 ? f16_format : bf16_format, direction::nearest);
    }
    for (int k = 0; k < (type == dtype::f32 ? 4 : 2); ++k)
      out.push_back(static_cast<u8>(bits >> (8 * k)));
  }
  return out;
}

float tree_sum(std::vector<float> terms) {
  std::size_t size = 1;
  while (size < terms.size()) size *= 2;
  terms.resize(size, 0.0f);
  if (size == 1) return terms[0];
  const auto middle = terms.begin() + static_cast<std::ptrdiff_t>(size / 2);
  const volatile float left = tree_sum({terms.begin(), middle});
  const volatile float right = tree_sum({middle, terms.end()});
  return left + right;
}

}  // namespace furl::test::reference
