// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Element types, and the conversions between their bit patterns (README, A2, A3, A7). All but
// f16_bits_saturated and its kin follow IEEE; every NaN becomes the one NaN of the target type.
// Branch-free on integers, so that loops over them vectorise.

#include "furl/config.hpp"
#include "furl/element/arithmetic.hpp"

namespace furl {

/// The type of an element or of metadata.
enum class dtype : u8 { f32, f16, bf16 };

/// Of one element.
FURL_HD constexpr int size_bytes(dtype type) {
  return type == dtype::f32 ? 4 : 2;
}

#if !defined(__CUDACC_RTC__)
/// "f32", "f16" or "bf16".
FURL_HIDDEN constexpr const char* name(dtype type) {
  return type == dtype::f32 ? "f32" : type == dtype::f16 ? "f16" : "bf16";
}
#endif

/// IEEE binary16 as a bit pattern: layout-compatible with every framework's own type.
struct f16 {
  u16 bits;  // sign, 5 of exponent, 10 of fraction
};
/// bfloat16, likewise.
struct bf16 {
  u16 bits;  // the upper half of an f32
};

/// The dtype of an element type. Specialise it for your own 16-bit types.
template <class T>
struct dtype_of {
  static constexpr bool known = false;  // and true where there is a `value`
};
/// dtype::f32
template <>
struct dtype_of<float> {
  static constexpr bool known = true;         // see value
  static constexpr dtype value = dtype::f32;  // its name
};
/// dtype::f16
template <>
struct dtype_of<f16> {
  static constexpr bool known = true;         // see value
  static constexpr dtype value = dtype::f16;  // its name
};
/// dtype::bf16
template <>
struct dtype_of<bf16> {
  static constexpr bool known = true;          // see value
  static constexpr dtype value = dtype::bf16;  // its name
};

inline constexpr u16 nan_bits_16 = 0x7fffu;  // the only NaN that furl writes, in f16 and in bf16
inline constexpr u32 f32_infinity_bits = 0x7f800000u;  // +infinity

// ---- bf16 -----------------------------------------------------------------------------------

/// Exact, as every bf16 is an f32.
FURL_HD float f32_from_bf16(u16 bits) {
  return float_of(u32(bits) << 16);
}

/// To nearest even. Overflow gives infinity.
FURL_HD u16 bf16_nearest(float x) {
  const u32 bits = bits_of(x);
  const u32 rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return u16(select((bits & 0x7fffffffu) > f32_infinity_bits, nan_bits_16, rounded));
}

/// To nearest even, and back.
FURL_HD float round_to_bf16(float x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  u32 r;  // a pair of bf16 whose upper half is x and whose lower half is 0
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(x), "f"(0.0f));
  return float_of(r);
#else
  return f32_from_bf16(bf16_nearest(x));
#endif
}

/// Towards minus infinity: the largest bf16 that is not above x.
FURL_HD u16 bf16_down(float x) {
  const u32 bits = bits_of(x);
  const u32 away = (bits >> 31) != 0 ? 0xffffu : 0u;  // a negative number grows in magnitude
  return u16(select((bits & 0x7fffffffu) > f32_infinity_bits, nan_bits_16, (bits + away) >> 16));
}

/// Towards plus infinity: the smallest bf16 that is not below x.
FURL_HD u16 bf16_up(float x) {
  const u32 bits = bits_of(x);
  const u32 away = (bits >> 31) != 0 ? 0u : 0xffffu;
  return u16(select((bits & 0x7fffffffu) > f32_infinity_bits, nan_bits_16, (bits + away) >> 16));
}

/// To nearest even; all beyond the largest finite value, infinities too, becomes that value.
FURL_HD u16 bf16_saturated(float x) {
  const u16 nearest = bf16_nearest(x);
  return u16(nearest - u16((nearest & 0x7fffu) == 0x7f80u));
}

// ---- f16 ------------------------------------------------------------------------------------

/// Exact, as every f16 is an f32.
FURL_HD float f32_from_f16(u16 bits) {
  const u32 sign = (u32(bits) & 0x8000u) << 16;
  const u32 magnitude = bits & 0x7fffu;
  // A subnormal is its fraction times 2^-24: exact, and never subnormal in f32.
  const u32 subnormal = bits_of(float(int(magnitude)) * 0x1p-24f);
  const u32 normal = (magnitude << 13) + (112u << 23);
  const u32 special = (magnitude << 13) + (224u << 23);
  const u32 large = select(magnitude < 0x7c00u, normal, special);
  return float_of(sign | select(magnitude < 0x0400u, subnormal, large));
}

/// To nearest even. Overflow gives infinity.
FURL_HD u16 f16_nearest(float x) {
  const u32 bits = bits_of(x);
  const u32 sign = (bits >> 16) & 0x8000u;
  const u32 magnitude = bits & 0x7fffffffu;
  // Below 2^-14 the last place of f16 is 2^-24, that of 0.5 in f32: the addition rounds.
  const u32 subnormal = bits_of(add(float_of(magnitude), 0.5f)) - 0x3f000000u;
  const u32 normal = (magnitude - (112u << 23) + 0x0fffu + ((magnitude >> 13) & 1u)) >> 13;
  const u32 finite = select(magnitude < 0x38800000u, subnormal, normal);
  const u32 result = sign | select(magnitude < 0x477ff000u, finite, 0x7c00u);
  return u16(select(magnitude > f32_infinity_bits, nan_bits_16, result));
}

/// To nearest even; all beyond the largest finite value, infinities too, becomes that value.
FURL_HD u16 f16_saturated(float x) {
  const u16 nearest = f16_nearest(x);
  return u16(nearest - u16((nearest & 0x7fffu) == 0x7c00u));
}

// ---- by type --------------------------------------------------------------------------------

/// @{
/// The value of an element, exactly.
FURL_HD float to_f32(float x) {
  return x;
}
FURL_HD float to_f32(f16 x) {
  return f32_from_f16(x.bits);
}
FURL_HD float to_f32(bf16 x) {
  return f32_from_bf16(x.bits);
}
/// @}

/// @{
/// What decompress writes for the value x (README, A7).
template <class T>
FURL_HD T saturate_to(float x);
template <>
FURL_HD float saturate_to<float>(float x) {
  return canonical(x);
}
template <>
FURL_HD f16 saturate_to<f16>(float x) {
  return {f16_saturated(x)};
}
template <>
FURL_HD bf16 saturate_to<bf16>(float x) {
  return {bf16_saturated(x)};
}
/// @}

/// @{
/// What decompress_add writes for the sum x (README, A7).
template <class T>
FURL_HD T round_to(float x);
template <>
FURL_HD float round_to<float>(float x) {
  return canonical(x);
}
template <>
FURL_HD f16 round_to<f16>(float x) {
  return {f16_nearest(x)};
}
template <>
FURL_HD bf16 round_to<bf16>(float x) {
  return {bf16_nearest(x)};
}
/// @}

#if !defined(__CUDACC_RTC__)
/// Calls function(T{}) with the element type of a dtype.
template <class Function>
FURL_HIDDEN auto with_type(dtype type, const Function& function) {
  switch (type) {
    case dtype::f16:
      return function(f16{});
    case dtype::bf16:
      return function(bf16{});
    default:
      return function(0.0f);
  }
}
#endif

}  // namespace furl
