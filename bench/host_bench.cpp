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
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "axes.hpp"
#include "calls.hpp"
#include "furl/furl.hpp"
#include "operands.hpp"
#include "suite.hpp"

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
void measure(benchmark::State& state, const row& r, u64 bytes, const Function& function) {
  function();  // touches all pages
  std::vector<double> seconds;
  for (auto _ : state) {
    seconds.push_back(seconds_of(function));
    state.SetIterationTime(seconds.back());
  }
  set_counters(state, {num_elements(r), bytes}, median(seconds), copy_rate(tensor_bytes(r)));
}

/// As furl::host::NAME, with these arguments behind the others.
#define FURL_BENCH_CALL(NAME, LAST)         \
  template <class... Rest>                  \
  status NAME(const Rest&... rest) const {  \
    return furl::host::NAME(rest..., LAST); \
  }

struct host_call : arguments {
  host::thread_pool* pool = nullptr;
  int num_threads = 1;

  host::options options() const {
    host::options o;
    o.pool = pool;
    give(o);
    return o;
  }

  FURL_BENCH_CALL(compress, options())
  FURL_BENCH_CALL(decompress, options())
  FURL_BENCH_CALL(decompress_add, options())
  FURL_BENCH_CALL(compress_batch, pool)
  FURL_BENCH_CALL(decompress_batch, pool)
  FURL_BENCH_CALL(pack, pool)
  FURL_BENCH_CALL(unpack, pool)
  FURL_BENCH_CALL(unpack_multiply, pool)
  FURL_BENCH_CALL(relu, pool)
  FURL_BENCH_CALL(dropout, pool)
  FURL_BENCH_CALL(max_pool, pool)
  FURL_BENCH_CALL(max_pool_backward, pool)
  FURL_BENCH_CALL(measure, options())

  status squared_ranges(const furl::plan& p, const_values x, span<double> squared) const {
    return host::squared_ranges(p, x, squared, pool);
  }
  status squared_ranges(const furl::plan& p, const_bytes blob, span<double> squared) const {
    return host::squared_ranges(p, blob, squared, options());
  }
  status expand_sensitivity(const furl::plan& p, span<const float> of_parts,
                            span<float> of_tiles) const {
    return host::expand_sensitivity(p, of_parts, of_tiles);
  }
  status allocate_bits(u64 sum_of_bits, span<const float> sensitivity, span<const double> squared,
                       bytes tile_bits) const {
    return host::allocate_bits(sum_of_bits, sensitivity, squared, tile_bits);
  }

  status keep_and_restore() const {
    const result<host::stash> kept = host::stash::compress(plan(), input(), key(), options());
    return kept ? kept->restore(y(), options()) : kept.status();
  }
};

#undef FURL_BENCH_CALL

status copy(const host_call& c) {
  std::memcpy(c.y().data, c.x().data, c.x().size_bytes());
  benchmark::ClobberMemory();
  return {};
}

status add_arrays(const host_call& c) {
  const span<float> from = c.array<float>(operand::x);
  float* const sum = c.array<float>(operand::y).data;
  for (i64 i = 0; i < from.size; ++i) sum[i] += from.data[i];
  benchmark::ClobberMemory();
  return {};
}

/// Calls function(first, last) in every thread with its share of `units`.
template <class Function>
status share(const host_call& c, i64 units, const Function& function) {
  c.pool->run([&](int index) {
    function(host::detail::share_begin(units, index, c.num_threads),
             host::detail::share_begin(units, index + 1, c.num_threads));
  });
  return {};
}

status make_random_bits(const host_call& c) {
  return share(c, c.plan().num_tiles(), [&](i64 first, i64 last) {
    alignas(64) u32 rows[4 * words_per_row];
    for (i64 half = 2 * first; half < 2 * last; ++half) {
      host::detail::random_half(u64(half / 2), u32(half % 2), c.key(), rows);
      benchmark::DoNotOptimize(rows);
    }
  });
}

status find_ranges(const host_call& c) {
  const int group = c.plan().codec().group;
  const span<range> ranges = c.array<range>(operand::result);
  return share(c, ranges.size, [&](i64 first, i64 last) {
    with_type(c.of->r.type, [&](auto element) {
      const auto* const x = c.array<const decltype(element)>(operand::x).data;
      alignas(64) float converted[tile_elements];
      for (i64 g = first; g < last; ++g) {
        if constexpr (sizeof element == sizeof(float)) {
          ranges.data[g] = host::detail::min_max(x + g * group, group);
        } else {
          host::detail::load_floats<decltype(element)>(x, g * group, group, converted);
          ranges.data[g] = host::detail::min_max(converted, group);
        }
      }
    });
  });
}

status pool_cells(const host_call& c) {
  return share(c, c.plan().grid().num_bands(), [&](i64 first, i64 last) {
    with_type(c.of->r.type, [&](auto element) {
      host::detail::means_scratch scratch{};
      host::detail::average_bands<decltype(element)>(
          c.plan(), c.x().data, static_cast<u8*>(c.blob().data), first, last, scratch);
    });
  });
}

using calls = std::vector<call<host_call>>;

/// What has no call of the library, and all that has.
const calls& known_calls() {
  using p = primitive;
  using o = operand;
  static const calls known = with_library_calls<host_call>({
      {p::copy, p::copy, {o::x, o::y}, copy},
      {p::add_arrays, p::add_arrays, {o::x, o::y, o::y}, add_arrays},
      {p::random_bits, p::random_bits, {o::x}, make_random_bits},
      {p::group_min_max, p::group_min_max, {o::x, o::result}, find_ranges},
      {p::pool, p::compress, {o::x, o::result}, pool_cells},  // into the blob
  });
  return known;
}

void run_call(benchmark::State& state, const row& r, int num_threads) {
  const call<host_call>& timed = find_call(known_calls(), r.what());
  const call<host_call>& made_by = find_call(known_calls(), timed.made_by);
  const task t(r);
  const std::vector<u64> sizes = sizes_of(timed, made_by, t);
  std::vector<std::unique_ptr<array>> arrays;
  host::thread_pool pool(num_threads);
  host_call c;
  c.of = &t;
  c.pool = &pool;
  c.num_threads = num_threads;
  for (std::size_t i = 0; i < num_operands; ++i) {
    if (sizes[i] == 0) continue;
    arrays.push_back(std::make_unique<array>(sizes[i]));
    c.at[i] = arrays.back()->data();
    if (const auto content = t.content(operand(i)); !content.empty()) arrays.back()->fill(content);
  }
  status s = made_by.function(c);
  measure(state, r, bytes_moved(timed, t), [&] {
    ++c.index;
    const status next = timed.function(c);
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
  constexpr bool on_device = false;
  for (const call<host_call>& each : known_calls()) {
    const bool by_one = each.what == primitive::copy || each.what == primitive::add_arrays;
    for (int num_threads = 1; num_threads <= (by_one ? 1 : 2); ++num_threads)
      register_rows(
          each.what, all, on_device, "/threads:" + std::to_string(num_threads),
          [=](benchmark::State& state, const row& r) { run_call(state, r, num_threads); });
  }
}

}  // namespace
}  // namespace furl::bench

int main(int argc, char** argv) {
  return furl::bench::run(argc, argv, 3, furl::bench::register_all);
}
