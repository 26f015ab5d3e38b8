// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

#include "furl/compress.hpp"
#include "furl/extra/codebook.hpp"
#include "support/inputs.hpp"
#include "support/run.hpp"

namespace furl::test {
namespace {

static_assert(!std::is_copy_constructible_v<host::stash>);
static_assert(!std::is_copy_assignable_v<host::stash>);
static_assert(std::is_nothrow_move_constructible_v<host::stash>);
static_assert(std::is_nothrow_move_assignable_v<host::stash>);

/// Counts what passes through it, and can be told to fail.
struct counting_memory {
  int allocations = 0;
  int deallocations = 0;
  u64 bytes_now = 0;
  u64 last_size = 0;
  bool fails = false;

  host::allocator allocator() {
    host::allocator out;
    out.allocate = [](void* context, u64 size) -> void* {
      auto& self = *static_cast<counting_memory*>(context);
      ++self.allocations;
      if (self.fails) return nullptr;
      self.bytes_now += size;
      self.last_size = size;
      return ::operator new (static_cast<std::size_t>(size), std::align_val_t{16});
    };
    out.deallocate = [](void* context, void* pointer, u64 size) {
      auto& self = *static_cast<counting_memory*>(context);
      ++self.deallocations;
      self.bytes_now -= size;
      ::operator delete (pointer, std::align_val_t{16});
    };
    out.context = this;
    return out;
  }
};

class Stash : public testing::Test {
 protected:
  result<host::stash> keep(u64 seed = 1) {
    return host::stash::compress(p, x, {seed, 2}, {}, memory.allocator());
  }
  std::vector<float> restored(const host::stash& s) const {
    std::vector<float> y(x.size());
    EXPECT_TRUE(s.restore(y));
    return y;
  }

  const plan p = make_plan({}, {3, 500});
  const std::vector<float> x = normal_floats(1500, 2);
  counting_memory memory;
};

TEST_F(Stash, HoldsWhatACodebookMakes) {
  const plan codes = *plan::make_codes(2, {3, 500});
  const float levels[] = {-1.5f, -0.25f, 0.5f, 2.0f};
  const codebook book = stochastic_codebook(levels, 4);
  const auto with_codebook = [&](const plan& of) {
    const auto write = [&](bytes blob) { return host::pack(of, x, book, blob, {1, 2}); };
    return host::stash::make(of, write, memory.allocator());
  };
  const auto kept = with_codebook(codes);
  ASSERT_TRUE(kept);
  EXPECT_EQ(memory.bytes_now, codes.size_bytes());
  std::vector<u8> expected(codes.size_bytes());
  ASSERT_TRUE(host::pack(codes, x, book, expected, {1, 2}));
  const auto* const blob = static_cast<const u8*>(kept->blob().data);
  EXPECT_EQ(std::vector<u8>(blob, blob + expected.size()), expected);
  std::vector<float> y(x.size());
  EXPECT_TRUE(host::unpack(kept->plan(), kept->blob(), book, y));
  for (const float v : y) EXPECT_TRUE(std::count(levels, levels + 4, v) == 1) << v;
  EXPECT_EQ(with_codebook(p).status().argument, std::string("plan"));
}

TEST_F(Stash, HoldsWhatCompressWrites) {
  const auto kept = keep();
  ASSERT_TRUE(kept);
  const auto expected = compress(*backends()[0], p, x, {1, 2});
  ASSERT_EQ(kept->blob().size_bytes, expected.size());
  const auto* const blob = static_cast<const u8*>(kept->blob().data);
  EXPECT_EQ(std::vector<u8>(blob, blob + expected.size()), expected);
  EXPECT_EQ(kept->plan(), p);
  EXPECT_EQ(restored(*kept), decompress(*backends()[0], p, expected));
  auto sum = x;
  EXPECT_TRUE(kept->restore_add(sum));
  EXPECT_EQ(bytes_of(sum), decompress_add(*backends()[0], p, expected, dtype::f32, bytes_of(x)));
}

TEST_F(Stash, RemembersItsKey) {
  codec dithered;
  dithered.rounding = rounding::dithered;
  for (const plan& of :
       {make_plan(rotated_codec(2), {3, 500}), make_plan(rotated_codec(3), {3, 500}),
        make_plan(dithered, {3, 500}), make_plan(positives_codec(1), {3, 500})}) {
    const random_key key{7, 8};
    auto kept = host::stash::compress(of, x, key, {}, memory.allocator());
    ASSERT_TRUE(kept);
    const auto expected = round_trip(*backends()[0], of, x, key);
    EXPECT_EQ(restored(*kept), expected);
    host::stash moved(std::move(*kept));
    EXPECT_EQ(restored(moved), expected);
    *kept = std::move(moved);
    EXPECT_EQ(restored(*kept), expected);
    std::vector<float> sum(x.size());
    EXPECT_TRUE(kept->restore_add(sum));
    EXPECT_EQ(sum, expected);
    // One that was not made by `compress` is given the key.
    const auto write = [&](bytes blob) { return host::compress(of, x, blob, key); };
    const auto other = host::stash::make(of, write, memory.allocator());
    ASSERT_TRUE(other);
    EXPECT_EQ(other->restore(sum).code, error::wrong_plan);
    EXPECT_EQ(other->restore_add(sum).code, error::wrong_plan);
    EXPECT_TRUE(other->restore(sum, key));
    EXPECT_EQ(sum, expected);
    std::vector<float> twice(x.size());
    EXPECT_TRUE(other->restore_add(twice, key));
    EXPECT_EQ(twice, expected);
  }
}

TEST_F(Stash, AllocatesOnceAndFreesOnce) {
  {
    const auto kept = keep();
    ASSERT_TRUE(kept);
    EXPECT_EQ(memory.allocations, 1);
    EXPECT_EQ(memory.last_size, p.size_bytes());
    restored(*kept);
    restored(*kept);
    EXPECT_EQ(memory.allocations, 1);
    EXPECT_EQ(memory.deallocations, 0);
  }
  EXPECT_EQ(memory.deallocations, 1);
  EXPECT_EQ(memory.bytes_now, 0u);
}

TEST_F(Stash, MovesWithoutAllocating) {
  auto kept = keep();
  ASSERT_TRUE(kept);
  const auto expected = restored(*kept);
  const void* const blob = kept->blob().data;
  host::stash moved = std::move(*kept);
  EXPECT_EQ(moved.blob().data, blob);
  EXPECT_EQ(kept->plan(), plan{});
  EXPECT_EQ(kept->blob().data, nullptr);
  EXPECT_EQ(restored(moved), expected);

  auto other = keep(7);
  ASSERT_TRUE(other);
  const auto other_expected = restored(*other);
  moved = std::move(*other);
  EXPECT_EQ(restored(moved), other_expected);
  host::stash empty;
  empty = std::move(moved);
  EXPECT_EQ(restored(empty), other_expected);
  EXPECT_EQ(memory.allocations, 2);
  { const host::stash last = std::move(empty); }
  EXPECT_GE(memory.deallocations, 1);
}

// Case 139: the memory that an assignment replaces goes back at once.
TEST_F(Stash, AssignmentReleasesAtOnce) {
  auto a = keep(1);
  auto b = keep(2);
  ASSERT_TRUE(a);
  ASSERT_TRUE(b);
  const auto expected = restored(*b);
  *a = std::move(*b);
  EXPECT_EQ(memory.deallocations, 1);
  EXPECT_EQ(memory.bytes_now, p.size_bytes());
  EXPECT_EQ(restored(*a), expected);
  EXPECT_EQ(b->plan(), plan{});
  EXPECT_EQ(b->blob().data, nullptr);
  host::stash& same = *a;
  *a = std::move(same);
  EXPECT_EQ(memory.deallocations, 1);
  EXPECT_EQ(restored(*a), expected);
  *a = host::stash{};
  EXPECT_EQ(memory.bytes_now, 0u);
}

TEST_F(Stash, FreesAllAfterAssignments) {
  {
    auto a = keep(1);
    auto b = keep(2);
    auto c = keep(3);
    *a = std::move(*b);
    *b = std::move(*c);
    *c = host::stash{};
  }
  EXPECT_EQ(memory.allocations, 3);
  EXPECT_EQ(memory.deallocations, 3);
  EXPECT_EQ(memory.bytes_now, 0u);
}

TEST_F(Stash, FailingAllocatorIsAStatus) {
  memory.fails = true;
  const auto kept = keep();
  EXPECT_FALSE(kept);
  EXPECT_EQ(kept.status().code, error::out_of_memory);
  EXPECT_STREQ(kept.status().argument, "memory");
  EXPECT_EQ(memory.deallocations, 0);
  const auto codes =
      host::stash::pack(*plan::make_codes(1, {9}), std::vector<u8>(9), nullptr, memory.allocator());
  EXPECT_EQ(codes.status().code, error::out_of_memory);
}

TEST_F(Stash, RefusedArgumentsFreeTheirMemory) {
  EXPECT_FALSE(host::stash::compress(p, std::vector<float>(3), {}, {}, memory.allocator()));
  EXPECT_FALSE(host::stash::compress(*plan::make_codes(1, {1500}), x, {}, {}, memory.allocator()));
  EXPECT_EQ(memory.allocations, memory.deallocations);
  EXPECT_EQ(memory.bytes_now, 0u);
}

TEST_F(Stash, EmptyTensorNeedsNoMemory) {
  const auto kept =
      host::stash::compress(make_plan({}, {0, 8}), const_values{}, {}, {}, memory.allocator());
  ASSERT_TRUE(kept);
  EXPECT_EQ(memory.allocations, 0);
  EXPECT_TRUE(kept->restore(values{}));
  EXPECT_EQ(kept->plan().shape(), (extents{0, 8}));
  EXPECT_TRUE(host::stash{}.restore(values{}));
  EXPECT_FALSE(host::stash{}.restore(values(nullptr, dtype::f32, 1)));
}

TEST_F(Stash, RestoredFromManyThreadsAtOnce) {
  host::thread_pool pool(3);
  const auto kept = keep();
  ASSERT_TRUE(kept);
  const auto expected = restored(*kept);
  std::vector<std::vector<float>> y(6, std::vector<float>(x.size()));
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < y.size(); ++t)
    threads.emplace_back([&, t] {
      host::options o;
      if (t % 2 == 0) o.pool = &pool;  // one pool shared by some of the callers
      for (int repeat = 0; repeat < 20; ++repeat)
        if (!kept->restore(y[t], o)) y[t].assign(y[t].size(), -1.0f);
    });
  for (auto& thread : threads) thread.join();
  for (const auto& result : y) EXPECT_EQ(result, expected);
}

TEST_F(Stash, MixedAndCodes) {
  const plan mixed = *plan::make_mixed({}, {1500}, 7);
  const std::vector<u8> widths{5, 2};
  const auto kept = host::stash::compress(mixed, x, {1, 2}, {nullptr, widths});
  ASSERT_TRUE(kept);
  std::vector<float> y(1500);
  EXPECT_EQ(kept->restore(y).code, error::wrong_size) << "widths are needed again";
  EXPECT_TRUE(kept->restore(y, {nullptr, widths}));
  const auto blob = compress(*backends()[0], mixed, bytes_of(x), dtype::f32, {1, 2}, widths);
  EXPECT_EQ(bytes_of(y), decompress(*backends()[0], mixed, blob, dtype::f32, widths));

  const plan mask = *plan::make_codes(1, {700});
  const auto codes = random_bytes(700, 3);
  const auto packed = host::stash::pack(mask, codes);
  ASSERT_TRUE(packed);
  std::vector<u8> back(700);
  EXPECT_TRUE(packed->unpack(back));
  for (std::size_t i = 0; i < 700; ++i) EXPECT_EQ(back[i], codes[i] & 1);
  EXPECT_EQ(packed->restore(y).code, error::wrong_plan);
}

// The default allocator too gives what blobs need.
TEST_F(Stash, DefaultMemoryIsAligned) {
  const auto kept = host::stash::compress(p, x, {1, 2});
  ASSERT_TRUE(kept);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(kept->blob().data) % blob_alignment, 0u);
}

}  // namespace
}  // namespace furl::test
