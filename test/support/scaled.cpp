// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

#include "support/scaled.hpp"

#include <cmath>
#include <cstring>

#include "support/inputs.hpp"

namespace furl::test {

using reference::at;

namespace {

i64 num_groups(const scaled_problem& p) {
  return (p.num_elements + p.group - 1) / p.group;
}

/// The scale of a group, before it is known whether the group can have it.
float raw_scale(const scaled_problem& p, float largest, float largest_level, const float* given) {
  const float scale = given == nullptr ? largest / largest_level : *given;
  if (p.meta == dtype::f32 || std::isnan(scale)) return scale;
  const auto up = reference::encode(static_cast<double>(scale), reference::bf16_format,
                                    reference::direction::up);
  return static_cast<float>(reference::decode(up, reference::bf16_format));
}

}  // namespace

plan make_scaled_plan(const scaled_problem& p) {
  const auto made = plan::make_scaled(p.bits, p.group, p.meta, {p.num_elements});
  EXPECT_TRUE(made) << to_string(made.status());
  return *made;
}

std::vector<u8> reference_scaled(const scaled_problem& p, const std::vector<float>& x,
                                 const codebook& book, random_key key,
                                 const std::vector<float>& scales) {
  float largest_level = 0;
  for (int i = 0; i < book.num_levels; ++i)
    largest_level = std::fmax(largest_level, std::fabs(book.level[i]));
  std::vector<float> scaled = x;
  std::vector<bool> coded(x.size(), true);
  std::vector<u8> metadata;
  for (i64 g = 0; g < num_groups(p); ++g) {
    const std::size_t first = at(g * p.group);
    const std::size_t last = std::min(first + at(p.group), x.size());
    float largest = 0;
    for (std::size_t i = first; i < last; ++i)
      largest = std::isnan(x[i]) || std::isnan(largest) ? nan : std::fmax(largest, std::fabs(x[i]));
    const float* const given = scales.empty() ? nullptr : &scales[scales.size() == 1 ? 0 : at(g)];
    float scale = raw_scale(p, largest, largest_level, given);
    const double reach = static_cast<double>(largest_level) * static_cast<double>(scale);
    // Half a unit in the last place beyond the largest f32 rounds to infinity.
    const bool negative = given != nullptr && *given < 0;
    const bool poisoned = std::isnan(largest) || negative || !(reach < 0x1.ffffffp127);
    const bool flat = !poisoned && scale < 0x1p-126f;
    if (poisoned) scale = nan;
    if (flat) scale = 0;
    for (std::size_t i = first; i < last; ++i) {
      coded[i] = !poisoned && !flat;
      const float inverse = 1 / scale;
      if (coded[i])
        scaled[i] = static_cast<float>(static_cast<double>(x[i]) * static_cast<double>(inverse));
    }
    u32 pattern = poisoned ? 0x7fffffffu : 0;
    if (!poisoned) std::memcpy(&pattern, &scale, 4);
    for (int k = p.meta == dtype::f32 ? 0 : 2; k < 4; ++k)
      metadata.push_back(static_cast<u8>(pattern >> (8 * k)));
  }
  auto codes = reference_codes(scaled, book, key);
  for (std::size_t i = 0; i < codes.size(); ++i)
    if (!coded[i]) codes[i] = 0;
  auto blob = reference::pack(p.bits, codes);
  metadata.resize((metadata.size() + 15) / 16 * 16);
  blob.insert(blob.end(), metadata.begin(), metadata.end());
  return blob;
}

std::vector<float> scales_of(const scaled_problem& p, const std::vector<u8>& blob) {
  const i64 tiles = (p.num_elements + 1023) / 1024;
  std::vector<float> scales;
  for (i64 g = 0; g < num_groups(p); ++g) {
    const int size = p.meta == dtype::f32 ? 4 : 2;
    u32 pattern = 0;
    std::memcpy(reinterpret_cast<u8*>(&pattern) + 4 - size,
                &blob[at(128 * p.bits * tiles + g * size)], at(size));
    scales.push_back(float_of(pattern));
  }
  return scales;
}

std::vector<float> reference_scaled_values(const scaled_problem& p, const std::vector<u8>& blob,
                                           const codebook& book) {
  const auto scales = scales_of(p, blob);
  const auto codes = reference::unpack(p.bits, blob, p.num_elements);
  std::vector<float> values;
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const float level = codes[i] < book.num_levels ? book.level[codes[i]] : 0.0f;
    const double v = static_cast<double>(level) * static_cast<double>(scales[i / at(p.group)]);
    values.push_back(v == 0 ? 0.0f : std::isnan(v) ? nan : static_cast<float>(v));
  }
  return values;
}

std::vector<u8> saturated(const std::vector<float>& v, dtype type) {
  if (type == dtype::f32) {
    auto bytes = bytes_of(v);
    for (std::size_t i = 0; i < v.size(); ++i)
      if (std::isnan(v[i])) std::memcpy(&bytes[4 * i], &f32_nan_bits, 4);
    return bytes;
  }
  const auto format = type == dtype::f16 ? reference::f16_format : reference::bf16_format;
  std::vector<u8> bytes;
  for (const float value : v) {
    const u16 pattern =
        reference::encode(static_cast<double>(value), format, reference::direction::saturated);
    bytes.push_back(static_cast<u8>(pattern & 0xff));
    bytes.push_back(static_cast<u8>(pattern >> 8));
  }
  return bytes;
}

std::vector<u8> pack_with_scales(backend& engine, const plan& p, const std::vector<u8>& x,
                                 dtype type, const codebook& book, const std::vector<float>& scales,
                                 random_key key, misalignment where) {
  const guarded_buffer input(x, where.bytes);
  guarded_buffer blob(p.size_bytes());
  const std::vector<float> before = scales;
  const status s = engine.pack(p, {input.data(), type, p.num_elements()}, book, scales,
                               {blob.data(), blob.size()}, key);
  EXPECT_TRUE(s) << to_string(s);
  EXPECT_TRUE(blob.intact());
  EXPECT_EQ(input.bytes(), x);
  EXPECT_EQ(bytes_of(scales), bytes_of(before));
  return blob.bytes();
}

}  // namespace furl::test
