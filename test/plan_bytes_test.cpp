// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "furl/plan.hpp"
#include "support/inputs.hpp"
#include "support/run.hpp"

namespace furl::test {
namespace {

std::vector<plan> sample_plans() {
  codec pooled;
  pooled.bits = 5;
  pooled.group = 1024;
  pooled.meta = dtype::f32;
  pooled.rounding = rounding::nearest;
  pooled.window = {1, 1, 8, 64};
  codec dithered;
  dithered.rounding = rounding::dithered;
  codec rotated;
  rotated.coding = coding::rotated;
  codec rotated_to_four_bits = rotated;
  rotated_to_four_bits.bits = 4;
  codec pooled_and_rotated = rotated;
  pooled_and_rotated.bits = 1;
  pooled_and_rotated.window = {1, 8};
  codec by_lines;
  by_lines.by_lines = true;
  codec ones;
  ones.window = {1, 1};
  return {plan{},
          make_plan(codec{}, {}),
          make_plan(codec{}, {3, 4}),
          make_plan(codec{}, {0, 7}),
          make_plan(ones, {3, 4}),
          make_plan(pooled, {2, 3, 28, 75}),
          make_plan(codec{}, {1, 2, 3, 4, 5, 6, 7, i64(1) << 40}),
          *plan::make_mixed(pooled, {2, 3, 28, 75}, 41),
          *plan::make_mixed(codec{}, {0}, 0),
          make_plan(dithered, {3, 4}),
          *plan::make_mixed(dithered, {3, 4}, 5),
          make_plan(rotated, {3, 4}),
          make_plan(positives_codec(1), {3, 4}),
          make_plan(by_lines, {3, 4}),
          make_plan(rotated, {0}),
          make_plan(rotated_to_four_bits, {3, 4}),
          make_plan(pooled_and_rotated, {50, 100}),
          *plan::make_codes(1, {i64(1) << 60}),
          *plan::make_codes(7, {}),
          *plan::make_scaled(4, 64, dtype::bf16, {50, 100}),
          *plan::make_scaled(8, 1024, dtype::f32, {0})};
}

bool same(const plan_bytes& a, const plan_bytes& b) {
  return std::memcmp(a.data, b.data, sizeof a.data) == 0;
}

TEST(PlanBytes, RoundTrip) {
  for (const plan& p : sample_plans()) {
    const result<plan> back = deserialize(serialize(p));
    ASSERT_TRUE(back) << to_string(back.status());
    EXPECT_EQ(*back, p);
    EXPECT_EQ(back->size_bytes(), p.size_bytes());
    EXPECT_EQ(back->meta_offset(), p.meta_offset());
    EXPECT_EQ(back->lfc_offset(), p.lfc_offset());
    EXPECT_EQ(back->num_cells(), p.num_cells());
    EXPECT_EQ(back->kind(), p.kind());
  }
}

// Written out by hand: files outlive the code that wrote them.
TEST(PlanBytes, LayoutByHand) {
  codec c;
  c.bits = 3;
  c.group = 512;
  c.meta = dtype::f32;
  c.rounding = rounding::nearest;
  c.window = {1, 8};
  u8 expected[96] = {'F', 'U', 'R', 'L', 1, 0, 3, 0, 1, 2, 2, 0, 0x00, 0x02, 0, 0};
  expected[16] = 0x34;  // 0x1234 rows
  expected[17] = 0x12;
  expected[24] = 7;   // columns
  expected[80] = 96;  // 32620 elements are 32 tiles of 3 bits
  expected[88] = 1;
  expected[89] = 8;
  const plan_bytes got = serialize(make_plan(c, {0x1234, 7}));
  for (int i = 0; i < 96; ++i) EXPECT_EQ(got.data[i], expected[i]) << "byte " << i;
  EXPECT_EQ(sizeof(plan_bytes), 96u);
}

// Old readers can read what they know; those of version 1 refuse the others by that number.
TEST(PlanBytes, HasTheFirstVersionThatCanHoldIt) {
  codec c;
  EXPECT_EQ(serialize(make_plan(c, {8})).data[4], 1);
  c.rounding = rounding::nearest;
  EXPECT_EQ(serialize(make_plan(c, {8})).data[4], 1);
  EXPECT_EQ(serialize(*plan::make_mixed(c, {8}, 3)).data[4], 1);
  EXPECT_EQ(serialize(*plan::make_codes(3, {8})).data[4], 1);
  c.rounding = rounding::dithered;
  const plan_bytes dithered = serialize(make_plan(c, {8}));
  EXPECT_EQ(dithered.data[4], 2);
  EXPECT_EQ(dithered.data[8], 2);
  EXPECT_EQ(dithered.data[11], 0);
  c = {};
  c.coding = coding::rotated;
  const plan_bytes rotated = serialize(make_plan(c, {8}));
  EXPECT_EQ(rotated.data[4], 2);
  EXPECT_EQ(rotated.data[8], 0);
  EXPECT_EQ(rotated.data[11], 1);
  plan_bytes five_bits = rotated;
  five_bits.data[6] = 5;
  EXPECT_FALSE(deserialize(five_bits));
  const plan_bytes positives = serialize(make_plan(positives_codec(2), {8}));
  EXPECT_EQ(positives.data[4], 2);
  EXPECT_EQ(positives.data[11], 2);
  const plan_bytes scaled = serialize(*plan::make_scaled(4, 64, dtype::f32, {8}));
  EXPECT_EQ(scaled.data[4], 2);
  EXPECT_EQ(scaled.data[5], 3);
  EXPECT_EQ(scaled.data[7], 0);
  EXPECT_EQ(scaled.data[12], 64);
  for (plan_bytes in : {dithered, rotated, positives, scaled}) {
    in.data[4] = 1;
    EXPECT_EQ(deserialize(in).status().code, error::corrupt);
  }
}

/// Refused, or exactly what some other plan would write: never a plan that its bytes do not say.
void expect_refused_or_another(const plan& p, const plan_bytes& changed) {
  const result<plan> made = deserialize(changed);
  if (!made) {
    EXPECT_STRNE(made.status().argument, "");
    EXPECT_STRNE(made.status().limit, "");
    return;
  }
  EXPECT_NE(*made, p);
  EXPECT_TRUE(same(serialize(*made), changed));
  // Whoever makes that plan in the ordinary way gets the same bytes.
  const extents shape(made->shape().size, made->shape().rank);
  codec c = made->codec();
  c.window = extents(c.window.size, c.window.rank);
  const result<plan> again =
      made->kind() == plan_kind::codes    ? plan::make_codes(c.bits, shape)
      : made->kind() == plan_kind::scaled ? plan::make_scaled(c.bits, c.group, c.meta, shape)
      : made->kind() == plan_kind::mixed  ? plan::make_mixed(c, shape, made->sum_of_bits())
                                          : plan::make(c, shape);
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, *made);
}

TEST(PlanBytes, EveryChangedByteIsRefusedOrAnotherPlan) {
  for (const plan& p : sample_plans()) {
    for (int i = 0; i < 96; ++i) {
      for (int value = 0; value < 256; ++value) {
        plan_bytes changed = serialize(p);
        if (changed.data[i] == value) continue;
        changed.data[i] = static_cast<u8>(value);
        expect_refused_or_another(p, changed);
        ASSERT_FALSE(testing::Test::HasFailure()) << "byte " << i << " is " << value;
      }
    }
  }
}

TEST(PlanBytes, NewerFormatIsRefusedByName) {
  for (const plan& p : sample_plans()) {
    for (int version = 0; version < 256; ++version) {
      plan_bytes in = serialize(p);
      in.data[4] = static_cast<u8>(version);
      const result<plan> made = deserialize(in);
      ASSERT_EQ(bool(made), version == serialize(p).data[4]);
      if (version <= format_version) continue;
      EXPECT_EQ(made.status().code, error::newer_format);
      EXPECT_EQ(to_string(made.status()),
                "plan_bytes.format_version is " + std::to_string(version) +
                    ": written by a later furl; this one reads versions 1 and 2");
    }
  }
}

TEST(PlanBytes, HeaderAndUnusedBytesAreRefused) {
  for (const plan& p : sample_plans()) {
    for (const int i : {0, 1, 2, 3, 15}) {
      for (int bit = 0; bit < 8; ++bit) {
        plan_bytes changed = serialize(p);
        changed.data[i] = static_cast<u8>(changed.data[i] ^ (1 << bit));
        const result<plan> made = deserialize(changed);
        EXPECT_FALSE(made) << "byte " << i << " bit " << bit;
        EXPECT_TRUE(made.status().code == error::corrupt ||
                    made.status().code == error::out_of_range);
      }
    }
  }
}

TEST(PlanBytes, RandomBytesAreRefused) {
  for (u32 seed = 0; seed < 2000; ++seed) {
    const auto noise = random_bytes(96, seed);
    plan_bytes in;
    std::memcpy(in.data, noise.data(), 96);
    EXPECT_FALSE(deserialize(in));
    std::memcpy(in.data, "FURL\1", 5);  // the right start, then noise
    EXPECT_FALSE(deserialize(in));
  }
}

}  // namespace
}  // namespace furl::test
