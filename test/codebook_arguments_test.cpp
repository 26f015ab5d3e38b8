// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// What calls with a codebook refuse.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/coded.hpp"
#include "support/inputs.hpp"

namespace furl::test {
namespace {

class CodebookArguments : public testing::Test {
 protected:
  static constexpr i64 n = 1100;
  const plan p = *plan::make_codes(2, {n});
  const std::vector<u8> content = random_bytes(16384, 4);

  /// pack, unpack and unpack_multiply refuse a codebook.
  void expect_refused(const codebook& book, const char* argument, i64 value) {
    for (const auto& engine : backends()) {
      guarded_buffer memory(content);
      const values x{memory.data(), dtype::f32, n};
      const const_values in{x.data, x.type, n};
      const bytes blob{memory.data() + 9600, p.size_bytes()};
      for (const status& s :
           {engine->pack(p, in, book, blob, {}),
            engine->unpack(p, const_bytes{blob.data, blob.size_bytes}, book, x),
            engine->unpack_multiply(p, {blob.data, blob.size_bytes}, book, in, x)}) {
        EXPECT_EQ(s.code, error::out_of_range);
        EXPECT_STREQ(s.argument, argument);
        EXPECT_EQ(s.value, value);
      }
      EXPECT_EQ(memory.bytes(), content);
    }
  }
};

TEST_F(CodebookArguments, NumberOfLevels) {
  for (const int wrong : {-1, 0, 1, 5, 257}) {
    codebook book = uneven_codebook(4, rounding::nearest);
    book.num_levels = wrong;
    expect_refused(book, "book.num_levels", wrong);
  }
}

TEST_F(CodebookArguments, Rounding) {
  codebook book = uneven_codebook(4, rounding::nearest);
  book.rounding = static_cast<rounding>(7);
  expect_refused(book, "book.rounding", 7);
}

TEST_F(CodebookArguments, Levels) {
  for (const float wrong : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    codebook book = uneven_codebook(4, rounding::nearest);
    book.level[2] = wrong;
    expect_refused(book, "book.level", 2);
  }
  const float close[] = {0.0f, 1.0f, 1.0f, 2.0f};
  expect_refused(stochastic_codebook(close, 4), "book.level", 2);
  const float descending[] = {0.0f, 1.0f, 2.0f, 1.5f};
  expect_refused(stochastic_codebook(descending, 4), "book.level", 3);
  const float tiny[] = {0.0f, 0x1.fffffcp-127f, 1.0f};
  expect_refused(stochastic_codebook(tiny, 3), "book.level", 1);
  const float far[] = {-3e38f, 3e38f};
  expect_refused(stochastic_codebook(far, 2), "book.level", 1);
}

TEST_F(CodebookArguments, Thresholds) {
  codebook book = uneven_codebook(4, rounding::nearest);
  book.threshold[1] = book.threshold[2] + 1.0f;
  expect_refused(book, "book.threshold", 2);
  book.threshold[1] = std::nanf("");
  expect_refused(book, "book.threshold", 1);
}

TEST_F(CodebookArguments, ArraysAndPlans) {
  const codebook book = uneven_codebook(4, rounding::nearest);
  const plan other = make_plan({}, {n});
  for (const auto& engine : backends()) {
    guarded_buffer memory(content);
    const values y{memory.data(), dtype::f32, n};
    const const_values x{y.data, y.type, n};
    const bytes blob{memory.data() + 9600, p.size_bytes()};
    const const_bytes packed{blob.data, blob.size_bytes};
    const auto expect = [](const status& s, error code, const char* argument) {
      EXPECT_EQ(s.code, code) << to_string(s);
      EXPECT_STREQ(s.argument, argument);
    };
    const bytes large{memory.data() + 9600, 4096};
    expect(engine->pack(other, x, book, large, {}), error::wrong_plan, "plan");
    expect(engine->unpack(other, const_bytes{large.data, 4096}, book, y), error::wrong_plan,
           "plan");
    expect(engine->pack(p, {y.data, y.type, n - 1}, book, blob, {}), error::wrong_size, "x");
    expect(engine->pack(p, {nullptr, y.type, n}, book, blob, {}), error::null_pointer, "x");
    expect(engine->pack(p, x, book, {blob.data, 4}, {}), error::wrong_size, "blob");
    expect(engine->unpack(p, packed, book, {y.data, dtype(9), n}), error::out_of_range, "y");
    expect(engine->unpack(p, const_bytes{nullptr, 4096}, book, y), error::null_pointer, "blob");
    expect(engine->unpack_multiply(p, packed, book, {nullptr, y.type, n}, y), error::null_pointer,
           "g");
    expect(engine->unpack_multiply(p, packed, book, x, {nullptr, y.type, n}), error::null_pointer,
           "out");
    expect(engine->unpack_multiply(p, packed, book, x, {y.data, dtype::bf16, n}),
           error::out_of_range, "out");
    expect(engine->unpack_multiply(p, packed, book, x, {y.data, y.type, n + 1}), error::wrong_size,
           "out");
    EXPECT_EQ(memory.bytes(), content);
    const plan empty = *plan::make_codes(2, {0, 5});
    EXPECT_TRUE(engine->pack(empty, const_values{nullptr, dtype::f32, 0}, book, {}, {}));
    EXPECT_TRUE(engine->unpack(empty, const_bytes{}, book, values{nullptr, dtype::f32, 0}));
    EXPECT_TRUE(engine->unpack_multiply(empty, {}, book, {nullptr, dtype::f32, 0},
                                        {nullptr, dtype::f32, 0}));
  }
}

}  // namespace
}  // namespace furl::test
