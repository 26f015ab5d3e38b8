// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once


#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "furl/config.hpp"

namespace furl::host {
inline namespace v0_1 {

/// Threads that wait for work, so that a call need not start its own. Results never depend on
/// their number. A pool may be used from several threads, one call at a time.
class thread_pool {
 public:
  /// num_threads counts the calling thread: 1 (or less) starts none.
  /// Throws std::system_error if the system refuses a thread.
  explicit thread_pool(int num_threads) : thread_pool(num_threads, no_threads_yet{}) {
    threads_.reserve(static_cast<std::size_t>(num_threads_ - 1));
    for (int share = 1; share < num_threads_; ++share)
      threads_.emplace_back([this, share] { work(share); });
  }
  ~thread_pool() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
    }
    start_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  thread_pool(const thread_pool&) = delete;
  thread_pool& operator=(const thread_pool&) = delete;

  int num_threads() const { return num_threads_; }  // with the calling one

  /// Calls function(share) for every share in 0..num_threads() - 1, each in a thread of its own (0
  /// in the caller's), and returns when all have. function must not throw nor call run() itself.
  template <class Function>
  void run(const Function& function) {
    const std::lock_guard<std::mutex> one_call(call_mutex_);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      invoke_ = [](const void* f, int share) { (*static_cast<const Function*>(f))(share); };
      function_ = &function;
      running_ = num_threads_ - 1;
      ++generation_;
    }
    start_.notify_all();
    function(0);
    std::unique_lock<std::mutex> lock(mutex_);
    done_.wait(lock, [this] { return running_ == 0; });
  }

 private:
  // A pool without threads yet: whole, so that the destructor ends those that did start where one
  // more is refused (without try, which -fno-exceptions forbids).
  struct no_threads_yet {};
  thread_pool(int num_threads, no_threads_yet) : num_threads_(num_threads > 1 ? num_threads : 1) {}

  void work(int share) {
    unsigned long long seen = 0;
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      start_.wait(lock, [&] { return stopping_ || generation_ != seen; });
      if (stopping_) return;
      seen = generation_;
      const auto invoke = invoke_;
      const void* const function = function_;
      lock.unlock();
      invoke(function, share);
      lock.lock();
      if (--running_ == 0) done_.notify_one();
    }
  }

  const int num_threads_;
  std::mutex call_mutex_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable start_;
  std::condition_variable done_;
  void (*invoke_)(const void*, int) = nullptr;
  const void* function_ = nullptr;
  unsigned long long generation_ = 0;
  int running_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace v0_1
}  // namespace furl::host
