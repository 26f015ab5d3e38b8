// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// The host engine on 256 MB of f32 beside a memcpy and a plain `y += x` of the same run. GB/s
// counts the bytes of the uncompressed tensor, for memcpy too; of_memcpy is the ratio of the two.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "furl/furl.hpp"

namespace {

using furl::codec;
using furl::dtype;
using furl::i64;
using furl::plan;

// A ResNet stage: 64 images, 56 x 56; 335 channels make 256 MB.
const furl::extents shape{64, 335, 56, 56};
constexpr std::size_t num_elements = std::size_t{64} * 335 * 56 * 56;

double memcpy_seconds = 0;  // of one copy, measured by the first row

/// Normal deviates, repeated: making 67 million takes longer than all the benchmarks.
const std::vector<float>& tensor() {
  static const auto data = [] {
    std::vector<float> x(num_elements);
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    const std::size_t drawn = std::size_t{1} << 20;
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = i < drawn ? normal(random) : x[i - drawn];
    return x;
  }();
  return data;
}

std::vector<float>& output() {
  static std::vector<float> y(num_elements, 1.0f);
  return y;
}

/// Times `function` until the state has enough, keeps the best pass, and sets the counters.
template <class Function>
double measure(benchmark::State& state, const Function& function) {
  double best = 1e30;
  function();  // touches all pages
  for (auto _ : state) {
    const auto begin = std::chrono::steady_clock::now();
    function();
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
    state.SetIterationTime(elapsed.count());
    best = std::min(best, elapsed.count());
  }
  state.counters["GB/s"] = double(num_elements) * sizeof(float) / best * 1e-9;
  if (memcpy_seconds > 0) state.counters["of_memcpy"] = memcpy_seconds / best;
  return best;
}

void copy(benchmark::State& state) {
  memcpy_seconds = 0;
  memcpy_seconds = measure(state, [] {
    std::memcpy(output().data(), tensor().data(), num_elements * sizeof(float));
    benchmark::ClobberMemory();
  });
  state.counters["of_memcpy"] = 1;
}

void add_arrays(benchmark::State& state) {
  measure(state, [] {
    float* const y = output().data();
    const float* const x = tensor().data();
    for (std::size_t i = 0; i < num_elements; ++i) y[i] += x[i];
    benchmark::ClobberMemory();
  });
}

enum class operation { compress, decompress, decompress_add };

void run(benchmark::State& state, operation op, const codec& c, int num_threads) {
  const plan p = *plan::make(c, shape);
  std::vector<furl::u8> blob(p.size_bytes());
  furl::host::thread_pool pool(num_threads);
  furl::host::options options;
  options.pool = &pool;
  furl::random_key key{1, 0};
  if (!furl::host::compress(p, tensor(), blob, key, options)) return state.SkipWithError("refused");
  measure(state, [&] {
    ++key.offset;
    furl::status s;
    switch (op) {
      case operation::compress:
        s = furl::host::compress(p, tensor(), blob, key, options);
        break;
      case operation::decompress:
        s = furl::host::decompress(p, blob, output(), options);
        break;
      case operation::decompress_add:
        s = furl::host::decompress_add(p, blob, output(), options);
        break;
    }
    if (!s) state.SkipWithError(s.argument);
  });
  state.counters["bits/value"] = p.bits_per_value();
}

void add(const std::string& name, operation op, const codec& c, int num_threads) {
  const std::string row = name + "/threads:" + std::to_string(num_threads);
  benchmark::RegisterBenchmark(row.c_str(),
                               [=](benchmark::State& state) { run(state, op, c, num_threads); })
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond)
      ->MinTime(0.5);
}

void register_all() {
  benchmark::RegisterBenchmark("memcpy", copy)
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond)
      ->MinTime(1);
  benchmark::RegisterBenchmark("y+=x", add_arrays)
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond)
      ->MinTime(0.5);
  for (const int num_threads : {1, 2}) {
    for (int bits = 1; bits <= furl::max_bits; ++bits) {
      codec c;
      c.bits = bits;
      const std::string width = "/bits:" + std::to_string(bits);
      add("compress" + width, operation::compress, c, num_threads);
      add("decompress" + width, operation::decompress, c, num_threads);
      add("decompress_add" + width, operation::decompress_add, c, num_threads);
    }
    codec c;
    c.rounding = furl::rounding::nearest;
    add("compress/bits:2/nearest", operation::compress, c, num_threads);
    c = {};
    for (const int group : {32, 64, 1024}) {
      c.group = group;
      add("compress/bits:2/group:" + std::to_string(group), operation::compress, c, num_threads);
    }
    c = {};
    c.window = {1, 1, 8, 8};
    add("compress/bits:2/lfc:8x8", operation::compress, c, num_threads);
    add("decompress/bits:2/lfc:8x8", operation::decompress, c, num_threads);
    add("decompress_add/bits:2/lfc:8x8", operation::decompress_add, c, num_threads);
  }
}

}  // namespace

int main(int argc, char** argv) {
  register_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
