// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Masks and small integers (FORMAT.md, A8).

#include <gtest/gtest.h>

#include <string>

#include "support/inputs.hpp"
#include "support/run.hpp"

namespace furl::test {
namespace {

class Codes : public testing::TestWithParam<int> {};

TEST_P(Codes, AsReferenceAndBack) {
  const int bits = GetParam();
  for (const i64 n : {0, 1, 7, 31, 32, 33, 127, 128, 129, 1023, 1024, 1025, 2048, 4097}) {
    SCOPED_TRACE(std::to_string(n) + " codes");
    const plan p = *plan::make_codes(bits, {n});
    // All 256 values of a byte: only the low bits are kept.
    const auto given = random_bytes(static_cast<std::size_t>(n), static_cast<u32>(n + bits));
    auto kept = given;
    for (u8& code : kept) code = static_cast<u8>(code & ((1 << bits) - 1));
    const auto blob = reference::pack(bits, kept);
    for (const auto& engine : backends()) {
      for (const std::size_t where : {0u, 1u, 7u}) {
        EXPECT_EQ(pack(*engine, p, given, {where}), blob);
        EXPECT_EQ(unpack(*engine, p, blob, {where}), kept);
      }
    }
  }
}

// Any bytes are a blob, absent codes included.
TEST_P(Codes, UnpackAnyBlob) {
  const int bits = GetParam();
  const plan p = *plan::make_codes(bits, {1500});
  const auto blob = random_bytes(static_cast<std::size_t>(p.size_bytes()), 5);
  for (const auto& engine : backends())
    EXPECT_EQ(unpack(*engine, p, blob), reference::unpack(bits, blob, 1500));
}
INSTANTIATE_TEST_SUITE_P(Bits, Codes, testing::Range(1, 9));

}  // namespace
}  // namespace furl::test
