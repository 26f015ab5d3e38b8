// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A number made from all bytes that furl writes for some tensors. It is the same for every
// compiler, flag, architecture and engine. The tensors are made from integers alone, so that no
// flag changes them, and nothing here has external linkage, so that shared libraries have copies of
// their own.

#include <cstddef>
#include <cstdio>
#include <vector>

#include "furl/extra/measure.hpp"
#include "furl/plan.hpp"
#include "furl/types.hpp"

namespace {

using furl::dtype;
using furl::i64;
using furl::u64;
using furl::u8;

/// FNV-1a.
class byte_hash {
 public:
  void add(const std::vector<u8>& data) {
    for (const u8 byte : data) value_ = (value_ ^ byte) * 1099511628211ull;
  }
  u64 value() const { return value_; }

 private:
  u64 value_ = 14695981039346656037ull;
};

/// Elements of any type as little-endian bytes: mostly of ordinary size, with a subnormal, an
/// infinity and a NaN now and then. The second tile has tiny ones, with subnormal differences.
inline std::vector<u8> make_elements(dtype type, i64 count) {
  const unsigned exponent_bits = type == dtype::f16 ? 5 : 8;
  const unsigned fraction_bits = unsigned(furl::size_bytes(type)) * 8 - 1 - exponent_bits;
  const unsigned bias = (1u << (exponent_bits - 1)) - 1;
  std::vector<u8> out;
  unsigned state = 1;
  for (i64 i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    unsigned exponent = bias - 4 + (state >> 8) % 6;
    if (i / furl::tile_elements == 1) exponent = 1 + (state >> 8) % 2;
    if (state % 1021 == 0) exponent = 0;
    if (state % 1999 == 0) exponent = (1u << exponent_bits) - 1;
    const unsigned fraction =
        (state >> 4) & ((1u << fraction_bits) - 1) & ~(i % 7 == 0 ? 0xfu : 0u);
    const unsigned bits = ((state >> 31) << exponent_bits | exponent) << fraction_bits | fraction;
    for (int byte = 0; byte < furl::size_bytes(type); ++byte)
      out.push_back(static_cast<u8>(bits >> (8 * byte)));
  }
  return out;
}

/// Engine : has compress (in a given range or not), decompress (add or not), pack, unpack, allocate
///          (tile_bits for equally sensitive tiles) and measure (all sums, the total last) over
///          host memory, which return whether they succeeded.
template <class Engine>
class fingerprint {
 public:
  /// 0 if a call failed.
  u64 make() {
    using furl::rounding;
    tensor({2, 256, dtype::bf16, rounding::stochastic, {}}, dtype::f32);
    tensor({1, 32, dtype::bf16, rounding::stochastic, {1, 8}}, dtype::f16);
    tensor({3, 64, dtype::f32, rounding::nearest, {4, 8}}, dtype::bf16);
    tensor({8, 1024, dtype::bf16, rounding::stochastic, {1, 7}}, dtype::f32);
    codes(1);
    codes(5);
    return good_ ? hash_.value() : 0;
  }

 private:
  static constexpr i64 num_rows = 5;
  static constexpr i64 num_columns = 1000;
  static constexpr i64 num_elements = num_rows * num_columns;

  void tensor(const furl::codec& c, dtype type) {
    const std::vector<u8> x = make_elements(type, num_elements);
    round_trip(*furl::plan::make(c, {num_rows, num_columns}), x, type, {});
    furl::codec flat = c;  // ranges are those of the elements themselves
    flat.window = {};
    std::vector<u8> tile_bits(5);
    good_ =
        good_ && engine_.allocate(*furl::plan::make(flat, {num_elements}), x, type, 19, tile_bits);
    hash_.add(tile_bits);
    round_trip(*furl::plan::make_mixed(c, {num_rows, num_columns}, 19), x, type, tile_bits);
  }

  void round_trip(const furl::plan& p, const std::vector<u8>& x, dtype type,
                  const std::vector<u8>& tile_bits) {
    std::vector<u8> blob(static_cast<std::size_t>(p.size_bytes()));
    std::vector<u8> sums(static_cast<std::size_t>(p.num_groups() + 1) * sizeof(furl::quality));
    for (const bool in_range : {true, false}) {
      good_ = good_ && engine_.compress(p, x, type, blob, tile_bits, in_range) &&
              engine_.measure(p, x, type, blob, tile_bits, sums);
      hash_.add(blob);
      hash_.add(sums);
    }
    for (const dtype out : {dtype::f32, dtype::f16, dtype::bf16}) {
      for (const bool add : {false, true}) {
        std::vector<u8> y = make_elements(out, num_elements);
        good_ = good_ && engine_.decompress(p, blob, y, out, add, tile_bits);
        hash_.add(y);
      }
    }
  }

  void codes(int bits) {
    const auto p = furl::plan::make_codes(bits, {num_rows, num_columns});
    std::vector<u8> in = make_elements(dtype::f32, num_elements);
    in.resize(static_cast<std::size_t>(num_elements));
    std::vector<u8> blob(static_cast<std::size_t>(p->size_bytes()));
    std::vector<u8> out(in.size());
    good_ = good_ && engine_.pack(*p, in, blob) && engine_.unpack(*p, blob, out);
    hash_.add(blob);
    hash_.add(out);
  }

  Engine engine_;
  byte_hash hash_;
  bool good_ = true;
};

}  // namespace
