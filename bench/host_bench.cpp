// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// The host engine beside a memcpy and a plain `y += x` of the same run. bench/README.md says what
// the rows and counters are.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <map>
#include <new>
#include <string>
#include <vector>

#include "axes.hpp"
#include "furl/furl.hpp"
#include "suite.hpp"
#include "work.hpp"

namespace furl::bench {
namespace {

/// Memory aligned to a page, not initialised.
class array {
 public:
  explicit array(u64 size) : size_(std::size_t(size)), data_(::operator new(size_, alignment)) {}
  ~array() { ::operator delete(data_, alignment); }
  array(const array&) = delete;
  array& operator=(const array&) = delete;

  u8* data() const { return static_cast<u8*>(data_); }
  std::size_t size() const { return size_; }
  /// Repeats a pattern up to the end.
  void fill(const std::vector<u8>& pattern) const {
    for (std::size_t i = 0; i < size_; i += pattern.size())
      std::memcpy(data() + i, pattern.data(), std::min(pattern.size(), size_ - i));
  }

 private:
  static constexpr std::align_val_t alignment{4096};
  std::size_t size_;
  void* data_;
};

template <class Function>
double seconds_of(const Function& function) {
  const auto begin = std::chrono::steady_clock::now();
  function();
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  return elapsed.count();
}

void copy_array(const array& from, const array& to) {
  std::memcpy(to.data(), from.data(), from.size());
  benchmark::ClobberMemory();
}

/// Bytes per second that one thread's copy of an array moves, read and written: the median of a few
/// copies, made once a run for every size.
double copy_rate(u64 size) {
  static std::map<u64, double> known;
  double& rate = known[size];
  if (rate > 0) return rate;
  const array from(size);
  const array to(size);
  from.fill(deviates_as(dtype::f32));
  copy_array(from, to);  // touches all pages
  std::vector<double> seconds(21);
  for (double& each : seconds) each = seconds_of([&] { copy_array(from, to); });
  return rate = 2.0 * double(size) / median(seconds);
}

/// Times function() until the state has enough, and sets the counters by the median.
template <class Function>
void measure(benchmark::State& state, const row& r, const plan& p, const Function& function) {
  function();  // touches all pages
  std::vector<double> seconds;
  for (auto _ : state) {
    seconds.push_back(seconds_of(function));
    state.SetIterationTime(seconds.back());
  }
  set_counters(state, {num_elements(r), bytes_moved(r, p)}, median(seconds),
               copy_rate(tensor_bytes(r)));
}

void run_copy(benchmark::State& state, const row& r) {
  const array from(tensor_bytes(r));
  const array to(tensor_bytes(r));
  from.fill(deviates_as(r.type));
  measure(state, r, {}, [&] { copy_array(from, to); });
}

void run_add_arrays(benchmark::State& state, const row& r) {
  const array from(tensor_bytes(r));
  const array to(tensor_bytes(r));
  from.fill(deviates_as(r.type));
  to.fill(deviates_as(r.type));
  measure(state, r, {}, [&] {
    const auto* const x = reinterpret_cast<const float*>(from.data());
    auto* const y = reinterpret_cast<float*>(to.data());
    for (i64 i = 0; i < num_elements(r); ++i) y[i] += x[i];
    benchmark::ClobberMemory();
  });
}

void run_codes(benchmark::State& state, const row& r, int num_threads) {
  const plan p = plan_of(r);
  host::thread_pool pool(num_threads);
  const array codes(tensor_bytes(r));
  const array blob(p.size_bytes());
  codes.fill(random_codes());
  const bool packs = r.what == primitive::pack || r.what == primitive::mask_pack;
  status s = host::pack(p, codes, blob, &pool);
  measure(state, r, p, [&] {
    const status next =
        packs ? host::pack(p, codes, blob, &pool) : host::unpack(p, blob, codes, &pool);
    if (s) s = next;
  });
  if (!s) fail(state, to_string(s));
}

/// Ranges of groups first..last - 1 of the tensor.
template <class T>
void find_ranges(const T* x, i64 first, i64 last, int group, furl::range* out) {
  alignas(64) float converted[tile_elements];
  for (i64 g = first; g < last; ++g) {
    if constexpr (sizeof(T) == sizeof(float)) {
      out[g] = host::detail::min_max(x + g * group, group);
    } else {
      host::detail::load_floats<T>(x, g * group, group, converted);
      out[g] = host::detail::min_max(converted, group);
    }
  }
}

/// The parts of compress that have no call of their own: ranges of groups, and pooling.
void run_part(benchmark::State& state, const row& r, int num_threads) {
  const plan p = plan_of(r);
  host::thread_pool pool(num_threads);
  const array elements(tensor_bytes(r));
  const array blob(p.size_bytes());
  std::vector<furl::range> ranges(std::size_t(p.num_groups()));
  elements.fill(deviates_as(r.type));
  const bool pools = r.what == primitive::pool;
  const i64 units = pools ? p.grid().num_bands() : p.num_groups();
  measure(state, r, p, [&] {
    pool.run([&](int share) {
      const i64 first = host::detail::share_begin(units, share, num_threads);
      const i64 last = host::detail::share_begin(units, share + 1, num_threads);
      with_type(r.type, [&](auto element) {
        using type = decltype(element);
        const auto* const x = reinterpret_cast<const type*>(elements.data());
        if (pools) {
          host::detail::means_scratch scratch{};
          host::detail::average_bands<type>(p, x, blob.data(), first, last, scratch);
        } else {
          find_ranges(x, first, last, r.group, ranges.data());
        }
      });
    });
  });
}

void run_codec(benchmark::State& state, const row& r, int num_threads) {
  const plan p = plan_of(r);
  const std::vector<u8> tile_bits = tile_bits_of(r);
  host::thread_pool pool(num_threads);
  host::options options;
  options.pool = &pool;
  options.tile_bits = tile_bits;
  const array elements(tensor_bytes(r));
  const array blob(p.size_bytes());
  elements.fill(deviates_as(r.type));
  const const_values x(elements.data(), r.type, num_elements(r));
  const values y(elements.data(), r.type, num_elements(r));
  random_key key = key_of_blobs;
  status s = host::compress(p, x, blob, key, options);
  measure(state, r, p, [&] {
    ++key.offset;
    const status next = r.what == primitive::compress ? host::compress(p, x, blob, key, options)
                        : r.what == primitive::decompress
                            ? host::decompress(p, blob, y, key_of_blobs, options)
                            : host::decompress_add(p, blob, y, key_of_blobs, options);
    if (s) s = next;
  });
  if (!s) fail(state, to_string(s));
}

/// Puts the processor's name into the output, where the system tells it.
void describe_cpu() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    benchmark::AddCustomContext("cpu", line.substr(line.find(':') + 2));
    return;
  }
}

void register_all(bool all) {
  describe_cpu();
  constexpr bool all_sizes = false;
  register_rows(primitive::copy, all, all_sizes, "/threads:1", run_copy);
  register_rows(primitive::add_arrays, all, all_sizes, "/threads:1", run_add_arrays);
  for (const int num_threads : {1, 2}) {
    const std::string suffix = "/threads:" + std::to_string(num_threads);
    const auto codes = [=](benchmark::State& state, const row& r) {
      run_codes(state, r, num_threads);
    };
    const auto part = [=](benchmark::State& state, const row& r) {
      run_part(state, r, num_threads);
    };
    const auto codec = [=](benchmark::State& state, const row& r) {
      run_codec(state, r, num_threads);
    };
    for (const primitive what :
         {primitive::pack, primitive::unpack, primitive::mask_pack, primitive::mask_unpack})
      register_rows(what, all, all_sizes, suffix, codes);
    for (const primitive what : {primitive::group_min_max, primitive::pool})
      register_rows(what, all, all_sizes, suffix, part);
    for (const primitive what :
         {primitive::compress, primitive::decompress, primitive::decompress_add})
      register_rows(what, all, all_sizes, suffix, codec);
  }
}

}  // namespace
}  // namespace furl::bench

int main(int argc, char** argv) {
  return furl::bench::run(argc, argv, 3, furl::bench::register_all);
}
