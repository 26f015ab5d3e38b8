// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE THREAD. The codes of elements, in the order in which they are made:
//   - the 8 random bits of an element (FORMAT.md, A6), by Philox4x32, the counter-based generator
//     of Random123 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): they
//     depend on seed, offset and the element's index alone;
//   - affine quantisation of a group (A3 to A5, A7; ActNN, Chen et al., ICML 2021, section 4), with
//     the metadata rounded first and the codes made from the rounded pair, so that narrow metadata
//     adds no bias;
//   - packing of columns: the 8 codes of a column become `Bits` bytes, row 0 in the lowest bits.
//     Four neighbouring columns are handled at once, one per byte of a word, so that every
//     operation serves four codes and all numbers of bits cost about the same.
//
// ONE THREAD. Ranges that are given to compress in place of measured ones (given_ranges in
// plan.hpp): which of them elements have.

#include "furl/config.hpp"
#include "furl/detail/cells.hpp"
#include "furl/detail/number.hpp"
#include "furl/types.hpp"

#if !defined(__CUDACC_RTC__)
#include "furl/plan.hpp"
#endif

namespace furl {

/// A counter, or the four random words that come from it.
struct philox_block {
  u32 word[4];  // the least significant first
};

/// @{
/// Of Philox4x32 (Salmon et al., SC 2011).
inline constexpr int philox_rounds = 7;
inline constexpr u32 philox_multiplier_0 = 0xD2511F53u;
inline constexpr u32 philox_multiplier_1 = 0xCD9E8D57u;
inline constexpr u32 philox_weyl_0 = 0x9E3779B9u;
inline constexpr u32 philox_weyl_1 = 0xBB67AE85u;
/// @}

/// A product of two words.
struct wide_product {
  u32 low;   // the lower 32 bits
  u32 high;  // the upper ones
};

/// a * b.
FURL_HD wide_product multiply_wide(u32 a, u32 b) {
#if defined(__CUDA_ARCH__)
  // Without this, compilers keep both halves in 64-bit registers and mask them.
  wide_product p;
  asm("{\n\t.reg .b64 product;\n\t"
      "mul.wide.u32 product, %2, %3;\n\t"
      "mov.b64 {%0, %1}, product;\n\t}"
      : "=r"(p.low), "=r"(p.high)
      : "r"(a), "r"(b));
  return p;
#else
  const u64 product = u64(a) * b;
  return {u32(product), u32(product >> 32)};
#endif
}

/// a ^ b ^ c.
FURL_HD u32 xor_of_three(u32 a, u32 b, u32 c) {
#if defined(__CUDA_ARCH__)
  u32 r;
  asm("lop3.b32 %0, %1, %2, %3, 0x96;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
  return r;
#else
  return a ^ b ^ c;
#endif
}

/// One round of Philox4x32, with the keys of that round.
FURL_HD philox_block philox_round(philox_block c, u32 key_0, u32 key_1) {
  const wide_product p0 = multiply_wide(philox_multiplier_0, c.word[0]);
  const wide_product p1 = multiply_wide(philox_multiplier_1, c.word[2]);
  return {{xor_of_three(p1.high, c.word[1], key_0), p1.low, xor_of_three(p0.high, c.word[3], key_1),
           p0.low}};
}

/// The random words of a counter, under a key.
template <int Rounds = philox_rounds>
FURL_HD philox_block philox4x32(philox_block counter, u32 key_0, u32 key_1) {
  for (int round = 0; round < Rounds; ++round) {
    counter = philox_round(counter, key_0, key_1);
    key_0 += philox_weyl_0;
    key_1 += philox_weyl_1;
  }
  return counter;
}

/// The counter block of four columns of rows 4 * half .. 4 * half + 3 of a tile. Word j of its
/// output serves row 4 * half + j.
/// Pre: half is 0 or 1; column_quad (column / 4) is 0..31.
FURL_HD philox_block random_words(u64 tile, u32 half, u32 column_quad, random_key key) {
  const u64 m = 64u * tile + 32u * half + column_quad;
  return philox4x32({{u32(m), u32(m >> 32), u32(key.offset), u32(key.offset >> 32)}}, u32(key.seed),
                    u32(key.seed >> 32));
}

/// The 8 random bits of the element at `index`, from the start of the tensor.
FURL_HD u32 random_bits(u64 index, random_key key) {
  const u32 row = u32(index % tile_elements) / row_elements;
  const u32 column = u32(index % row_elements);
  const philox_block block = random_words(index / tile_elements, row / 4, column / 4, key);
  // Columns 4l .. 4l+3 take bytes 0, 2, 1, 3, so that one mask and one shift serve two at once.
  const u32 byte = ((column & 1u) << 1) | ((column >> 1) & 1u);
  return (block.word[row & 3u] >> (8u * byte)) & 0xffu;
}

/// A byte repeated in all four columns of a word.
FURL_HD constexpr u32 in_each_byte(u32 byte) {
  return byte * 0x01010101u;
}

/// A mask of `count` bits, 0..31.
FURL_HD constexpr u32 low_bits(int count) {
  return (1u << count) - 1u;
}

inline constexpr float smallest_normal = 0x1p-126f;  // of f32
inline constexpr u32 nearest_bits = 128;             // in place of random bits: half-way goes up

/// How a group is coded. lo and step are exact in the metadata type and are what is stored.
struct group_params {
  float lo;       // value of code 0
  float step;     // between codes
  float inverse;  // 1 / step
  bool coded;     // false: the group is flat (step is 0) or poisoned (both NaN): all codes are 0
};

/// Parameters of a group whose elements range over lo..hi, NaN if any is NaN.
/// Pre: meta is bf16 or f32; bits is 1..8.
FURL_HD group_params make_group(float lo, float hi, int bits, dtype meta) {
  const float levels = float(int(low_bits(bits)));
  lo = add_rn(lo, 0.0f);  // -0 becomes +0
  hi = add_rn(hi, 0.0f);
  if (meta == dtype::bf16) lo = f32_from_bf16(bf16_down(lo));
  float step = div_rn(sub_rn(hi, lo), levels);
  if (meta == dtype::bf16) step = f32_from_bf16(bf16_up(step));
  if (!is_finite(fma_rn(levels, step, lo))) {
    const float nan = float_of(f32_nan_bits);
    return {nan, nan, nan, false};
  }
  // A step is never negative, so its bits order as its value, subnormals included.
  if (bits_of(step) < bits_of(smallest_normal)) return {lo, 0.0f, 0.0f, false};
  return {lo, step, div_rn(1.0f, step), true};
}

/// The code of r in 8.8 fixed point, at most 256 * (2^bits - 1). The sum's ulp is 1/256, so its
/// low 16 bits are that number.
/// Pre: lo <= r <= hi of a coded group.
FURL_HD u32 fixed_point(float r, float lo, float inverse) {
  return bits_of(fma_rn(sub_rn(r, lo), inverse, 32768.0f)) & 0xffffu;
}

/// Rounds a fixed-point code up or down: `u` is 8 random bits (unbiased), or nearest_bits.
FURL_HD u32 round_code(u32 fixed, u32 u) {
  return (fixed + u) >> 8;
}

/// The value of a code, before any LFC is added.
FURL_HD float dequantize(u32 code, float step, float lo) {
  return fma_rn(float(int(code)), step, lo);
}

/// The same with subtractive dither (FORMAT.md, A12): the middle of the fixed-point codes that
/// become this code with the 8 random bits u.
FURL_HD float dequantize_dithered(u32 code, u32 u, float step, float lo) {
  const int fixed = int(512 * code + 255) - int(2 * u);
  return fma_rn(mul_rn(float(fixed), 0x1p-9f), step, lo);
}

/// A gradient times a level of a codebook (FORMAT.md, A9). A level of 0 drops it, whatever it is.
/// Without a branch: half of a mask's would be mispredicted.
FURL_HD float scale_by_level(float g, float level) {
  return float_of(select_bits(is_zero(level), 0u, bits_of(mul_rn(g, level))));
}

/// Bit pattern of lo or step as stored in bf16: exact.
FURL_HD u16 stored_bf16(float x) {
  return u16(bits_of(x) >> 16);
}

/// Packs four columns. codes[r] holds row r's code of column c in byte c; byte k of the packed
/// column c goes to byte c of packed[k].
/// Pre: every code is below 2^Bits.
template <int Bits>
FURL_HD void pack_columns(const u32 (&codes)[rows_per_tile], u32 (&packed)[Bits]) {
  static_assert(Bits >= 1 && Bits <= max_bits, "codes have 1 to 8 bits");
  FURL_UNROLL
  for (int k = 0; k < Bits; ++k) packed[k] = 0;
  if constexpr (8 % Bits == 0) {  // a multiply-add for each row
    FURL_UNROLL
    for (int row = rows_per_tile - 1; row >= 0; --row) {
      u32& word = packed[row * Bits / 8];
      word = (word << Bits) + codes[row];
    }
  } else {
    FURL_UNROLL
    for (int row = 0; row < rows_per_tile; ++row) {
      const int byte = row * Bits / 8;
      const int shift = row * Bits % 8;
      const int fitting = 8 - shift;  // bits of the code that the byte has room for
      if (Bits <= fitting) {
        packed[byte] |= codes[row] << shift;
      } else {
        packed[byte] |= (codes[row] & in_each_byte(low_bits(fitting))) << shift;
        packed[byte + 1] |= (codes[row] >> fitting) & in_each_byte(low_bits(Bits - fitting));
      }
    }
  }
}

/// The inverse of pack_columns.
template <int Bits>
FURL_HD void unpack_columns(const u32 (&packed)[Bits], u32 (&codes)[rows_per_tile]) {
  static_assert(Bits >= 1 && Bits <= max_bits, "codes have 1 to 8 bits");
  FURL_UNROLL
  for (int row = 0; row < rows_per_tile; ++row) {
    const int byte = row * Bits / 8;
    const int shift = row * Bits % 8;
    const int fitting = 8 - shift;
    if (Bits <= fitting) {
      codes[row] = (packed[byte] >> shift) & in_each_byte(low_bits(Bits));
    } else {
      codes[row] = (packed[byte] >> shift) & in_each_byte(low_bits(fitting));
      codes[row] |= (packed[byte + 1] & in_each_byte(low_bits(Bits - fitting))) << fitting;
    }
  }
}

/// Whether lo and hi are finite and lo <= hi, in any floating-point mode.
FURL_HD bool is_range(float lo, float hi) {
  const bool zeros = ((bits_of(lo) | bits_of(hi)) & 0x7fffffffu) == 0;
  return is_finite(lo) && is_finite(hi) && (zeros || ordered(lo) <= ordered(hi));
}

/// The range of symmetric scaling by the largest magnitude, with codes of 2..8 bits: -largest to
/// largest and a step more below, so that zero is code 2^(bits - 1), exactly. The step is rounded
/// up to bf16, so that both types of metadata hold it, and is at most the largest one with which
/// the range's width is finite: elements beyond it become its ends.
FURL_HD range symmetric_range(float largest, int bits) {
  const int half = 1 << (bits - 1);
  const float widest = f32_from_bf16(bf16_down(div_rn(0x1.fffffep127f, float(2 * half - 1))));
  float step = f32_from_bf16(bf16_up(div_rn(largest, float(half - 1))));
  if (is_finite(largest) && bits_of(step) > bits_of(widest)) step = widest;
  return {fma_rn(step, float(-half), 0.0f), fma_rn(step, float(half - 1), 0.0f)};
}

/// Element i has pair i / run % num_pairs: runs of elements that share one follow each other.
struct range_map {
  const float* pairs = nullptr;  // lo, hi, lo, hi, ...; null: ranges are measured
  divisor64 run;                 // by the elements of a run
  divisor64 num_pairs;           // by the number of pairs

  range_map() = default;
#if !defined(__CUDACC_RTC__)
  /// Pre: the plan has elements, and the ranges fit it.
  FURL_HIDDEN range_map(const plan& p, const given_ranges& given) {
    if (given.scope == range_scope::measured) return;
    i64 elements = given.scope == range_scope::group ? p.codec().group : 1;
    if (given.scope == range_scope::tensor) elements = p.num_elements();
    if (given.scope == range_scope::channel)
      for (int d = given.dimension + 1; d < p.shape().rank; ++d) elements *= p.shape()[d];
    pairs = given.pairs;
    run = divisor64(u64(elements));
    num_pairs = divisor64(u64(given.num_pairs));
  }
#endif

  /// The smallest range that holds those of elements first..last. Both ends are NaN if one of them
  /// is not finite or not in order.
  FURL_HD range hull(i64 first, i64 last) const {
    const u64 first_run = run.divide(u64(first));
    const u64 runs = run.divide(u64(last)) - first_run + 1;
    u64 pair = first_run - num_pairs.divide(first_run) * num_pairs.value;
    int lo = ordered(float_of(f32_infinity_bits));
    int hi = ordered(float_of(f32_infinity_bits | 0x80000000u));
    bool valid = true;
    for (u64 left = runs < num_pairs.value ? runs : num_pairs.value; left > 0; --left) {
      const float a = pairs[2 * pair];
      const float b = pairs[2 * pair + 1];
      valid = valid && is_range(a, b);
      lo = ordered(a) < lo ? ordered(a) : lo;
      hi = ordered(b) > hi ? ordered(b) : hi;
      pair = pair + 1 == num_pairs.value ? 0 : pair + 1;
    }
    const float nan = float_of(f32_nan_bits);
    if (!valid) return {nan, nan};
    return {from_ordered(lo), from_ordered(hi)};
  }
};

}  // namespace furl
