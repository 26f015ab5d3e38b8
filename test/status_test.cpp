// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Statuses, results and views: the small types of every signature.

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <vector>

#include "furl/plan.hpp"
#include "furl/types.hpp"

namespace furl::test {
namespace {

TEST(Status, OkByDefault) {
  const status s;
  EXPECT_TRUE(s);
  EXPECT_TRUE(s.ok());
  EXPECT_EQ(to_string(s), "success");
}

TEST(Status, ToStringNamesArgumentValueAndLimit) {
  codec c;
  c.bits = 9;
  EXPECT_EQ(to_string(plan::make(c, {8}).status()), "codec.bits is 9: must be 1..8");
  EXPECT_EQ(to_string({error::wrong_size, "blob", 15, "must have more"}),
            "blob is 15: must have more");
  EXPECT_EQ(to_string({error::null_pointer, "x", 0, "must not be null"}), "x: must not be null");
  for (const error e :
       {error::misaligned, error::overlap, error::wrong_plan, error::corrupt, error::out_of_memory})
    EXPECT_EQ(to_string({e, "x", 5, "limit"}), "x: limit");
}

TEST(Result, HoldsAValueOrAStatus) {
  result<int> value = 5;
  EXPECT_TRUE(value);
  EXPECT_EQ(*value, 5);
  *value = 6;
  EXPECT_EQ(*value, 6);
  EXPECT_TRUE(value.status());
  const result<int> refused = status{error::overlap, "x", 0, ""};
  EXPECT_FALSE(refused);
  EXPECT_EQ(refused.status().code, error::overlap);
}

// Of host memory; views_test.cpp has both sides.
using host::bytes;
using host::const_bytes;
using host::const_values;
using host::values;

TEST(View, FromPointersAndContainers) {
  std::vector<float> f(5);
  const std::vector<bf16> b(6);
  std::array<f16, 7> h{};
  const values to_f = f;
  EXPECT_EQ(to_f.data, f.data());
  EXPECT_EQ(to_f.num_elements, 5);
  EXPECT_EQ(to_f.type, dtype::f32);
  EXPECT_EQ(to_f.size_bytes(), 20u);
  const const_values from_b = b;
  EXPECT_EQ(from_b.data, b.data());
  EXPECT_EQ(from_b.type, dtype::bf16);
  EXPECT_EQ(from_b.size_bytes(), 12u);
  const values part(h.data() + 1, 2);
  EXPECT_EQ(part.data, h.data() + 1);
  EXPECT_EQ(part.type, dtype::f16);
  const std::vector<std::byte> blob(9);
  const const_bytes from_blob = blob;
  EXPECT_EQ(from_blob.data, blob.data());
  EXPECT_EQ(from_blob.size_bytes, 9u);
}

// What would be read as something else does not convert (see BugReports.Case23).
TEST(View, OtherElementTypesDoNotConvert) {
  static_assert(!std::is_convertible_v<std::vector<double>&, values>);
  static_assert(!std::is_convertible_v<std::vector<int>&, values>);
  static_assert(!std::is_constructible_v<values, double*, i64>);
  static_assert(!std::is_constructible_v<values, const float*, i64>, "y is written to");
  static_assert(std::is_constructible_v<const_values, const float*, i64>);
  static_assert(!std::is_convertible_v<const std::vector<float>&, values>);
  static_assert(!std::is_convertible_v<std::vector<u16>&, bytes>);
  static_assert(!std::is_convertible_v<const std::vector<u8>&, bytes>);
}

}  // namespace
}  // namespace furl::test
