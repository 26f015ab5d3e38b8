// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE THREAD or ONE WARP. Machine operations that C++ has no name for. Where arithmetic is involved
// it is spelt in PTX without .ftz, so that no flag of the including translation unit changes it.

#include "furl/config.hpp"
#include "furl/detail/number.hpp"

namespace furl {

inline constexpr int warp_threads = 32;        // lanes
inline constexpr u32 full_warp = 0xffffffffu;  // mask of all lanes

/// 0..31.
__device__ __forceinline__ int lane_index() {
  int lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
}

/// The warp's number in its block, for one-dimensional blocks. The shuffle tells the compiler that
/// all lanes have the same: what follows from it goes to uniform registers, and branches on it
/// do not count as divergent.
__device__ __forceinline__ int warp_index() {
  return __shfl_sync(full_warp, int(threadIdx.x) / warp_threads, 0);
}

/// @{
/// Four bytes out of the eight of (b, a): nibble i of `selector` names byte i of the result, 0..3
/// of a, 4..7 of b.
__device__ __forceinline__ u32 select_bytes(u32 a, u32 b, u32 selector) {
  return __byte_perm(a, b, selector);
}

__device__ __forceinline__ u32 select_bytes(float a, float b, u32 selector) {
  u32 r;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(r) : "f"(a), "f"(b), "r"(selector));
  return r;
}
/// @}

/// Four bytes out of the eight of (b, a), as select_bytes has them, but each the highest bit of the
/// chosen byte in all its bits. Pre: every nibble of the selector has 8 added.
__device__ __forceinline__ u32 select_byte_signs(u32 a, u32 b, u32 selector) {
  u32 r;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(selector));
  return r;
}

/// LowFactor * low + HighFactor * high + c of the unsigned halves of a word, with factors of 8
/// bits.
template <int LowFactor, int HighFactor>
__device__ __forceinline__ u32 dot_halves(u32 word, u32 c) {
  constexpr int factors = (LowFactor & 0xff) | (HighFactor & 0xff) << 8;
  u32 r;
  asm("dp2a.lo.u32.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(word), "n"(factors), "r"(c));
  return r;
}

/// Byte `index` of a word as a float, exactly: it becomes the last bits of 2^23.
__device__ __forceinline__ float byte_to_f32(u32 word, u32 index) {
  float r;
  asm("prmt.b32 %0, %1, 0x4b000000, %2;" : "=f"(r) : "r"(word), "r"(0x7440u + index));
  return sub_rn(r, 8388608.0f);
}

/// Half `index` of a word over 256 as a float, exactly: it becomes the last bits of 2^15.
__device__ __forceinline__ float half_to_f32(u32 word, u32 index) {
  float r;
  asm("prmt.b32 %0, %1, 0x47000000, %2;" : "=f"(r) : "r"(word), "r"(0x7410u + 0x22u * index));
  return sub_rn(r, 32768.0f);
}

/// 1 / x, at most a unit in the last place away, for x and 1 / x that are normal: a start for steps
/// that correct it. It flushes subnormal numbers, which those are not.
__device__ __forceinline__ float approximate_reciprocal(float x) {
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}

/// @{
/// chooser < 0 ? b : a, without a branch.
__device__ __forceinline__ u32 choose(int chooser, u32 a, u32 b) {
  u32 r;
  asm("slct.b32.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(chooser));
  return r;
}
__device__ __forceinline__ float choose(int chooser, float a, float b) {
  float r;
  asm("slct.f32.s32 %0, %1, %2, %3;" : "=f"(r) : "f"(a), "f"(b), "r"(chooser));
  return r;
}
__device__ __forceinline__ double choose(int chooser, double a, double b) {
  double r;
  asm("slct.f64.s32 %0, %1, %2, %3;" : "=d"(r) : "d"(a), "d"(b), "r"(chooser));
  return r;
}
/// @}

/// The same value, of which the compiler knows nothing: what is computed from it is computed here,
/// and not kept in registers from an earlier place.
__device__ __forceinline__ u32 forgotten(u32 value) {
  asm volatile("" : "+r"(value));
  return value;
}

/// a * b + c in one instruction, of which the compiler knows nothing either.
__device__ __forceinline__ u64 multiply_add(u32 a, u32 b, u64 c) {
  u64 r;
  asm("mad.wide.u32 %0, %1, %2, %3;" : "=l"(r) : "r"(a), "r"(b), "l"(c));
  return r;
}

// Shuffles of all 32 lanes. The float forms spare the moves between register types.

/// @{
/// The value of the lane whose index differs in the bits of `lanes`.
__device__ __forceinline__ u32 shuffle_xor(u32 value, int lanes) {
  return __shfl_xor_sync(full_warp, value, lanes);
}
__device__ __forceinline__ float shuffle_xor(float value, int lanes) {
  float r;
  asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, 0xffffffff;" : "=f"(r) : "f"(value), "r"(lanes));
  return r;
}
__device__ __forceinline__ double shuffle_xor(double value, int lanes) {
  return __shfl_xor_sync(full_warp, value, lanes);
}
/// @}

/// @{
/// The value of lane `lane`.
__device__ __forceinline__ u32 shuffle(u32 value, int lane) {
  return __shfl_sync(full_warp, value, lane);
}
__device__ __forceinline__ float shuffle(float value, int lane) {
  float r;
  asm volatile("shfl.sync.idx.b32 %0, %1, %2, 31, 0xffffffff;" : "=f"(r) : "f"(value), "r"(lane));
  return r;
}
/// @}

/// The sum over all 32 lanes, in each of them.
__device__ __forceinline__ u32 warp_sum(u32 value) {
#if __CUDA_ARCH__ >= 800
  u32 sum;  // not by __reduce_add_sync, to which Clang 19 gives its arguments in the wrong order
  asm volatile("redux.sync.add.u32 %0, %1, 0xffffffff;" : "=r"(sum) : "r"(value));
  return sum;
#else
  for (int distance = warp_threads / 2; distance > 0; distance /= 2)
    value += shuffle_xor(value, distance);
  return value;
#endif
}

/// @{
/// The smallest and the largest over all 32 lanes, in each of them.
__device__ __forceinline__ int warp_min(int value) {
#if __CUDA_ARCH__ >= 800
  int least;  // in PTX for the same reason
  asm volatile("redux.sync.min.s32 %0, %1, 0xffffffff;" : "=r"(least) : "r"(value));
  return least;
#else
  for (int distance = warp_threads / 2; distance > 0; distance /= 2)
    value = min(value, int(shuffle_xor(u32(value), distance)));
  return value;
#endif
}
__device__ __forceinline__ int warp_max(int value) {
  return ~warp_min(~value);
}
/// @}

/// @{
/// The value of lane `lane` of the caller's own segment of 8 lanes.
__device__ __forceinline__ u32 shuffle_in_eight(u32 value, int lane) {
  return __shfl_sync(full_warp, value, lane, 8);
}
__device__ __forceinline__ float shuffle_in_eight(float value, int lane) {
  float r;  // 0x181f: segments of 8
  asm volatile("shfl.sync.idx.b32 %0, %1, %2, 0x181f, 0xffffffff;"
               : "=f"(r)
               : "f"(value), "r"(lane));
  return r;
}
/// @}

// ---- Minimum and maximum: NaN if either is NaN, -0 below +0, subnormals kept ------------------

#if __CUDA_ARCH__ < 800
/// Order-preserving integer of a float: negative numbers have their magnitude bits inverted.
__device__ __forceinline__ int ordered(u32 bits) {
  return int(bits ^ (u32(int(bits) >> 31) & 0x7fffffffu));
}
#endif

/// The smaller of two floats.
__device__ __forceinline__ float min_nan(float a, float b) {
#if __CUDA_ARCH__ >= 800
  float r;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
#else
  if (is_nan(a) || is_nan(b)) return float_of(f32_nan_bits);
  return ordered(bits_of(a)) < ordered(bits_of(b)) ? a : b;
#endif
}

/// The larger of two floats.
__device__ __forceinline__ float max_nan(float a, float b) {
#if __CUDA_ARCH__ >= 800
  float r;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
#else
  if (is_nan(a) || is_nan(b)) return float_of(f32_nan_bits);
  return ordered(bits_of(a)) > ordered(bits_of(b)) ? a : b;
#endif
}

/// max_nan(x, 0) without a register for 0.
__device__ __forceinline__ float max_nan_zero(float x) {
#if __CUDA_ARCH__ >= 800
  float r;
  asm("max.NaN.f32 %0, %1, 0f00000000;" : "=f"(r) : "f"(x));
  return r;
#else
  return max_nan(x, 0.0f);
#endif
}

/// -1 where x >= threshold, else 0; also for NaN.
__device__ __forceinline__ int minus_at_least(float x, float threshold) {
  int r;
  asm("set.ge.s32.f32 %0, %1, %2;" : "=r"(r) : "f"(x), "f"(threshold));
  return r;
}

}  // namespace furl
