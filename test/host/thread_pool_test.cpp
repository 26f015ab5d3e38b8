// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

#include "furl/thread_pool.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <set>
#include <string>
#include <system_error>

#include "support/inputs.hpp"
#include "support/run.hpp"

namespace furl::test {
namespace {

TEST(ThreadPool, RunsEveryShareOnce) {
  for (const int threads : {-3, 0, 1, 2, 3, 8}) {
    host::thread_pool pool(threads);
    const int shares = std::max(1, threads);
    EXPECT_EQ(pool.num_threads(), shares);
    for (int repeat = 0; repeat < 200; ++repeat) {
      std::vector<int> runs(static_cast<std::size_t>(shares));
      pool.run([&](int share) { ++runs[static_cast<std::size_t>(share)]; });
      ASSERT_EQ(runs, std::vector<int>(static_cast<std::size_t>(shares), 1));
    }
  }
}

TEST(ThreadPool, SharesHaveThreadsOfTheirOwn) {
  host::thread_pool pool(4);
  std::mutex mutex;
  std::set<std::thread::id> ids;
  std::thread::id of_share_0;
  pool.run([&](int share) {
    const std::lock_guard<std::mutex> lock(mutex);
    ids.insert(std::this_thread::get_id());
    if (share == 0) of_share_0 = std::this_thread::get_id();
  });
  EXPECT_EQ(ids.size(), 4u);
  EXPECT_EQ(of_share_0, std::this_thread::get_id());
}

TEST(ThreadPool, SharedByManyCallers) {
  host::thread_pool pool(3);
  std::atomic<int> running{0};
  std::atomic<int> most{0};
  std::atomic<int> total{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c)
    callers.emplace_back([&] {
      for (int repeat = 0; repeat < 100; ++repeat)
        pool.run([&](int) {
          const int now = ++running;
          for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) continue;
          ++total;
          --running;
        });
    });
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(total, 4 * 100 * 3);
  EXPECT_LE(most, 3) << "two calls ran at once";
}

TEST(ThreadPool, LentThreadsGiveTheSameBytes) {
  struct lent {
    int calls = 0;
    static void run(void* context, int num_shares, void (*call)(const void*, int),
                    const void* function) {
      ++static_cast<lent*>(context)->calls;
      for (int share = num_shares; share-- > 0;) std::thread(call, function, share).join();
    }
  } other;
  host::thread_pool pool(3, lent::run, &other);
  EXPECT_EQ(pool.num_threads(), 3);
  const plan p = *plan::make({}, {5000});
  const std::vector<float> x = normal_floats(5000, 1);
  std::vector<u8> alone(p.size_bytes() + 16), blob(p.size_bytes() + 16);
  const auto compress = [&](std::vector<u8>& to, host::thread_pool* with) {
    void* at = to.data();
    std::size_t space = to.size();
    std::align(16, p.size_bytes(), at, space);
    ASSERT_TRUE(host::compress(p, x, {at, p.size_bytes()}, {1, 2}, {with, {}, {}}).ok());
    to.assign(static_cast<u8*>(at), static_cast<u8*>(at) + p.size_bytes());
  };
  compress(alone, nullptr);
  compress(blob, &pool);
  EXPECT_EQ(blob, alone);
  EXPECT_EQ(other.calls, 1);
}

TEST(ThreadPool, CanBeDestroyedUnused) {
  for (int repeat = 0; repeat < 50; ++repeat) const host::thread_pool pool(3);
}

#if !defined(FURL_SANITIZED)
// Case 138: a child that fork() has made has none of the pool's threads.
TEST(ThreadPool, WorksInAForkedChild) {
  host::thread_pool pool(3);
  std::atomic<int> total{0};
  pool.run([&](int) { ++total; });
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(20);  // rather than wait for ever
    const auto here = std::this_thread::get_id();
    int shares = 0;
    pool.run([&](int share) { shares += std::this_thread::get_id() == here ? 1 << share : 0; });
    pool.~thread_pool();
    host::thread_pool another(2);
    another.run([&](int) { ++total; });
    _exit(shares == 7 && total == 5 ? 0 : 1);
  }
  int how = 0;
  ASSERT_EQ(waitpid(child, &how, 0), child);
  EXPECT_TRUE(WIFEXITED(how)) << "killed by signal " << WTERMSIG(how);
  EXPECT_EQ(WEXITSTATUS(how), 0);
  pool.run([&](int) { ++total; });
  EXPECT_EQ(total, 6);
}

// At the fork another thread is in the middle of a call, so that the child finds its lock taken.
TEST(ThreadPool, WorksInAChildOfABusyPool) {
  for (const int num_threads : {1, 2}) {
    host::thread_pool pool(num_threads);
    std::atomic<bool> is_running{false};
    std::atomic<bool> is_done{false};
    std::thread other([&] {
      pool.run([&](int) {
        is_running = true;
        while (!is_done) std::this_thread::yield();
      });
    });
    while (!is_running) std::this_thread::yield();
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      int shares = 0;
      pool.run([&](int share) { shares += 1 << share; });
      _exit(shares == (1 << num_threads) - 1 ? 0 : 1);
    }
    is_done = true;
    other.join();
    int how = 0;
    ASSERT_EQ(waitpid(child, &how, 0), child);
    EXPECT_TRUE(WIFEXITED(how)) << "killed by signal " << WTERMSIG(how);
    EXPECT_EQ(WEXITSTATUS(how), 0);
  }
}
#endif

/// Outputs with a number of threads.
struct threaded_outputs {
  std::vector<u8> blob;
  std::vector<u8> decoded;
  std::vector<u8> added;
  bool operator==(const threaded_outputs& other) const {
    return blob == other.blob && decoded == other.decoded && added == other.added;
  }
};

threaded_outputs run_with(int threads, const reference::problem& p, const std::vector<float>& x) {
  const auto engine = make_host_backend(threads);
  const plan made = make_plan(p);
  threaded_outputs out;
  out.blob = compress(*engine, made, bytes_of(x), dtype::f32, {4, 5}, p.widths);
  out.decoded = decompress(*engine, made, out.blob, dtype::bf16, p.widths);
  out.added = decompress_add(*engine, made, out.blob, dtype::f32, bytes_of(x), p.widths);
  return out;
}

// More threads than tiles, bands that end within tiles, tiles that straddle several shares.
TEST(Threads, NumberDoesNotMatter) {
  codec flat;
  codec images = flat, rows = flat, wide = flat, last = flat, one_band = flat;
  images.window = {1, 1, 8, 8};
  rows.window = {8, 1};
  wide.window = {1, 2, 1};
  last.window = {1, 64};
  one_band.window = {64, 1};
  const reference::problem problems[] = {{flat, {10}},
                                         {flat, {20 * 1024 + 77}},
                                         {images, {2, 3, 28, 75}},
                                         {images, {3, 4, 7, 7}},
                                         {rows, {100, 37}},
                                         {wide, {2, 9, 1500}},
                                         {last, {50, 130}},
                                         {one_band, {64, 50}},
                                         {images, {1, 1, 8, 1100}},
                                         {flat, {6 * 1024 + 1}, {1, 8, 3, 5, 2, 7, 4}},
                                         {rows, {7 * 1024, 1}, {1, 8, 3, 5, 2, 7, 4}}};
  int index = 0;
  for (const auto& p : problems) {
    const auto x = normal_floats(static_cast<std::size_t>(reference::num_elements(p)), 3);
    const threaded_outputs one = run_with(1, p, x);
    EXPECT_EQ(one.blob, reference::compress(p, bytes_of(x), dtype::f32, {4, 5}));
    for (const int threads : {2, 3, 4, 5, 7, 16})
      EXPECT_TRUE(run_with(threads, p, x) == one) << "problem " << index << ", " << threads;
    ++index;
  }
}

TEST(Threads, NumberDoesNotMatterForCodes) {
  const plan p = *plan::make_codes(3, {9 * 1024 + 5});
  const auto codes = random_bytes(9 * 1024 + 5, 4);
  const auto one = make_host_backend(1);
  const auto blob = pack(*one, p, codes);
  for (const int threads : {2, 3, 7, 16}) {
    const auto many = make_host_backend(threads);
    EXPECT_EQ(pack(*many, p, codes), blob);
    EXPECT_EQ(unpack(*many, p, blob), unpack(*one, p, blob));
  }
}

TEST(Threads, NoPoolIsTheCallingThread) {
  const plan p = make_plan({}, {5000});
  const auto x = normal_floats(5000, 3);
  guarded_buffer blob(p.size_bytes());
  ASSERT_TRUE(host::compress(p, x, {blob.data(), blob.size()}, {4, 5}));
  EXPECT_EQ(blob.bytes(), compress(*backends()[0], p, x, {4, 5}));
}

#if !defined(FURL_SANITIZED)
/// Starts more threads than there is room for, and exits with 0 if that throws as it should.
[[noreturn]] void exhaust_threads() {
  const rlimit limit{rlim_t{1} << 30, rlim_t{1} << 30};  // bytes, for stacks of 8 MB
  (void)setrlimit(RLIMIT_AS, &limit);
  try {
    const host::thread_pool pool(1000);
  } catch (const std::system_error&) {
    std::exit(0);
  }
  std::exit(1);
}

TEST(ThreadPoolDeathTest, RefusedThreadThrowsAndEndsTheOthers) {
  EXPECT_EXIT(exhaust_threads(), testing::ExitedWithCode(0), "");
}
#endif

}  // namespace
}  // namespace furl::test
