// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The format a second time: one element after the other, straight from FORMAT.md and
// Arithmetic, without a thought for speed. It takes constants, enums and the codec from the
// library, and nothing else but Philox, whose words other tests pin.

#include <vector>

#include "furl/detail/quantize.hpp"
#include "furl/plan.hpp"
#include "furl/types.hpp"

namespace furl::test::reference {

/// A binary floating-point format of 16 bits.
struct format16 {
  int fraction_bits;
  int exponent_bits;
};
inline constexpr format16 f16_format{10, 5};
inline constexpr format16 bf16_format{7, 8};

/// A place in a vector.
inline std::size_t at(i64 index) {
  return static_cast<std::size_t>(index);
}

enum class direction { nearest, down, up, saturated };

/// Value of a bit pattern, from sign, exponent and fraction.
double decode(u16 pattern, format16 format);
/// Bit pattern of a value, rounded as an integer multiple of its last place.
u16 encode(double x, format16 format, direction rounding);

/// Elements as f32, one by one; and the inverse, to nearest even.
std::vector<float> to_floats(const std::vector<u8>& elements, dtype type);
std::vector<u8> from_floats(const std::vector<float>& elements, dtype type);

/// Pairwise sum of terms, filled up with +0 to a power of two, by recursion.
float tree_sum(std::vector<float> terms);

/// What a blob is made for: a codec, a shape, and a width per tile or none.
struct problem {
  furl::codec codec;
  extents shape;
  std::vector<u8> widths = {};
  std::vector<range> ranges = {};  // given ones, of `scope`, or none
  range_scope scope = range_scope::measured;
  int dimension = 0;
  std::vector<float> mean = {};               // or none
  std::vector<float> inverse_deviation = {};  // given ones, or none
  i64 extent = 0;                             // of each
};
/// What a call takes for the problem's ranges, and for its statistics.
given_ranges ranges_of(const problem& p);
statistics statistics_of(const problem& p);

i64 num_elements(const problem& p);
bool has_window(const problem& p);
int bits_of_tile(const problem& p, i64 tile);
std::vector<i64> coordinates(const problem& p, i64 index);
/// Offsets of the parts of the blob, from ceilings and products.
struct layout {
  std::vector<u64> tile;
  u64 meta = 0;
  u64 lfc = 0;
  u64 size = 0;
};
layout layout_of(const problem& p);

/// The cell of an element, by its coordinates.
i64 cell_of(const problem& p, i64 index);
i64 num_cells(const problem& p);

/// The blob of x.
std::vector<u8> compress(const problem& p, const std::vector<u8>& x, dtype type, random_key key);
/// The values v of a blob, before they are converted. key: that of compress, where it matters.
std::vector<float> values_of(const problem& p, const std::vector<u8>& blob, random_key key = {});
/// What decompress writes, and what decompress_add leaves in place of `before`.
std::vector<u8> decompress(const problem& p, const std::vector<u8>& blob, dtype out,
                           random_key key = {});
std::vector<u8> decompress_add(const problem& p, const std::vector<u8>& blob, dtype out,
                               const std::vector<u8>& before, random_key key = {});

/// The codes part of a blob, one code per byte and one bit after the other; and the inverse.
std::vector<u8> pack(int bits, const std::vector<u8>& codes);
std::vector<u8> unpack(int bits, const std::vector<u8>& blob, i64 count);

}  // namespace furl::test::reference
