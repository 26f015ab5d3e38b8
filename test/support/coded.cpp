// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

#include "support/coded.hpp"

#include <cmath>
#include <limits>
#include <random>

#include "support/inputs.hpp"

namespace furl::test {

std::vector<u8> awkward_elements(std::size_t count, dtype type, u32 seed,
                                 const std::vector<float>& also) {
  std::vector<float> x = normal_floats(count, seed);
  std::vector<float> rare = {0.0f,
                             -0.0f,
                             1e-45f,
                             -1e-45f,
                             1e-39f,
                             6e-8f,
                             65504.0f,
                             3e38f,
                             -3e38f,
                             std::numeric_limits<float>::infinity(),
                             -std::numeric_limits<float>::infinity(),
                             std::numeric_limits<float>::quiet_NaN()};
  rare.insert(rare.end(), also.begin(), also.end());
  std::mt19937 random(seed);
  for (float& value : x)
    if (random() % 4 == 0) value = rare[random() % rare.size()];
  auto bytes = reference::from_floats(x, type);
  // A NaN of another sign and payload, which from_floats does not make.
  const std::size_t size = static_cast<std::size_t>(size_bytes(type));
  if (count > 20) {
    bytes[17 * size] = 0x21;
    bytes[18 * size - 2] = type == dtype::f32 ? 0xc5 : 0x21;
    bytes[18 * size - 1] = 0xff;
  }
  return bytes;
}

codebook uneven_codebook(int num_levels, rounding mode) {
  std::vector<float> levels;
  for (int i = 0; i < num_levels; ++i) {
    const float even = -3.0f + 6.0f * static_cast<float>(i) / static_cast<float>(num_levels - 1);
    levels.push_back(even + (i % 3 == 1 ? 1.5f / static_cast<float>(num_levels) : 0.0f));
  }
  return mode == rounding::nearest ? nearest_codebook(levels.data(), num_levels)
                                   : stochastic_codebook(levels.data(), num_levels);
}

std::vector<u8> reference_codes(std::vector<float> x, const codebook& book, random_key key) {
  if (book.of_magnitudes)
    for (float& value : x) value = std::fabs(value);
  std::vector<u8> codes;
  const int last = book.num_levels - 1;
  for (std::size_t i = 0; i < x.size(); ++i) {
    int code = 0;
    if (book.rounding == rounding::nearest) {
      for (int t = 0; t < last; ++t) code += x[i] >= book.threshold[t] ? 1 : 0;
    } else if (x[i] >= book.level[last]) {
      code = last;
    } else if (x[i] > book.level[0]) {
      while (x[i] >= book.level[code + 1]) ++code;
      const float gap = book.level[code + 1] - book.level[code];
      const float rest = x[i] - book.level[code];
      const double exact = static_cast<double>(rest) * static_cast<double>(1.0f / gap);
      // 32768 and this rounded to a multiple of 1/256, which is even where its last bit is 0.
      const double fixed = std::nearbyint(exact * 256.0);
      code += (static_cast<int>(fixed) + static_cast<int>(random_bits(i, key))) / 256;
    }
    codes.push_back(static_cast<u8>(code));
  }
  return codes;
}

std::vector<u8> pack(backend& engine, const plan& p, const std::vector<u8>& x, dtype type,
                     const codebook& book, random_key key, misalignment where) {
  const guarded_buffer input(x, where.bytes);
  guarded_buffer blob(p.size_bytes());
  const status s = engine.pack(p, {input.data(), type, p.num_elements()}, book,
                               bytes{blob.data(), blob.size()}, key);
  EXPECT_TRUE(s) << to_string(s);
  EXPECT_TRUE(blob.intact());
  EXPECT_EQ(input.bytes(), x);
  return blob.bytes();
}

std::vector<u8> unpack(backend& engine, const plan& p, const std::vector<u8>& blob,
                       const codebook& book, dtype type, misalignment where) {
  const guarded_buffer input(blob);
  guarded_buffer y(u64(p.num_elements()) * u64(size_bytes(type)), where.bytes);
  const status s = engine.unpack(p, const_bytes{input.data(), input.size()}, book,
                                 values{y.data(), type, p.num_elements()});
  EXPECT_TRUE(s) << to_string(s);
  EXPECT_TRUE(y.intact());
  EXPECT_EQ(input.bytes(), blob);
  return y.bytes();
}

std::vector<u8> unpack_multiply(backend& engine, const plan& p, const std::vector<u8>& blob,
                                const codebook& book, const std::vector<u8>& g, dtype type,
                                misalignment where) {
  const guarded_buffer packed(blob);
  const guarded_buffer input(g, where.bytes);
  guarded_buffer out(g.size(), where.bytes);
  guarded_buffer both(g, where.bytes);
  const i64 n = p.num_elements();
  status s = engine.unpack_multiply(p, {packed.data(), packed.size()}, book,
                                    {input.data(), type, n}, {out.data(), type, n});
  EXPECT_TRUE(s) << to_string(s);
  s = engine.unpack_multiply(p, {packed.data(), packed.size()}, book, {both.data(), type, n},
                             {both.data(), type, n});
  EXPECT_TRUE(s) << to_string(s);
  EXPECT_TRUE(out.intact() && both.intact());
  EXPECT_EQ(input.bytes(), g);
  EXPECT_EQ(packed.bytes(), blob);
  EXPECT_EQ(both.bytes(), out.bytes()) << "in place";
  return out.bytes();
}

}  // namespace furl::test
