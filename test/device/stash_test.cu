// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <type_traits>
#include <utility>
#include <vector>

#include "device/buffer.cuh"
#include "device/device.hpp"
#include "device/library.cuh"

namespace furl::test {
namespace {

/// Counts what a stash asks of its allocator.
struct ledger {
  int allocated = 0;
  int freed = 0;
  u64 live_bytes = 0;
  bool empty_handed = false;
  cudaStream_t stream = nullptr;

  allocator make_allocator() {
    allocator a;
    a.context = this;
    a.allocate = [](void* context, u64 size, cudaStream_t stream) -> void* {
      auto& self = *static_cast<ledger*>(context);
      if (self.empty_handed) return nullptr;
      ++self.allocated;
      self.live_bytes += size;
      self.stream = stream;
      void* pointer = nullptr;
      require(cudaMallocAsync(&pointer, size, stream));
      return pointer;
    };
    a.deallocate = [](void* context, void* pointer, u64 size, cudaStream_t stream) {
      auto& self = *static_cast<ledger*>(context);
      ++self.freed;
      self.live_bytes -= size;
      EXPECT_EQ(self.stream, stream);
      require(cudaFreeAsync(pointer, stream));
    };
    return a;
  }
};

constexpr i64 num_elements = 3000;

struct setup {
  setup() : input(num_elements), x(num_elements), y(num_elements) {
    for (i64 i = 0; i < num_elements; ++i) input[std::size_t(i)] = float(i % 97) - 40.0f;
    x.write(input.data());
    y.write(input.data());
    codec c;
    c.window = {4};
    p = *plan::make(c, {num_elements});
  }
  const_values in() const { return {x.as<const float>(), num_elements}; }
  values out() const { return {y.as<float>(), num_elements}; }

  scoped_stream stream;
  std::vector<float> input;
  device_array<float> x;
  device_array<float> y;
  plan p;
};

static_assert(!std::is_copy_constructible_v<stash> && !std::is_copy_assignable_v<stash>);
static_assert(std::is_nothrow_move_constructible_v<stash>);
static_assert(std::is_nothrow_move_assignable_v<stash>);

TEST(device_stash, RestoresAnyNumberOfTimes) {
  const setup s;
  ledger memory;
  {
    const auto kept = stash::compress(s.p, s.in(), {1, 2}, s.stream, {}, memory.make_allocator());
    ASSERT_TRUE(kept) << to_string(kept.status());
    EXPECT_EQ(kept->plan(), s.p);
    ASSERT_TRUE(kept->restore(s.out(), s.stream));
    s.stream.wait();
    const auto first = s.y.read_back();
    ASSERT_TRUE(kept->restore(s.out(), s.stream));
    ASSERT_TRUE(kept->restore_add(s.out(), s.stream));
    s.stream.wait();
    const auto twice = s.y.read_back();
    for (std::size_t i = 0; i < twice.size(); ++i) ASSERT_EQ(twice[i], first[i] + first[i]);
    EXPECT_EQ(memory.allocated, 1);
    EXPECT_EQ(memory.live_bytes, s.p.size_bytes());
  }
  EXPECT_EQ(memory.freed, 1);
  EXPECT_EQ(memory.live_bytes, 0u);
}

TEST(device_stash, HoldsWhatACodebookMakes) {
  const setup s;
  ledger memory;
  const plan codes = *plan::make_codes(1, {num_elements});
  const codebook book = positive_codebook(-2.0f, 3.0f);
  {
    const auto kept = stash::make(
        codes,
        [&](bytes blob) {
          return pack(codes, s.in(), book, blob, {1, 2}, s.stream);
        },
        s.stream, memory.make_allocator());
    ASSERT_TRUE(kept) << to_string(kept.status());
    EXPECT_EQ(memory.live_bytes, codes.size_bytes());
    EXPECT_EQ(kept->blob().size_bytes, codes.size_bytes());
    ASSERT_TRUE(unpack(kept->plan(), kept->blob(), book, s.out(), s.stream));
    s.stream.wait();
    const auto y = s.y.read_back();
    for (std::size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], s.input[i] > 0.0f ? 3.0f : -2.0f);
    const auto refused = stash::make(
        s.p, [&](bytes blob) { return pack(s.p, s.in(), book, blob, {}, s.stream); }, s.stream,
        memory.make_allocator());
    EXPECT_EQ(refused.status().code, error::wrong_plan);
  }
  EXPECT_EQ(memory.live_bytes, 0u);
}

TEST(device_stash, MovesItsBytes) {
  const setup s;
  ledger memory;
  {
    auto made = stash::compress(s.p, s.in(), {1, 2}, s.stream, {}, memory.make_allocator());
    ASSERT_TRUE(made);
    stash first = std::move(*made);
    EXPECT_EQ(made->blob().data, nullptr);
    stash second;
    second = std::move(first);
    EXPECT_NE(second.blob().data, nullptr);
    EXPECT_TRUE(second.restore(s.out(), s.stream));
    s.stream.wait();
  }
  EXPECT_EQ(memory.allocated, 1);
  EXPECT_EQ(memory.freed, 1);
}

TEST(device_stash, GoesToTheHostAndBack) {
  const setup s;
  const auto kept = stash::compress(s.p, s.in(), {1, 2}, s.stream);
  ASSERT_TRUE(kept);
  ASSERT_TRUE(kept->restore(s.out(), s.stream));
  s.stream.wait();
  const auto expected = s.y.read_back();

  std::vector<u8> block(kept->block_bytes());
  EXPECT_EQ(block.size(), 96 + s.p.size_bytes());
  ASSERT_TRUE(kept->copy_to_host(host::bytes(block), s.stream));
  s.stream.wait();
  const auto again = stash::from_host(host::const_bytes(block), s.stream);
  ASSERT_TRUE(again) << to_string(again.status());
  EXPECT_EQ(again->plan(), s.p);
  s.y.write(std::vector<float>(num_elements).data());
  ASSERT_TRUE(again->restore(s.out(), s.stream));
  s.stream.wait();
  EXPECT_EQ(s.y.read_back(), expected);

  std::vector<u8> cut(block.begin(), block.end() - 1);
  EXPECT_EQ(stash::from_host(host::const_bytes(cut), s.stream).status().code, error::wrong_size);
  EXPECT_EQ(kept->copy_to_host(host::bytes(cut), s.stream).code, error::wrong_size);
  block[4] ^= 1;
  EXPECT_EQ(stash::from_host(host::const_bytes(block), s.stream).status().code, error::corrupt);
}

TEST(device_stash, KeepsCodes) {
  const setup s;
  std::vector<u8> mask(num_elements);
  for (std::size_t i = 0; i < mask.size(); ++i) mask[i] = u8(i * i % 3 == 0);
  const device_buffer codes(mask);
  const device_buffer back(mask.size());
  const auto kept =
      stash::pack(*plan::make_codes(1, {num_elements}), {codes.data(), codes.size()}, s.stream);
  ASSERT_TRUE(kept);
  ASSERT_TRUE(kept->unpack({back.data(), back.size()}, s.stream));
  s.stream.wait();
  EXPECT_EQ(back.bytes(), mask);
}

TEST(device_stash, ReturnsWhatItCannotKeep) {
  const setup s;
  ledger memory;
  memory.empty_handed = true;
  const auto none = stash::compress(s.p, s.in(), {1, 2}, s.stream, {}, memory.make_allocator());
  EXPECT_EQ(none.status().code, error::out_of_memory);
  memory.empty_handed = false;
  const auto refused = stash::compress(s.p, {}, {1, 2}, s.stream, {}, memory.make_allocator());
  EXPECT_STREQ(refused.status().argument, "x");
  EXPECT_EQ(memory.allocated, memory.freed);
  const auto empty = stash::compress({}, {}, {1, 2}, s.stream, {}, memory.make_allocator());
  ASSERT_TRUE(empty);
  EXPECT_TRUE(empty->restore({}, s.stream));
  EXPECT_EQ(memory.live_bytes, 0u);
}

}  // namespace
}  // namespace furl::test
