// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Timing on the device: CUDA events around calls that each find their arrays outside of the L2
// cache.

#include <benchmark/benchmark.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

#include "axes.hpp"
#include "furl/config.hpp"
#include "furl/types.hpp"
#include "operands.hpp"
#include "suite.hpp"

namespace furl::bench {

/// Throws what a CUDA call, or furl, reports.
inline void require(cudaError_t code) {
  if (code != cudaSuccess) throw std::runtime_error(cudaGetErrorString(code));
}
inline void require(const status& s) {
  if (!s) throw std::runtime_error(to_string(s));
}

/// Device memory.
class device_memory {
 public:
  explicit device_memory(u64 size) { require(cudaMalloc(&data_, std::max<u64>(size, 1))); }
  ~device_memory() { (void)cudaFree(data_); }
  device_memory(const device_memory&) = delete;
  device_memory& operator=(const device_memory&) = delete;

  u8* data() const { return static_cast<u8*>(data_); }

 private:
  void* data_ = nullptr;
};

/// Where arrays of given sizes lie, one behind another and each aligned to 256 bytes.
class array_places {
 public:
  explicit array_places(std::vector<u64> sizes) : sizes_(std::move(sizes)) {
    for (const u64 size : sizes_) {
      places_.push_back(total_);
      total_ += (size + 255) / 256 * 256;
    }
  }
  u64 size(std::size_t array) const { return sizes_[array]; }
  u64 place(std::size_t array) const { return places_[array]; }
  u64 total() const { return total_; }

 private:
  std::vector<u64> sizes_;
  std::vector<u64> places_;
  u64 total_ = 0;
};

/// Device memory of arrays that belong together, in as many sets as it takes to be larger than the
/// L2 cache twice. Calls take the sets in turn, so that no call finds in the cache what an earlier
/// one left there.
class rotating_arrays {
 public:
  /// sizes: bytes of each array of a set. one_set: for calls that shall find all in the cache.
  explicit rotating_arrays(std::vector<u64> sizes, bool one_set = false)
      : places_(std::move(sizes)),
        num_sets_(one_set ? 1 : sets_beyond_cache(places_.total())),
        memory_(u64(num_sets_) * places_.total()) {}

  /// An array of the set whose turn it is in a call.
  u8* at(std::size_t array, i64 call = 0) const {
    return memory_.data() + u64(call % num_sets_) * places_.total() + places_.place(array);
  }
  u64 size(std::size_t array) const { return places_.size(array); }

  /// Fills an array of the first set with a repeated pattern.
  void fill(std::size_t array, const std::vector<u8>& pattern) const {
    const u64 first = std::min<u64>(size(array), pattern.size());
    require(cudaMemcpy(at(array), pattern.data(), first, cudaMemcpyHostToDevice));
    repeat(at(array), first, size(array));
  }

  /// Gives all sets the content of the first.
  void replicate() const {
    repeat(memory_.data(), places_.total(), u64(num_sets_) * places_.total());
  }

 private:
  static i64 sets_beyond_cache(u64 set_bytes) {
    int device = 0;
    int cache_bytes = 0;
    require(cudaGetDevice(&device));
    require(cudaDeviceGetAttribute(&cache_bytes, cudaDevAttrL2CacheSize, device));
    return i64(2 * u64(cache_bytes) / set_bytes) + 2;
  }

  /// Repeats the first `done` bytes up to `size`, by ever larger copies.
  static void repeat(u8* memory, u64 done, u64 size) {
    for (u64 more = 0; done < size; done += more) {
      more = std::min(done, size - done);
      require(cudaMemcpy(memory + done, memory, more, cudaMemcpyDeviceToDevice));
    }
  }

  array_places places_;
  i64 num_sets_;
  device_memory memory_;
};

/// Arrays that every call uses.
class fixed_arrays {
 public:
  explicit fixed_arrays(std::vector<u64> sizes)
      : places_(std::move(sizes)), memory_(places_.total()) {}
  template <class T>
  T* as(std::size_t array) const {
    return reinterpret_cast<T*>(memory_.data() + places_.place(array));
  }

 private:
  array_places places_;
  device_memory memory_;
};

/// Times calls on a stream of its own.
class event_timer {
 public:
  event_timer() {
    require(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    require(cudaEventCreate(&begin_));
    require(cudaEventCreate(&end_));
    require(cudaDeviceSynchronize());  // what was prepared on other streams
  }
  ~event_timer() {
    (void)cudaStreamSynchronize(stream_);
    (void)cudaEventDestroy(end_);
    (void)cudaEventDestroy(begin_);
    (void)cudaStreamDestroy(stream_);
  }
  event_timer(const event_timer&) = delete;
  event_timer& operator=(const event_timer&) = delete;

  /// Seconds that `count` calls take one behind another; call(index, stream) launches one, with an
  /// index that counts all calls of this timer.
  template <class Call>
  double seconds(int count, const Call& call) {
    require(cudaEventRecord(begin_, stream_));
    for (int i = 0; i < count; ++i) call(next_++, stream_);
    require(cudaEventRecord(end_, stream_));
    require(cudaEventSynchronize(end_));
    float milliseconds = 0;
    require(cudaEventElapsedTime(&milliseconds, begin_, end_));
    return double(milliseconds) * 1e-3;
  }

  /// Seconds of the host's clock until `count` calls are issued. Nothing but the calls is waited
  /// for if the device has room for them.
  template <class Call>
  double host_seconds(int count, const Call& call) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < count; ++i) call(next_++, stream_);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
    require(cudaStreamSynchronize(stream_));
    return elapsed.count();
  }
  static constexpr int unfinished_calls = 256;  // that a stream has room for

  /// How many calls to put between two events, which resolve about half a microsecond: 200
  /// microseconds' worth of calls, at most 64.
  template <class Call>
  int calls_per_interval(const Call& call) {
    seconds(1, call);  // loads the kernels
    const double one = seconds(1, call);
    return one > 0 ? std::clamp(int(200e-6 / one), 1, 64) : 1;
  }

 private:
  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
  i64 next_ = 0;
};

/// Bytes per second that a device-to-device copy of an array moves, read and written: the median of
/// a few intervals, timed as all else is, once a run for every size. 0 if no time passes.
inline double copy_rate(u64 size) {
  static std::map<u64, double> known;
  if (const auto found = known.find(size); found != known.end()) return found->second;
  const rotating_arrays arrays({size, size});
  arrays.fill(0, deviates_as(dtype::f32));
  arrays.replicate();
  event_timer timer;
  const auto call = [&](i64 index, cudaStream_t stream) {
    require(cudaMemcpyAsync(arrays.at(1, index), arrays.at(0, index), size,
                            cudaMemcpyDeviceToDevice, stream));
  };
  const int calls = timer.calls_per_interval(call);
  std::vector<double> seconds(21);
  for (double& each : seconds) each = timer.seconds(calls, call) / calls;
  const double middle = median(seconds);
  return known[size] = middle > 0 ? 2.0 * double(size) / middle : 0.0;
}

/// Times call(index, stream) until the state has enough, and sets the counters by the
/// median.
template <class Call>
void measure(benchmark::State& state, const row& r, u64 bytes, const Call& call) {
  event_timer timer;
  const bool by_host = r.axes->timed == timing::per_call;
  const int calls = by_host ? event_timer::unfinished_calls : timer.calls_per_interval(call);
  std::vector<double> seconds;
  while (state.KeepRunningBatch(calls)) {
    const double interval = by_host ? timer.host_seconds(calls, call) : timer.seconds(calls, call);
    state.SetIterationTime(interval);
    seconds.push_back(interval / calls);
  }
  set_counters(state, {num_elements(r), bytes}, median(seconds),
               by_host ? 0.0 : copy_rate(tensor_bytes(r)));
}

/// Registers rows of a primitive; run(state, row) may throw.
template <class Run>
void register_device_rows(primitive what, bool all, const Run& run) {
  constexpr bool on_device = true;
  register_rows(what, all, on_device, "", [run](benchmark::State& state, const row& r) {
    try {
      run(state, r);
    } catch (const std::exception& refused) {
      fail(state, refused.what());
    }
  });
}

}  // namespace furl::bench
