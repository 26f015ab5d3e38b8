// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// ReLU with its mask, and its backward pass.

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "support/coded.hpp"
#include "support/inputs.hpp"

namespace furl::test {
namespace {

class Relu : public testing::TestWithParam<dtype> {};

std::vector<u8> mask_of(const std::vector<u8>& x, dtype type) {
  std::vector<u8> positive;
  for (const float value : reference::to_floats(x, type)) positive.push_back(value > 0 ? 1 : 0);
  return reference::pack(1, positive);
}

TEST_P(Relu, OutputAndMaskAsReference) {
  const dtype type = GetParam();
  for (const i64 n : {0, 1, 3, 127, 1023, 1024, 1025, 4100, 9 * 1024}) {
    const plan p = *plan::make_codes(1, {n});
    const auto x = awkward_elements(static_cast<std::size_t>(n), type, u32(n) + 1);
    const auto expected = map_elements(x, type, [](float value, std::size_t) {
      return std::isnan(value) || value > 0 ? value : 0.0f;
    });
    for (const auto& engine : backends()) {
      for (const std::size_t where : {std::size_t(0), std::size_t(size_bytes(type))}) {
        SCOPED_TRACE(std::string(engine->name()) + " " + std::to_string(n));
        const guarded_buffer input(x, where);
        guarded_buffer y(x.size(), where);
        guarded_buffer both(x, where);
        guarded_buffer mask(p.size_bytes());
        guarded_buffer mask_in_place(p.size_bytes());
        EXPECT_TRUE(engine->relu(p, {input.data(), type, n}, {y.data(), type, n},
                                 {mask.data(), mask.size()}));
        EXPECT_TRUE(engine->relu(p, {both.data(), type, n}, {both.data(), type, n},
                                 {mask_in_place.data(), mask_in_place.size()}));
        EXPECT_EQ(y.bytes(), expected);
        EXPECT_EQ(both.bytes(), expected);
        EXPECT_EQ(mask.bytes(), mask_of(x, type));
        EXPECT_EQ(mask_in_place.bytes(), mask_of(x, type));
        EXPECT_TRUE(y.intact() && both.intact() && mask.intact() && mask_in_place.intact());
      }
    }
  }
}

// Where the mask is 0 the gradient is +0, whatever it was.
TEST_P(Relu, GradientPassesWhereTheInputWasPositive) {
  const dtype type = GetParam();
  constexpr i64 n = 3000;
  const plan p = *plan::make_codes(1, {n});
  const auto x = awkward_elements(n, type, 1);
  const auto g = awkward_elements(n, type, 2);
  const auto input = reference::to_floats(x, type);
  const auto expected = map_elements(
      g, type, [&](float value, std::size_t i) { return input[i] > 0 ? value : 0.0f; });
  for (const auto& engine : backends()) {
    const auto mask = pack(*engine, p, x, type, positive_codebook());
    EXPECT_EQ(mask, mask_of(x, type));
    EXPECT_EQ(unpack_multiply(*engine, p, mask, positive_codebook(), g, type), expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Relu, testing::ValuesIn(all_types),
                         [](const auto& type) { return std::string(name(type.param)); });

TEST(ReluArguments, Refused) {
  constexpr i64 n = 1100;
  const plan p = *plan::make_codes(1, {n});
  const auto content = random_bytes(16384, 4);
  for (const auto& engine : backends()) {
    guarded_buffer memory(content);
    const values x{memory.data(), dtype::f32, n};
    const values y{memory.data() + 4480, dtype::f32, n};
    const bytes mask{memory.data() + 9600, p.size_bytes()};
    const const_values in{x.data, x.type, n};
    const auto refused = [&](const plan& q, const_values from, values to, bytes blob, error code,
                             const char* argument) {
      const status s = engine->relu(q, from, to, blob);
      EXPECT_EQ(s.code, code) << to_string(s);
      EXPECT_STREQ(s.argument, argument);
    };
    refused(*plan::make_codes(2, {n}), in, y, {mask.data, 2048}, error::wrong_plan, "plan");
    refused(make_plan({}, {n}), in, y, {mask.data, 4096}, error::wrong_plan, "plan");
    refused(p, {x.data, x.type, n - 1}, y, mask, error::wrong_size, "x");
    refused(p, in, {y.data, y.type, n + 1}, mask, error::wrong_size, "y");
    refused(p, {nullptr, x.type, n}, y, mask, error::null_pointer, "x");
    refused(p, in, {nullptr, y.type, n}, mask, error::null_pointer, "y");
    refused(p, in, {y.data, dtype::f16, n}, mask, error::out_of_range, "y");
    refused(p, in, y, {mask.data, p.size_bytes() - 1}, error::wrong_size, "blob");
    refused(p, in, y, {nullptr, p.size_bytes()}, error::null_pointer, "blob");
    EXPECT_EQ(memory.bytes(), content);
    EXPECT_TRUE(engine->relu(*plan::make_codes(1, {0}), {nullptr, dtype::f32, 0},
                             {nullptr, dtype::f32, 0}, {}));
  }
}

}  // namespace
}  // namespace furl::test
