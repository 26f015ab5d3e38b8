// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Every call for host memory on a thread with little stack: musl gives threads 128 KiB, and
// runtimes with threads of their own less.

#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <functional>

#include "support/inputs.hpp"
#include "support/run.hpp"

namespace furl::test {
namespace {

#if !defined(FURL_SANITIZED)

constexpr std::size_t stack_bytes = 128 * 1024;
constexpr std::size_t limit_bytes = 64 * 1024;  // of a call, as compress.hpp says
constexpr u8 paint = 0xA5;

/// Bytes of stack that a thread with stack_bytes of it has touched when it has run a function.
std::size_t touched(const std::function<void()>& function) {
  alignas(64) static u8 stack[stack_bytes];
  std::fill(stack, stack + stack_bytes, paint);
  pthread_attr_t attributes;
  pthread_t thread;
  EXPECT_EQ(pthread_attr_init(&attributes), 0);
  EXPECT_EQ(pthread_attr_setstack(&attributes, stack, stack_bytes), 0);
  const auto run = [](void* f) -> void* {
    (*static_cast<const std::function<void()>*>(f))();
    return nullptr;
  };
  auto copy = function;
  EXPECT_EQ(pthread_create(&thread, &attributes, run, &copy), 0);
  EXPECT_EQ(pthread_join(thread, nullptr), 0);
  pthread_attr_destroy(&attributes);
  const auto* const used =
      std::find_if(stack, stack + stack_bytes, [](u8 b) { return b != paint; });
  return static_cast<std::size_t>(stack + stack_bytes - used);
}

/// What a thread needs that does nothing is not the call's.
void expect_little_stack(const char* name, const std::function<status()>& call) {
  static const std::size_t idle = touched([] {});
  status s;
  const std::size_t used = touched([&] { s = call(); }) - idle;
  EXPECT_TRUE(s) << name << ": " << to_string(s);
  EXPECT_LE(used, limit_bytes) << name;
}

TEST(Stack, CallsOfEveryWindowAndType) {
  const std::pair<extents, extents> problems[] = {{{70000}, {}},
                                                  {{20, 56, 57}, {1, 8, 8}},
                                                  {{3, 40, 1100}, {1, 8, 8}},
                                                  {{130, 140}, {64, 64}},
                                                  {{2, 33, 40, 50}, {1, 16, 16, 16}},
                                                  {{2, 9, 9, 300}, {1, 8, 8, 1}},
                                                  {{3, 60, 60}, {1, 7, 7}},
                                                  {{1, 130, 70}, {1, 64, 32}},
                                                  {{9, 4096}, {1, 64}},
                                                  {{64, 3, 5, 300}, {1, 2, 32, 64}},
                                                  {{130, 64, 9}, {64, 64, 1}}};
  for (const auto& [shape, window] : problems) {
    for (const bool is_mixed : {false, true}) {
      codec c;
      c.window = window;
      c.rounding = is_mixed ? rounding::nearest : rounding::stochastic;
      plan p = make_plan(c, shape);
      std::vector<u8> tile_bits;
      if (is_mixed) {
        tile_bits.assign(static_cast<std::size_t>(p.num_tiles()), 5);
        p = *plan::make_mixed(c, shape, u64(p.num_tiles()) * 5);
      }
      const std::vector<float> pair = {-0.5f, 0.5f};
      const std::vector<u8> x = bytes_of(uniform_floats(std::size_t(p.num_elements()), 1));
      std::vector<u8> y(x);
      guarded_buffer blob(p.size_bytes());
      for (const dtype type : all_types) {
        SCOPED_TRACE(std::string(name(type)) + ", " + std::to_string(window[0]) + " x " +
                     std::to_string(window[1]) + ", rank " + std::to_string(shape.rank));
        host::options o{nullptr, tile_bits};
        const const_bytes read(blob.data(), p.size_bytes());
        const values out(y.data(), type, p.num_elements());
        expect_little_stack("decompress", [&] { return host::decompress(p, read, out, o); });
        expect_little_stack("decompress_add",
                            [&] { return host::decompress_add(p, read, out, o); });
        if (is_mixed) o.ranges = given_ranges::of_tensor(pair.data());
        expect_little_stack("compress", [&] {
          return host::compress(p, {x.data(), type, p.num_elements()}, {blob.data(), blob.size()},
                                {1, 2}, o);
        });
      }
    }
  }
}

TEST(Stack, CallsOfRotatedAndDitheredCodes) {
  codec dithered;
  dithered.rounding = rounding::dithered;
  for (codec c : {rotated_codec(1), rotated_codec(2), rotated_codec(3), rotated_codec(4), dithered,
                  positives_codec(2)}) {
    for (const extents& window : {extents{}, extents{1, 8, 8}}) {
      if (c.coding != coding::positives) c.window = window;
      const plan p = make_plan(c, {20, 56, 57});
      const std::vector<u8> x = bytes_of(uniform_floats(std::size_t(p.num_elements()), 1));
      std::vector<u8> y(x);
      guarded_buffer blob(p.size_bytes());
      for (const dtype type : all_types) {
        const const_bytes read(blob.data(), p.size_bytes());
        const values out(y.data(), type, p.num_elements());
        const random_key key{1, 2};
        expect_little_stack("compress", [&] {
          return host::compress(p, {x.data(), type, p.num_elements()}, {blob.data(), blob.size()},
                                key);
        });
        expect_little_stack("decompress", [&] { return host::decompress(p, read, out, key); });
        expect_little_stack("decompress_add",
                            [&] { return host::decompress_add(p, read, out, key); });
        if (!p.has_mask() && !p.has_lfc()) {
          const float number[] = {0.5f, 1.5f, 2.5f};
          const host::options o{nullptr, {}, {}, {number, number, 3, 57}};
          expect_little_stack("compress normalised", [&] {
            return host::compress(p, {x.data(), type, p.num_elements()}, {blob.data(), blob.size()},
                                  key, o);
          });
          expect_little_stack("decompress_add normalised",
                              [&] { return host::decompress_add(p, read, out, key, o); });
          const compress_entry in{
              &p, {x.data(), type, p.num_elements()}, {blob.data(), blob.size()}};
          const decompress_entry restored{&p, read, out};
          expect_little_stack("compress_batch", [&] {
            return host::compress_batch({&in, 1}, key);
          });
          expect_little_stack("decompress_batch", [&] {
            return host::decompress_batch({&restored, 1}, key);
          });
        }
        if (!p.has_mask()) continue;
        expect_little_stack("relu", [&] {
          return host::relu(p, {x.data(), type, p.num_elements()}, out, {blob.data(), blob.size()},
                            key);
        });
      }
    }
  }
}

TEST(Stack, CallsOfCodes) {
  for (int bits = 1; bits <= 8; ++bits) {
    const plan p = *plan::make_codes(bits, {5000});
    std::vector<u8> codes = random_bytes(5000, 1);
    guarded_buffer blob(p.size_bytes());
    const bytes view(blob.data(), blob.size());
    expect_little_stack("pack", [&] { return host::pack(p, codes, view); });
    expect_little_stack("unpack", [&] { return host::unpack(p, view, codes); });
  }
}

#endif

}  // namespace
}  // namespace furl::test
