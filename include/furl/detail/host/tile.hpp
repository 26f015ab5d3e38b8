// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// One tile of 1024 elements on the host: loops of fixed trip count over functions for one thread,
// which compilers vectorise. All scratch is the caller's, and stays in the L1 cache.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "furl/config.hpp"
#include "furl/detail/number.hpp"
#include "furl/detail/quantize.hpp"
#include "furl/plan.hpp"
#include "furl/types.hpp"

FURL_HIDDEN_BEGIN

namespace furl::host::detail {

/// A tile's codes, or its random bits: one byte per element, in order.
struct alignas(64) tile_bytes {
  u32 word[rows_per_tile * words_per_row];
};

/// Elements of a tile: 1024, or fewer in the last.
inline int elements_in_tile(const plan& p, i64 tile) {
  return int(::std::min<i64>(tile_elements, p.num_codes() - tile * tile_elements));
}

/// Smallest and largest of `count` elements. If any is NaN, then so is one of the two.
/// Pre: count is a positive multiple of 32.
inline range min_max(const float* x, int count) {
  int lo = ordered(x[0]);
  int hi = lo;
  for (int i = 0; i < count; ++i) {
    const int key = ordered(x[i]);
    lo = key < lo ? key : lo;
    hi = key > hi ? key : hi;
  }
  return {from_ordered(lo), from_ordered(hi)};
}

/// Elements beyond the ends of a range become these. Pre: none is NaN; count is a multiple of 32.
inline void saturate(const float* __restrict x, int count, range ends, float* __restrict out) {
  const int lo = ordered(ends.lo);
  const int hi = ordered(ends.hi);
  for (int j = 0; j < count; j += 32)
    for (int i = j; i < j + 32; ++i) {
      const int key = ordered(x[i]);
      out[i] = from_ordered(key < lo ? lo : key > hi ? hi : key);
    }
}

/// Codes of a group of `count` elements. Pre: count is a multiple of 32.
inline void quantize_group(const float* __restrict x, int count, const group_params& group,
                           const u8* __restrict u, u8* __restrict codes) {
  if (!group.coded) {
    ::std::memset(codes, 0, static_cast<::std::size_t>(count));
    return;
  }
  const float lo = group.lo;
  const float inverse = group.inverse;
  for (int j = 0; j < count; j += 32)
    for (int i = j; i < j + 32; ++i)
      codes[i] = u8(round_code(fixed_point(x[i], lo, inverse), u[i]));
}

/// Values of a group of `count` codes. Pre: count is a multiple of 32.
inline void dequantize_group(const u8* __restrict codes, int count, float lo, float step,
                             float* __restrict v) {
  for (int j = 0; j < count; j += 32)
    for (int i = j; i < j + 32; ++i) v[i] = dequantize(codes[i], step, lo);
  if (!is_finite(lo) || !is_finite(step))
    for (int i = 0; i < count; ++i) v[i] = canonical(v[i]);
}

inline float magnitude(float x) {
  return float_of(bits_of(x) & 0x7fffffffu);
}

/// Values of dithered codes with the random bits u, likewise.
inline void dequantize_group(const u8* __restrict codes, const u8* __restrict u, int count,
                             float lo, float step, float* __restrict v) {
  for (int j = 0; j < count; j += 32)
    for (int i = j; i < j + 32; ++i)
      v[i] = canonical(dequantize_dithered(codes[i], u[i], step, lo));
}

/// Values as without dither, plus the LFC of each. Every NaN is the canonical one.
inline void dequantize_group(const u8* __restrict codes, int count, float lo, float step,
                             const float* __restrict lfc, float* __restrict v) {
  for (int j = 0; j < count; j += 32)
    for (int i = j; i < j + 32; ++i)
      v[i] = canonical(add_rn(dequantize(codes[i], step, lo), lfc[i]));
}

template <int Bits>
void pack_tile(const tile_bytes& codes, u32* out) {
  for (int i = 0; i < words_per_row; ++i) {
    u32 column[rows_per_tile];
    u32 packed[Bits];
    for (int row = 0; row < rows_per_tile; ++row) column[row] = codes.word[row * words_per_row + i];
    pack_columns<Bits>(column, packed);
    for (int k = 0; k < Bits; ++k) out[k * words_per_row + i] = packed[k];
  }
}

template <int Bits>
void unpack_tile(const u32* in, tile_bytes& codes) {
  for (int i = 0; i < words_per_row; ++i) {
    u32 column[rows_per_tile];
    u32 packed[Bits];
    for (int k = 0; k < Bits; ++k) packed[k] = in[k * words_per_row + i];
    unpack_columns<Bits>(packed, column);
    for (int row = 0; row < rows_per_tile; ++row) codes.word[row * words_per_row + i] = column[row];
  }
}

/// Calls function(std::integral_constant<int, bits>) for 1..8 bits.
template <class Function>
void with_bits(int bits, const Function& function) {
  using ::std::integral_constant;
  switch (bits) {
    case 1:
      return function(integral_constant<int, 1>{});
    case 2:
      return function(integral_constant<int, 2>{});
    case 3:
      return function(integral_constant<int, 3>{});
    case 4:
      return function(integral_constant<int, 4>{});
    case 5:
      return function(integral_constant<int, 5>{});
    case 6:
      return function(integral_constant<int, 6>{});
    case 7:
      return function(integral_constant<int, 7>{});
    default:
      return function(integral_constant<int, 8>{});
  }
}

/// Writes the 128 * bits bytes of a tile's codes.
inline void store_codes(const tile_bytes& codes, int bits, u8* out) {
  with_bits(bits, [&](auto constant) {
    alignas(64) u32 packed[constant() * words_per_row];
    pack_tile<constant()>(codes, packed);
    ::std::memcpy(out, packed, sizeof packed);
  });
}

/// Reads the 128 * bits bytes of a tile's codes.
inline void load_codes(const u8* in, int bits, tile_bytes& codes) {
  with_bits(bits, [&](auto constant) {
    alignas(64) u32 packed[constant() * words_per_row];
    ::std::memcpy(packed, in, sizeof packed);
    unpack_tile<constant()>(packed, codes);
  });
}

/// Element `index` of an array at any alignment.
template <class T>
T load_at(const void* data, i64 index) {
  T value;
  ::std::memcpy(&value, static_cast<const u8*>(data) + index * i64(sizeof(T)), sizeof(T));
  return value;
}
template <class T>
void store_at(void* data, i64 index, T value) {
  ::std::memcpy(static_cast<u8*>(data) + index * i64(sizeof(T)), &value, sizeof(T));
}

/// Elements first .. first + count - 1 of an array at any alignment, as floats.
template <class T>
void load_floats(const void* data, i64 first, int count, float* __restrict out) {
  const u8* __restrict from = static_cast<const u8*>(data) + first * i64(sizeof(T));
  if constexpr (::std::is_same_v<T, float>) {
    ::std::memcpy(out, from, static_cast<::std::size_t>(count) * sizeof(float));
  } else {
    for (int i = 0; i < count; ++i) out[i] = to_f32(load_at<T>(from, i));
  }
}

/// Asks for the next `size` bytes of an array ahead of their use. A tile of f32 is a page, at whose
/// end hardware prefetchers stop.
inline void prefetch(const void* data, i64 size) {
#if defined(__GNUC__)
  constexpr int cache_line_bytes = 64;
  for (i64 at = 0; at < size; at += cache_line_bytes)
    __builtin_prefetch(static_cast<const u8*>(data) + at);
#else
  (void)data, (void)size;
#endif
}

/// The same for elements first .. first + count - 1 of an array, as far as it has them.
template <class T>
void prefetch_elements(const void* data, i64 num_elements, i64 first, i64 count) {
  if (first >= num_elements) return;
  prefetch(static_cast<const u8*>(data) + first * i64(sizeof(T)),
           (::std::min)(count, num_elements - first) * i64(sizeof(T)));
}

/// Whether T is float and the elements can be read where they are.
template <class T>
bool is_aligned_float(const void* data) {
  return ::std::is_same_v<T, float> &&
         reinterpret_cast<::std::uintptr_t>(data) % alignof(float) == 0;
}

/// The elements of tiles as floats, one tile at a time.
class element_reader {
 public:
  element_reader(const plan& p, const void* x) : plan_(p), x_(x) {}

  /// A tile's elements, in place where that is possible. Absent ones repeat the last.
  template <class T>
  const float* tile(i64 index) {
    const i64 first = index * tile_elements;
    const int count = elements_in_tile(plan_, index);
    const void* const x = static_cast<const u8*>(x_) + first * i64(sizeof(T));
    if (count == tile_elements && is_aligned_float<T>(x)) return static_cast<const float*>(x);
    load_floats<T>(x, 0, count, elements_);
    ::std::fill(elements_ + count, elements_ + tile_elements, elements_[count - 1]);
    return elements_;
  }

 private:
  const plan& plan_;
  const void* const x_;
  alignas(64) float elements_[tile_elements] = {};
};

/// Walks tiles in order and knows where the codes of each begin.
class tile_cursor {
 public:
  tile_cursor(const plan& p, const_bytes tile_bits)
      : bits_(p.codec().bits), tile_bits_(static_cast<const u8*>(tile_bits.data)) {}

  /// Moves on to a tile, not before the present one.
  void move_to(i64 tile) {
    if (tile_bits_ == nullptr) {
      offset_ = u64(tile) * u64(bits_) * row_elements;
    } else {
      for (; tile_ < tile; ++tile_) offset_ += u64(tile_bits_[tile_]) * row_elements;
      bits_ = tile_bits_[tile];
    }
    tile_ = tile;
  }
  i64 tile() const { return tile_; }
  int bits() const { return bits_; }
  u64 offset() const { return offset_; }  // bytes from the blob's base

 private:
  int bits_;
  const u8* tile_bits_;
  i64 tile_ = 0;
  u64 offset_ = 0;
};

/// Metadata or LFC value `index` of a part of the blob.
inline float load_meta(const u8* part, i64 index, dtype meta) {
  return meta == dtype::f32 ? load_at<float>(part, index)
                            : f32_from_bf16(load_at<u16>(part, index));
}
inline void store_meta(u8* part, i64 index, dtype meta, float value) {
  if (meta == dtype::f32) {
    store_at(part, index, value);
  } else {
    store_at(part, index, stored_bf16(value));
  }
}

/// Writes a tile's codes to a blob of codes.
inline void store_tile(const plan& p, i64 tile, const tile_bytes& codes, bytes blob) {
  const int bits = p.codec().bits;
  store_codes(codes, bits, static_cast<u8*>(blob.data) + tile * bits * row_elements);
}

/// Reads them.
inline void load_tile(const plan& p, i64 tile, const_bytes blob, tile_bytes& codes) {
  const int bits = p.codec().bits;
  load_codes(static_cast<const u8*>(blob.data) + tile * bits * row_elements, bits, codes);
}

}  // namespace furl::host::detail

FURL_HIDDEN_END
