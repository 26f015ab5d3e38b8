// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Codes of positives of the reference: FORMAT.md, R9, block by block.

#include "support/reference_positives.hpp"

#include <algorithm>
#include <cmath>

#include "support/reference_rotated.hpp"

namespace furl::test::reference {
namespace {

/// Element of row r and column c of a block; +0 beyond the tensor.
float element(const std::vector<float>& z, i64 tile, int block, int r, int c) {
  const i64 i = 1024 * tile + 128 * r + 32 * block + c;
  return i < i64(z.size()) ? z[at(i)] : 0.0f;
}

/// The bf16 pattern of a block's mean.
u16 mean_of(const std::vector<float>& z, i64 tile, int block) {
  int count = 0;
  std::vector<float> of_fours;
  for (int l = 0; l < 8; ++l) {
    std::vector<float> of_columns;
    for (int k = 0; k < 4; ++k) {
      float sum = element(z, tile, block, 0, 4 * l + k);
      for (int r = 0; r < 8; ++r) {
        const float x = element(z, tile, block, r, 4 * l + k);
        if (x > 0) ++count;
        const volatile float next = sum + x;
        if (r > 0) sum = next;
      }
      of_columns.push_back(sum);
    }
    of_fours.push_back(tree_sum(of_columns));
  }
  if (count == 0) return 0;
  const volatile float mean = tree_sum(of_fours) / static_cast<float>(count);
  const u16 rounded = encode(mean, bf16_format, direction::nearest);
  return std::isfinite(decode(rounded, bf16_format)) ? rounded : u16(0);
}

float mean_in(const problem& p, const std::vector<u8>& blob, i64 i) {
  const u64 position = scale_position(p, i / 1024, int(i % 128 / 32)) + 2;
  const auto pattern = static_cast<u16>(blob[position] | blob[position + 1] << 8);
  return static_cast<float>(decode(pattern, bf16_format));
}

}  // namespace

void compress_positives(const problem& p, const std::vector<float>& x, random_key key,
                        std::vector<u8>& blob) {
  const layout places = layout_of(p);
  std::vector<float> z = x;
  std::vector<u8> mask;
  for (float& v : z) {
    mask.push_back(v > 0 ? 1 : 0);
    if (v <= 0) v = 0.0f;
  }
  for (i64 tile = 0; tile < i64(places.tile.size()); ++tile)
    for (int block = 0; block < 4; ++block) {
      const u16 mean = mean_of(z, tile, block);
      const u64 position = scale_position(p, tile, block) + 2;
      blob[position] = static_cast<u8>(mean & 0xff);
      blob[position + 1] = static_cast<u8>(mean >> 8);
    }
  for (i64 i = 0; i < i64(z.size()); ++i) {
    if (!(z[at(i)] > 0)) continue;
    const volatile float residual = z[at(i)] - mean_in(p, blob, i);
    z[at(i)] = residual;
  }
  compress_rotated(p, z, key, blob);
  const auto packed = pack(1, mask);
  std::copy(packed.begin(), packed.end(), blob.begin() + std::ptrdiff_t(places.lfc));
}

void restore_positives(const problem& p, const std::vector<u8>& blob, std::vector<float>& values) {
  const auto mask_begin = blob.begin() + std::ptrdiff_t(layout_of(p).lfc);
  const auto mask = unpack(1, {mask_begin, blob.end()}, num_elements(p));
  for (i64 i = 0; i < i64(values.size()); ++i) {
    const volatile float sum = values[at(i)] + mean_in(p, blob, i);
    values[at(i)] = mask[at(i)] == 1 ? sum : 0.0f;
  }
}

}  // namespace furl::test::reference
