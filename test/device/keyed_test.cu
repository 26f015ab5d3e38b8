// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Codes whose decoding needs the key of their compression: rotated ones and dithered ones.

#include <gtest/gtest.h>

#include <vector>

#include "device/api.cuh"

namespace furl::test {
namespace {

/// Without means and with, of every kind that needs a key.
std::vector<plan> keyed_plans() {
  std::vector<plan> plans;
  for (const extents& window : {extents{}, extents{8}, extents{5}}) {
    codec dithered;
    dithered.rounding = rounding::dithered;
    dithered.window = window;
    plans.push_back(*plan::make(dithered, {num_elements}));
    codec rotated;
    rotated.coding = coding::rotated;
    rotated.window = window;
    for (const int bits : {2, 4}) {
      rotated.bits = bits;
      plans.push_back(*plan::make(rotated, {num_elements}));
    }
  }
  codec positives;
  positives.coding = coding::positives;
  plans.push_back(*plan::make(positives, {num_elements}));
  return plans;
}

constexpr random_key key{5, 6};

TEST(device_keyed, DecodingWithoutTheKeyIsRefused) {
  const scoped_stream stream;
  const floats y(make_input());
  for (const plan& p : keyed_plans()) {
    const device_buffer blob(p.size_bytes());
    const device_array<random_key> device_key({key});
    options o;
    o.device_key = device_key.as<random_key>();
    for (const status& s : {decompress(p, const_view(blob), y.view(), stream),
                            decompress_add(p, const_view(blob), y.view(), stream),
                            decompress(p, const_view(blob), y.view(), stream, o)}) {
      EXPECT_EQ(s.code, error::wrong_plan);
      EXPECT_STREQ(s.argument, "plan");
    }
  }
  stream.wait();
  EXPECT_EQ(y.read_back(), make_input());
}

TEST(device_keyed, EveryPlanTakesAKey) {
  const scoped_stream stream;
  const plan p = make_plan();
  const floats x(make_input());
  const floats y(make_input());
  const device_buffer blob(p.size_bytes());
  ASSERT_TRUE(compress(p, x.const_view(), view(blob), key, stream));
  ASSERT_TRUE(decompress(p, const_view(blob), y.view(), {77, 78}, stream));
  stream.wait();
  EXPECT_EQ(y.read_back(), host_values(p, host_blob(p, make_input(), key)));
}

TEST(device_keyed, AnotherKeyGivesOtherValues) {
  const scoped_stream stream;
  for (const plan& p : keyed_plans()) {
    const floats x(make_input());
    const floats y(make_input());
    const device_buffer blob(p.size_bytes());
    ASSERT_TRUE(compress(p, x.const_view(), view(blob), key, stream));
    ASSERT_TRUE(decompress(p, const_view(blob), y.view(), {key.seed, key.offset + 1}, stream));
    stream.wait();
    const auto expected = host_blob(p, make_input(), key);
    EXPECT_EQ(blob.bytes(), expected);
    EXPECT_NE(y.read_back(), host_values(p, expected, {}, key));
    EXPECT_EQ(y.read_back(), host_values(p, expected, {}, random_key{key.seed, key.offset + 1}));
  }
}

TEST(device_keyed, RotatedCodesTakeNoRanges) {
  const scoped_stream stream;
  const floats x(make_input());
  const device_array<float> pair({-1.0f, 1.0f});
  options o;
  o.ranges = given_ranges::of_tensor(pair.as<const float>());
  for (const plan& p : keyed_plans()) {
    const device_buffer blob(p.size_bytes());
    const status s = compress(p, x.const_view(), view(blob), key, stream, o);
    EXPECT_EQ(s.ok(), !p.is_rotated());
    if (p.is_rotated()) EXPECT_EQ(s.code, error::wrong_plan);
  }
  stream.wait();
}

__global__ void advance(random_key* at) {
  ++at->offset;
}

TEST(device_keyed, GraphsReplayBothWaysWithAFreshDeviceKey) {
  const scoped_stream stream;
  for (const plan& p : keyed_plans()) {
    const floats x(make_input());
    const floats y(make_input());
    const device_buffer blob(p.size_bytes());
    const device_array<random_key> at({{9, 100}});
    options o;
    o.device_key = at.as<random_key>();
    const captured graph(stream, [&] {
      advance<<<1, 1, 0, stream>>>(at.as<random_key>());
      EXPECT_TRUE(compress(p, x.const_view(), view(blob), {}, stream, o));
      EXPECT_TRUE(decompress(p, const_view(blob), y.view(), {}, stream, o));
    });
    for (u64 replay = 1; replay <= 2; ++replay) {
      graph.replay(stream);
      const random_key drawn{9, 100 + replay};
      const auto expected = host_blob(p, make_input(), drawn);
      EXPECT_EQ(blob.bytes(), expected);
      EXPECT_EQ(y.read_back(), host_values(p, expected, {}, drawn));
    }
  }
}

TEST(device_keyed, AStashKeepsItsKey) {
  const scoped_stream stream;
  const floats x(make_input());
  for (const plan& p : keyed_plans()) {
    const floats y(std::vector<float>(num_elements, 0.0f));
    const auto expected = host_values(p, host_blob(p, make_input(), key), {}, key);
    auto kept = stash::compress(p, x.const_view(), key, stream);
    ASSERT_TRUE(kept) << to_string(kept.status());
    const stash moved = std::move(*kept);
    ASSERT_TRUE(moved.restore_add(y.view(), stream));
    stream.wait();
    EXPECT_EQ(y.read_back(), expected);
    ASSERT_TRUE(moved.restore(y.view(), stream));
    stream.wait();
    EXPECT_EQ(y.read_back(), expected);
  }
}

TEST(device_keyed, AStashOfADeviceKeyNeedsItAgain) {
  const scoped_stream stream;
  const floats x(make_input());
  const floats y(make_input());
  const device_array<random_key> at({key});
  options o;
  o.device_key = at.as<random_key>();
  for (const plan& p : keyed_plans()) {
    const auto kept = stash::compress(p, x.const_view(), {1, 1}, stream, o);
    ASSERT_TRUE(kept) << to_string(kept.status());
    EXPECT_EQ(kept->restore(y.view(), stream).code, error::wrong_plan);
    ASSERT_TRUE(kept->restore(y.view(), stream, o));
    stream.wait();
    EXPECT_EQ(y.read_back(), host_values(p, host_blob(p, make_input(), key), {}, key));
  }
}

}  // namespace
}  // namespace furl::test
