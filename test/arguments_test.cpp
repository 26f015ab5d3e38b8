// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Arguments that every back end refuses: the status names the argument, and nothing is written.

#include <gtest/gtest.h>

#include <string>
#include <type_traits>
#include <vector>

#include "support/inputs.hpp"
#include "support/run.hpp"

namespace furl::test {
namespace {

constexpr i64 call_elements = 1100;

struct call {
  plan p = make_plan({}, {call_elements});
  i64 num_elements = call_elements;
  dtype type = dtype::f32;
  u64 blob_bytes = make_plan({}, {call_elements}).size_bytes();
  std::vector<u8> widths = {};
};

void expect_status(const status& s, error code, const char* argument, i64 value) {
  EXPECT_EQ(s.code, code) << to_string(s);
  EXPECT_STREQ(s.argument, argument);
  EXPECT_EQ(s.value, value);
  EXPECT_STRNE(s.limit, "");
}

bool untouched(const guarded_buffer& b) {
  return b.intact() && b.bytes() == std::vector<u8>(b.size(), guarded_buffer::canary);
}

/// All three functions refuse the call in the same way. `tensor` is what x and y are named.
void expect_refused(const call& c, error code, const char* argument, i64 value) {
  const bool names_tensor = std::string(argument) == "tensor";
  for (const auto& engine : backends()) {
    SCOPED_TRACE(engine->name());
    guarded_buffer blob(c.blob_bytes);
    guarded_buffer tensor(4 * call_elements);
    expect_status(engine->compress(c.p, {tensor.data(), c.type, c.num_elements},
                                   {blob.data(), blob.size()}, {}, c.widths),
                  code, names_tensor ? "x" : argument, value);
    const values y{tensor.data(), c.type, c.num_elements};
    const char* const output = names_tensor ? "y" : argument;
    expect_status(engine->decompress(c.p, {blob.data(), blob.size()}, y, c.widths), code, output,
                  value);
    expect_status(engine->decompress_add(c.p, {blob.data(), blob.size()}, y, c.widths), code,
                  output, value);
    EXPECT_TRUE(untouched(blob));
    EXPECT_TRUE(untouched(tensor));
  }
}

TEST(Arguments, ElementCount) {
  for (const i64 wrong :
       {i64(0), call_elements - 1, call_elements + 1, i64(-1), -call_elements, i64(1) << 62}) {
    call c;
    c.num_elements = wrong;
    expect_refused(c, error::wrong_size, "tensor", wrong);
  }
}

TEST(Arguments, ElementType) {
  for (const int wrong : {3, 9, 255}) {
    call c;
    c.type = static_cast<dtype>(wrong);
    expect_refused(c, error::out_of_range, "tensor", wrong);
  }
}

TEST(Arguments, ShortBlob) {
  call c;
  const i64 needed = i64(c.p.size_bytes());
  for (const i64 size : {i64(0), i64(1), needed - 16, needed - 1}) {
    c.blob_bytes = u64(size);
    expect_refused(c, error::wrong_size, "blob", size);
  }
}

TEST(Arguments, PlanOfAnotherKind) {
  call c;
  c.p = *plan::make_codes(2, {call_elements});
  expect_refused(c, error::wrong_plan, "plan", 0);
  for (const auto& engine : backends()) {
    for (const plan& p :
         {make_plan({}, {call_elements}), *plan::make_mixed({}, {call_elements}, 4)}) {
      guarded_buffer blob(p.size_bytes());
      guarded_buffer codes(call_elements);
      expect_status(engine->pack(p, {codes.data(), codes.size()}, {blob.data(), blob.size()}),
                    error::wrong_plan, "plan", 0);
      expect_status(engine->unpack(p, {blob.data(), blob.size()}, {codes.data(), codes.size()}),
                    error::wrong_plan, "plan", 0);
      EXPECT_TRUE(untouched(blob) && untouched(codes));
    }
  }
}

TEST(Arguments, CodesOfAnotherSize) {
  const plan p = *plan::make_codes(3, {call_elements});
  for (const auto& engine : backends()) {
    for (const u64 size : {u64(0), u64(call_elements - 1), u64(call_elements + 1)}) {
      guarded_buffer blob(p.size_bytes());
      guarded_buffer codes(size);
      expect_status(engine->pack(p, {codes.data(), size}, {blob.data(), blob.size()}),
                    error::wrong_size, "codes", i64(size));
      expect_status(engine->unpack(p, {blob.data(), blob.size()}, {codes.data(), size}),
                    error::wrong_size, "codes", i64(size));
      EXPECT_TRUE(untouched(blob) && untouched(codes));
    }
    guarded_buffer blob(p.size_bytes() - 1);
    guarded_buffer codes(call_elements);
    expect_status(engine->pack(p, {codes.data(), call_elements}, {blob.data(), blob.size()}),
                  error::wrong_size, "blob", i64(blob.size()));
    expect_status(engine->unpack(p, {blob.data(), blob.size()}, {codes.data(), call_elements}),
                  error::wrong_size, "blob", i64(blob.size()));
    EXPECT_TRUE(untouched(blob) && untouched(codes));
  }
}

TEST(Arguments, NumberOfWidths) {
  call c;
  c.p = *plan::make_mixed({}, {call_elements}, 5);
  c.blob_bytes = c.p.size_bytes();
  for (const std::vector<u8>& wrong : {std::vector<u8>{}, {5}, {1, 2, 2}}) {
    c.widths = wrong;
    expect_refused(c, error::wrong_size, "options.tile_bits", i64(wrong.size()));
  }
}

TEST(Arguments, WidthsWithoutMixedPlan) {
  call c;
  c.widths = {2, 2};
  expect_refused(c, error::wrong_plan, "options.tile_bits", 0);
}

// An empty tensor needs no pointer, and what there is stays as it was.
TEST(Arguments, EmptyTensorSucceedsWithNullPointers) {
  codec pooled;
  pooled.window = {1, 8};
  for (const auto& engine : backends()) {
    for (const plan& p : {make_plan({}, {0}), make_plan(pooled, {0, 8}), make_plan(pooled, {8, 0}),
                          *plan::make_mixed({}, {0}, 0), plan{}}) {
      for (const dtype type : all_types) {
        EXPECT_TRUE(engine->compress(p, {nullptr, type, 0}, {}, {}));
        EXPECT_TRUE(engine->decompress(p, {}, {nullptr, type, 0}));
        EXPECT_TRUE(engine->decompress_add(p, {}, {nullptr, type, 0}));
      }
      guarded_buffer blob(64);
      guarded_buffer y(64);
      EXPECT_TRUE(engine->compress(p, {y.data(), dtype::f32, 0}, {blob.data(), 64}, {}));
      EXPECT_TRUE(engine->decompress(p, {blob.data(), 64}, {y.data(), dtype::f32, 0}));
      EXPECT_TRUE(untouched(blob) && untouched(y));
      EXPECT_FALSE(engine->compress(p, {y.data(), dtype::f32, 1}, {blob.data(), 64}, {}));
    }
    const plan codes = *plan::make_codes(8, {3, 0});
    EXPECT_TRUE(engine->pack(codes, {}, {}));
    EXPECT_TRUE(engine->unpack(codes, {}, {}));
  }
}

// Without the key that compress had, rotated and dithered codes mean little.
TEST(Arguments, PlansThatNeedAKey) {
  codec dithered;
  dithered.rounding = rounding::dithered;
  for (const plan& p : {make_plan(rotated_codec(2), {call_elements}),
                        make_plan(dithered, {call_elements}), make_plan(rotated_codec(1), {0})}) {
    for (const auto& engine : backends()) {
      guarded_buffer blob(p.size_bytes());
      guarded_buffer y(4 * static_cast<u64>(p.num_elements()));
      const const_bytes read{blob.data(), blob.size()};
      const values out{y.data(), dtype::f32, p.num_elements()};
      expect_status(engine->decompress(p, read, out), error::wrong_plan, "plan", 0);
      expect_status(engine->decompress_add(p, read, out), error::wrong_plan, "plan", 0);
      std::vector<quality> groups(static_cast<std::size_t>(p.num_groups()));
      quality total;
      expect_status(
          engine->measure(p, {y.data(), dtype::f32, p.num_elements()}, read, groups, &total),
          error::wrong_plan, "plan", 0);
      EXPECT_TRUE(untouched(y));
    }
  }
}

// The calls with a key check all else as those without, and take every plan.
TEST(Arguments, CallsWithAKey) {
  const plan p = make_plan({}, {call_elements});
  const random_key key{1, 2};
  for (const auto& engine : backends()) {
    const auto blob = compress(*engine, p, normal_floats(call_elements, 1), key);
    EXPECT_EQ(decompress(*engine, p, blob, random_key{3, 4}), decompress(*engine, p, blob));
    const plan rotated = make_plan(rotated_codec(1), {call_elements});
    guarded_buffer y(4 * call_elements);
    const guarded_buffer in(blob);
    const const_bytes read{in.data(), in.size()};
    const values short_one{y.data(), dtype::f32, call_elements - 1};
    const values whole{y.data(), dtype::f32, call_elements};
    expect_status(engine->decompress(rotated, read, short_one, {}, key), error::wrong_size, "y",
                  call_elements - 1);
    expect_status(engine->decompress_add(rotated, {in.data(), 16}, whole, {}, key),
                  error::wrong_size, "blob", 16);
    EXPECT_TRUE(untouched(y));
  }
}

TEST(Arguments, RotatedCodesHaveNoRanges) {
  const plan p = make_plan(rotated_codec(2), {call_elements});
  for (const auto& engine : backends()) {
    guarded_buffer blob(p.size_bytes());
    const auto x = normal_floats(call_elements, 1);
    const std::vector<float> pairs(2 * static_cast<std::size_t>(p.num_groups()), 0.0f);
    for (const given_ranges& given : {given_ranges::of_tensor(pairs.data()),
                                      given_ranges::of_groups(pairs.data(), p.num_groups())})
      expect_status(engine->compress(p, x, {blob.data(), blob.size()}, {}, {}, given),
                    error::wrong_plan, "plan", 0);
    EXPECT_TRUE(untouched(blob));
    std::vector<double> squared(2, -1.0);
    expect_status(engine->squared_ranges(p, x, squared), error::wrong_plan, "plan", 0);
    expect_status(engine->squared_ranges(p, const_bytes{blob.data(), blob.size()}, squared),
                  error::wrong_plan, "plan", 0);
    EXPECT_EQ(squared, std::vector<double>(2, -1.0));
  }
}

TEST(Views, WritableMemoryMayBeRead) {
  float x[3] = {};
  const values written(x, 3);
  const const_values read = written;
  EXPECT_EQ(read.data, x);
  EXPECT_EQ(read.type, dtype::f32);
  EXPECT_EQ(read.num_elements, 3);
  const const_bytes raw = bytes(x, sizeof x);
  EXPECT_EQ(raw.data, x);
  EXPECT_EQ(raw.size_bytes, sizeof x);
  static_assert(!std::is_convertible_v<const_values, values>);
  static_assert(!std::is_convertible_v<const_bytes, bytes>);
}

TEST(Views, ShapesTakeAnyIntegers) {
  const long sizes[] = {2, 3};
  const int small[] = {2, 3};
  EXPECT_EQ(extents(sizes, 2), extents({2, 3}));
  EXPECT_EQ(extents(small, 2), extents({2, 3}));
}

}  // namespace
}  // namespace furl::test
