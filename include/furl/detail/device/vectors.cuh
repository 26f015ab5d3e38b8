// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE THREAD. Loads and stores of tensors, and of a blob's codes: the one place that decides what
// caches are told of them.

#include "furl/config.hpp"

namespace furl {

/// @{
/// Four elements, without a hint: the next layer reads what is compressed, and what is restored is
/// read at once. `at` is an address in global memory, Offset bytes before the vector; as a constant
/// of the instruction it costs nothing.
template <int Offset>
__device__ __forceinline__ void load_vector(u64 at, u32 (&word)[1]) {
  asm volatile("ld.global.b32 %0, [%1 + %2];" : "=r"(word[0]) : "l"(at), "n"(Offset) : "memory");
}
template <int Offset>
__device__ __forceinline__ void load_vector(u64 at, u32 (&word)[2]) {
  asm volatile("ld.global.v2.b32 {%0, %1}, [%2 + %3];"
               : "=r"(word[0]), "=r"(word[1])
               : "l"(at), "n"(Offset)
               : "memory");
}
template <int Offset>
__device__ __forceinline__ void load_vector(u64 at, float (&word)[4]) {
  asm volatile("ld.global.v4.f32 {%0, %1, %2, %3}, [%4 + %5];"
               : "=f"(word[0]), "=f"(word[1]), "=f"(word[2]), "=f"(word[3])
               : "l"(at), "n"(Offset)
               : "memory");
}
template <int Offset>
__device__ __forceinline__ void store_vector(u64 at, const u32 (&word)[1]) {
  asm volatile("st.global.b32 [%1 + %2], %0;" : : "r"(word[0]), "l"(at), "n"(Offset) : "memory");
}
template <int Offset>
__device__ __forceinline__ void store_vector(u64 at, const u32 (&word)[2]) {
  asm volatile("st.global.v2.b32 [%2 + %3], {%0, %1};"
               :
               : "r"(word[0]), "r"(word[1]), "l"(at), "n"(Offset)
               : "memory");
}
template <int Offset>
__device__ __forceinline__ void store_vector(u64 at, const float (&word)[4]) {
  asm volatile("st.global.v4.f32 [%4 + %5], {%0, %1, %2, %3};"
               :
               : "f"(word[0]), "f"(word[1]), "f"(word[2]), "f"(word[3]), "l"(at), "n"(Offset)
               : "memory");
}

/// @}

/// @{
/// A word of a blob, which leaves a cache before all else: it is not needed before the backward
/// pass, and not after it is read there. `at` and Offset are as for vectors; a generic
/// address in global memory is the same number.
template <int Offset>
__device__ __forceinline__ u32 load_blob_word(u64 at) {
  u32 word;
  asm volatile("ld.global.cs.b32 %0, [%1 + %2];" : "=r"(word) : "l"(at), "n"(Offset) : "memory");
  return word;
}
template <int Offset>
__device__ __forceinline__ void store_blob_word(u64 at, u32 word) {
  asm volatile("st.global.cs.b32 [%1 + %2], %0;" : : "r"(word), "l"(at), "n"(Offset) : "memory");
}
/// @}

/// @{
/// Without inline assembly, so that the compiler may choose the order.
__device__ __forceinline__ void load_cached_vector(const void* from, u32 (&word)[2]) {
  const uint2 v = *static_cast<const uint2*>(from);
  word[0] = v.x;
  word[1] = v.y;
}
__device__ __forceinline__ void load_cached_vector(const void* from, float (&word)[4]) {
  const float4 v = *static_cast<const float4*>(from);
  word[0] = v.x;
  word[1] = v.y;
  word[2] = v.z;
  word[3] = v.w;
}
/// @}

}  // namespace furl
