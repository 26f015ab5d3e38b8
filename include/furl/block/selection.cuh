// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE THREAD. What codebooks, masks and dropout do to single elements, in as few instructions as
// there can be, which compilers do not find by themselves.

#include "furl/config.hpp"

FURL_HIDDEN_BEGIN

namespace furl {

/// a * Factor + c. Written in PTX since compilers make two operations of it.
template <int Factor>
__device__ __forceinline__ int multiply_add(int a, int c) {
  int r;
  asm("mad.lo.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "n"(Factor), "r"(c));
  return r;
}

/// (a & Mask) | c
template <u32 Mask>
__device__ __forceinline__ u32 and_or(u32 a, u32 c) {
  u32 r;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(r) : "r"(a), "n"(Mask), "r"(c));
  return r;
}

/// Bits of b where the mask is set, of a where it is not.
__device__ __forceinline__ u32 choose_bits(u32 mask, u32 a, u32 b) {
  u32 r;
  asm("lop3.b32 %0, %1, %2, %3, 0xac;" : "=r"(r) : "r"(mask), "r"(a), "r"(b));
  return r;
}

/// x where all bits of the mask are set, +0 where none is.
__device__ __forceinline__ float keep_by_mask(float x, u32 mask) {
  float r;
  asm("and.b32 %0, %1, %2;" : "=f"(r) : "f"(x), "r"(mask));
  return r;
}

/// Of four bytes that nibbles of Selector name, 8 for the lowest of the word: ff where the byte's
/// highest bit is set, else 0.
template <u32 Selector>
__device__ __forceinline__ u32 replicate_signs(u32 word) {
  u32 r;
  asm("prmt.b32 %0, %1, 0, %2;" : "=r"(r) : "r"(word), "n"(Selector));
  return r;
}

/// x where bit Index of a word is set, else +0.
template <int Index>
__device__ __forceinline__ float keep_by_bit(float x, u32 word) {
  float r;
  asm("{\n\t.reg .b32 mask;\n\t"
      "bfe.s32 mask, %2, %3, 1;\n\t"
      "and.b32 %0, %1, mask;\n\t}"
      : "=f"(r)
      : "f"(x), "r"(word), "n"(Index));
  return r;
}

/// product where factor is not 0, else +0.
__device__ __forceinline__ float keep_by_factor(float product, float factor) {
  float r;
  asm("{\n\t.reg .pred kept;\n\t"
      "setp.neu.f32 kept, %2, 0f00000000;\n\t"
      "selp.f32 %0, %1, 0f00000000, kept;\n\t}"
      : "=f"(r)
      : "f"(product), "f"(factor));
  return r;
}

/// x, or what it exceeds of lo..hi; lo for NaN.
__device__ __forceinline__ float clamp(float x, float lo, float hi) {
  float r;
  asm("max.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(lo));
  asm("min.f32 %0, %0, %1;" : "+f"(r) : "f"(hi));
  return r;
}

}  // namespace furl

FURL_HIDDEN_END
