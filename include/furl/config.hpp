// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The version of the library, and that of the format (FORMAT.md), which changes less often.

#define FURL_VERSION_MAJOR 0
#define FURL_VERSION_MINOR 2
#define FURL_VERSION_PATCH 0
#define FURL_VERSION (FURL_VERSION_MAJOR * 10000 + FURL_VERSION_MINOR * 100 + FURL_VERSION_PATCH)

// What cannot work is refused here, in words. The arithmetic of the format is exact, so that this
// goes for flags that would silently change it.
#if defined(_MSVC_LANG) ? _MSVC_LANG < 201703L : __cplusplus < 201703L
#error "furl needs C++17: build with -std=c++17 or later (MSVC: /std:c++17)"
#define FURL_REFUSED
#endif
#if defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC_RTC__) && __GNUC__ < 9
#error "furl needs g++ 9 or later, the first with all of C++17"
#define FURL_REFUSED
#endif
#if (defined(__CUDACC_VER_MAJOR__) && __CUDACC_VER_MAJOR__ < 12) || \
    (defined(CUDART_VERSION) && CUDART_VERSION < 12000)
#error "furl needs CUDA 12.0 or later"
#define FURL_REFUSED
#endif
#if !defined(__CUDA_ARCH__)
#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__ != 0)
#error "furl needs IEEE arithmetic: build without -ffast-math and -ffinite-math-only"
#define FURL_REFUSED
#endif
#if defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__) || defined(__NO_SIGNED_ZEROS__)
#error \
    "furl needs IEEE arithmetic: build without -fassociative-math, -freciprocal-math, -fno-signed-zeros"
#define FURL_REFUSED
#endif
#if defined(_M_FP_FAST)
#error "furl needs IEEE arithmetic: build without /fp:fast"
#define FURL_REFUSED
#endif
#if defined(__FLT_EVAL_METHOD__) && __FLT_EVAL_METHOD__ != 0 && __FLT_EVAL_METHOD__ != 16
#error "furl needs float expressions to be evaluated in binary32 (on x86: -mfpmath=sse)"
#define FURL_REFUSED
#endif
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "furl's format is little-endian and its code needs a little-endian machine"
#define FURL_REFUSED
#endif
#endif
#if defined(FURL_REFUSED)
// Compilers go on after an #error, through dozens that follow from it, but not without a file.
#include "furl/see the error above"
#endif

// FURL_HD marks a function that runs on the host and on the device from one body.
#if defined(__CUDACC__)
#define FURL_HD __host__ __device__ __forceinline__
#elif defined(__GNUC__)
#define FURL_HD inline __attribute__((always_inline))
#else
#define FURL_HD inline
#endif

// FURL_UNROLL unrolls the loop that follows, whose trip count is a small constant. (nvcc's two
// passes for the host agree on no spelling.)
#if defined(__CUDA_ARCH__) || defined(__clang__)
#define FURL_UNROLL _Pragma("unroll")
#elif defined(__GNUC__) && !defined(__CUDACC__)
#define FURL_UNROLL _Pragma("GCC unroll 8")
#else
#define FURL_UNROLL
#endif

// FURL_NO_UNROLL keeps a loop of few iterations as it is on the device.
#if defined(__CUDA_ARCH__)
#define FURL_NO_UNROLL _Pragma("unroll 1")
#else
#define FURL_NO_UNROLL
#endif

// FURL_FORCE_INLINE marks short functions of the host whose arguments must stay in registers.
#if defined(__GNUC__)
#define FURL_FORCE_INLINE inline __attribute__((always_inline))
#else
#define FURL_FORCE_INLINE inline
#endif

// FURL_GRID_CONSTANT marks a kernel's parameter that is indexed at run time: it is read where it
// is.
#if defined(__CUDACC__) && !defined(__clang__)
#define FURL_GRID_CONSTANT __grid_constant__
#else
#define FURL_GRID_CONSTANT
#endif

// FURL_RTC_DEVICE marks a function of the host that headers for kernels come with: run-time
// compilation refuses functions of the host, so there it is one of the device.
#if defined(__CUDACC_RTC__)
#define FURL_RTC_DEVICE __device__
#else
#define FURL_RTC_DEVICE
#endif

// Symbols. Two shared libraries of a process may hold furl in different versions, or built for
// different machines, and the loader must not give one the functions of the other. So all that
// computes or launches is hidden: the function marked FURL_HIDDEN, or what stands between
// FURL_HIDDEN_BEGIN and FURL_HIDDEN_END. Types that callers hold cannot be hidden, since theirs
// would have to be too; they are in an inline namespace that is named after the version.
#if defined(__GNUC__) && !defined(__CUDACC_RTC__)
#define FURL_HIDDEN __attribute__((visibility("hidden")))
#define FURL_HIDDEN_BEGIN _Pragma("GCC visibility push(hidden)")
#define FURL_HIDDEN_END _Pragma("GCC visibility pop")
#else
#define FURL_HIDDEN FURL_RTC_DEVICE
#define FURL_HIDDEN_BEGIN
#define FURL_HIDDEN_END
#endif

/// Compression primitives for training activations: codecs, plans, and calls for device memory.
namespace furl {

/// @{
/// Fixed-width integers without a header, so that run-time compilation (NVRTC) needs none.
using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
using i64 = long long;
/// @}

inline constexpr int format_version = 2;  // of blobs and of serialised plans

inline constexpr int tile_elements = 1024;              // consecutive elements coded together
inline constexpr int row_elements = 128;                // consecutive elements of a tile
inline constexpr int rows_per_tile = 8;                 // elements in a column
inline constexpr int words_per_row = row_elements / 4;  // of random bits
inline constexpr int block_elements = 256;              // that a rotation mixes: 8 x 32 of a tile
inline constexpr int blocks_per_tile = 4;               // of rotated codes
inline constexpr int tiles_per_chunk = 32;              // of a mixed plan, found together
inline constexpr int max_bits = 8;                      // of a code
inline constexpr int max_rotated_bits = 4;              // of a rotated code
inline constexpr int max_rank = 8;                      // of a shape
inline constexpr int max_window = 64;                   // elements along one dimension of a cell
inline constexpr int max_cell_elements = 4096;          // of the tensor, in a cell
inline constexpr int blob_alignment = 16;               // bytes, of parts, and of device blobs

}  // namespace furl
