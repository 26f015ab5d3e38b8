// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// One tile of 1024 elements on the host: loops of fixed trip count over the one-thread functions of
// element/, which compilers vectorise. All scratch is the caller's, and stays in the L1 cache.

#include <cstring>
#include <type_traits>

#include "furl/config.hpp"
#include "furl/dtype.hpp"
#include "furl/element/pack.hpp"
#include "furl/element/philox.hpp"
#include "furl/element/quantize.hpp"
#include "furl/plan.hpp"
#include "furl/view.hpp"

namespace furl::host::detail {

inline constexpr int lanes = 32;  // independent accumulators of a reduction
static_assert(lanes == words_per_row, "one word of four codes per lane");

/// A tile's codes, or its random bits: one byte per element, in order.
struct alignas(64) tile_bytes {
  u32 word[rows_per_tile * words_per_row];
};

/// The 8 random bits of every element of a tile.
inline void random_tile(u64 tile, random_key key, tile_bytes& u) {
  for (u32 half = 0; half < 2; ++half) {
    u32* const rows = u.word + half * 4 * words_per_row;
    for (u32 quad = 0; quad < words_per_row; ++quad) {
      const philox_block block = random_words(tile, half, quad, key);
      for (u32 row = 0; row < 4; ++row) rows[row * words_per_row + quad] = block.word[row];
    }
  }
  // From the order of columns in a word (README, A6) to memory order: swap the middle bytes.
  for (u32& w : u.word) w = (w & 0xff0000ffu) | ((w & 0xff00u) << 8) | ((w >> 8) & 0xff00u);
}

struct range {
  float lo;
  float hi;
};

/// Smallest and largest of `count` elements; both NaN if any is NaN.
/// Pre: count is a positive multiple of 32.
inline range min_max(const float* x, int count) {
  alignas(64) float lo[lanes];
  alignas(64) float hi[lanes];
  alignas(64) u32 largest[lanes];  // magnitude as an integer: NaNs are above infinity
  for (int i = 0; i < lanes; ++i) {
    lo[i] = hi[i] = x[i];
    largest[i] = bits_of(x[i]) & 0x7fffffffu;
  }
  for (int j = lanes; j < count; j += lanes) {
    for (int i = 0; i < lanes; ++i) {
      const float v = x[j + i];
      const u32 magnitude = bits_of(v) & 0x7fffffffu;
      lo[i] = v < lo[i] ? v : lo[i];
      hi[i] = v > hi[i] ? v : hi[i];
      largest[i] = magnitude > largest[i] ? magnitude : largest[i];
    }
  }
  for (int half = lanes / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) {
      lo[i] = lo[i + half] < lo[i] ? lo[i + half] : lo[i];
      hi[i] = hi[i + half] > hi[i] ? hi[i + half] : hi[i];
      largest[i] = largest[i + half] > largest[i] ? largest[i + half] : largest[i];
    }
  }
  if (largest[0] > f32_infinity_bits) return {float_of(f32_nan_bits), float_of(f32_nan_bits)};
  return {lo[0], hi[0]};
}

/// Codes of a group of `count` elements.
inline void quantize_group(const float* x, int count, const group_params& group, const u8* u,
                           u8* codes) {
  if (!group.coded) {
    std::memset(codes, 0, static_cast<std::size_t>(count));
    return;
  }
  for (int i = 0; i < count; ++i)
    codes[i] = u8(round_code(fixed_point(x[i], group.lo, group.inverse), u[i]));
}

/// Values of a group of `count` codes.
inline void dequantize_group(const u8* codes, int count, float lo, float step, float* v) {
  for (int i = 0; i < count; ++i) v[i] = dequantize(codes[i], step, lo);
  if (!is_finite(lo) || !is_finite(step))
    for (int i = 0; i < count; ++i) v[i] = canonical(v[i]);
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

/// Calls function(std::integral_constant<int, bits>) for a width of 1..8.
template <class Function>
void with_width(int bits, const Function& function) {
  using std::integral_constant;
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
  with_width(bits, [&](auto width) {
    alignas(64) u32 packed[width() * words_per_row];
    pack_tile<width()>(codes, packed);
    std::memcpy(out, packed, sizeof packed);
  });
}

/// Reads the 128 * bits bytes of a tile's codes.
inline void load_codes(const u8* in, int bits, tile_bytes& codes) {
  with_width(bits, [&](auto width) {
    alignas(64) u32 packed[width() * words_per_row];
    std::memcpy(packed, in, sizeof packed);
    unpack_tile<width()>(packed, codes);
  });
}

/// Element `index` of an array at any alignment.
template <class T>
T load_at(const void* data, i64 index) {
  T value;
  std::memcpy(&value, static_cast<const u8*>(data) + index * i64(sizeof(T)), sizeof(T));
  return value;
}
template <class T>
void store_at(void* data, i64 index, T value) {
  std::memcpy(static_cast<u8*>(data) + index * i64(sizeof(T)), &value, sizeof(T));
}

/// Calls function(T{}) with the element type of a dtype.
template <class Function>
auto with_type(dtype type, const Function& function) {
  switch (type) {
    case dtype::f16:
      return function(f16{});
    case dtype::bf16:
      return function(bf16{});
    default:
      return function(0.0f);
  }
}

/// Walks tiles in order and knows where the codes of each begin.
class tile_cursor {
 public:
  tile_cursor(const plan& p, const_bytes widths)
      : bits_(p.codec().bits), widths_(static_cast<const u8*>(widths.data)) {}

  /// Moves on to a tile, not before the present one.
  void move_to(i64 tile) {
    if (widths_ == nullptr) {
      offset_ = u64(tile) * u64(bits_) * row_elements;
    } else {
      for (; tile_ < tile; ++tile_) offset_ += u64(widths_[tile_]) * row_elements;
      bits_ = widths_[tile];
    }
    tile_ = tile;
  }
  i64 tile() const { return tile_; }
  int bits() const { return bits_; }
  u64 offset() const { return offset_; }  // bytes from the blob's base

 private:
  int bits_;
  const u8* widths_;
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

}  // namespace furl::host::detail
