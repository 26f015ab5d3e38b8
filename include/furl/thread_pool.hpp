// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// FOR CALLERS. Threads for calls for host memory: options.pool.

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>
#endif

#include "furl/config.hpp"

namespace furl::host {
inline namespace v0_2 {

/// Threads that wait for work, so that a call need not start its own. Results never depend on
/// their number. A pool may be used from several threads, one call at a time. After a fork() the
/// child has none of its threads: there it works on the calling thread alone.
class thread_pool {
 public:
  /// num_threads counts the calling thread: 1 (or less) starts none.
  /// Throws std::system_error if the system refuses a thread.
  explicit thread_pool(int num_threads) : thread_pool(num_threads, no_threads_yet{}) {
    state_->threads.reserve(static_cast<::std::size_t>(num_threads_ - 1));
    for (int share = 1; share < num_threads_; ++share)
      state_->threads.emplace_back([state = state_.get(), share] { state->work(share); });
  }

  /// Calls call(function, share) for every share in 0..num_shares - 1, in any threads, several at
  /// once or not, and returns when all have returned. It must not throw. Not null.
  using lender = void (*)(void* context, int num_shares,
                          void (*call)(const void* function, int share), const void* function);

  /// The threads of somebody else, such as those of a framework, which would compete with more.
  /// Its num_threads() is how many shares a call is cut into. The lender's threads must survive
  /// what the calling program does; after a fork() they are not asked.
  thread_pool(int num_shares, lender lend, void* context = nullptr)
      : thread_pool(num_shares, no_threads_yet{}) {
    lend_ = lend;
    context_ = context;
  }

  ~thread_pool() {
    if (is_forked()) {
      // Nothing can be destroyed: the threads are gone, and may have held a lock at the fork.
      (void)state_.release();
      return;
    }
    {
      const ::std::lock_guard<::std::mutex> lock(state_->mutex);
      state_->stopping = true;
    }
    state_->start.notify_all();
    for (::std::thread& thread : state_->threads) thread.join();
  }
  thread_pool(const thread_pool&) = delete;
  thread_pool& operator=(const thread_pool&) = delete;

  int num_threads() const { return num_threads_; }  // with the calling one

  /// Calls function(share) for every share in 0..num_threads() - 1, each in a thread of its own (0
  /// in the caller's) or where the lender likes, and returns when all have. function must not throw
  /// nor call run() itself.
  template <class Function>
  void run(const Function& function) {
    if (is_forked()) {
      for (int share = 0; share < num_threads_; ++share) function(share);
      return;
    }
    const auto call = [](const void* f, int share) { (*static_cast<const Function*>(f))(share); };
    if (lend_ != nullptr) {
      lend_(context_, num_threads_, call, &function);
      return;
    }
    state& s = *state_;
    const ::std::lock_guard<::std::mutex> one_call(s.call_mutex);
    {
      const ::std::lock_guard<::std::mutex> lock(s.mutex);
      s.invoke = call;
      s.function = &function;
      s.running = num_threads_ - 1;
      ++s.generation;
    }
    s.start.notify_all();
    function(0);
    ::std::unique_lock<::std::mutex> lock(s.mutex);
    s.done.wait(lock, [&s] { return s.running == 0; });
  }

 private:
  // A pool without threads yet: whole, so that the destructor ends those that did start where one
  // more is refused (without try, which -fno-exceptions forbids).
  struct no_threads_yet {};
  thread_pool(int num_threads, no_threads_yet) : num_threads_(num_threads > 1 ? num_threads : 1) {}

  static long process() {
#if defined(__unix__) || defined(__APPLE__)
    return static_cast<long>(::getpid());
#else
    return 0;
#endif
  }
  bool is_forked() const {
    return process() != made_by_;
  }

  struct state {
    void work(int share) {
      unsigned long long seen = 0;
      ::std::unique_lock<::std::mutex> lock(mutex);
      for (;;) {
        start.wait(lock, [&] { return stopping || generation != seen; });
        if (stopping) return;
        seen = generation;
        const auto call_share = invoke;
        const void* const argument = function;
        lock.unlock();
        call_share(argument, share);
        lock.lock();
        if (--running == 0) done.notify_one();
      }
    }

    ::std::mutex call_mutex;
    ::std::mutex mutex;  // guards what follows
    ::std::condition_variable start;
    ::std::condition_variable done;
    void (*invoke)(const void*, int) = nullptr;
    const void* function = nullptr;
    unsigned long long generation = 0;
    int running = 0;
    bool stopping = false;
    ::std::vector<::std::thread> threads;
  };

  const int num_threads_;
  const long made_by_ = process();
  lender lend_ = nullptr;
  void* context_ = nullptr;
  ::std::unique_ptr<state> state_ = ::std::make_unique<state>();
};

}  // namespace v0_2
}  // namespace furl::host
