// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Google Benchmark as both programs use it.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

#include "axes.hpp"
#include "furl/config.hpp"
#include "rows.hpp"

namespace furl::bench {

/// Pre: not empty.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + std::ptrdiff_t(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// What one call of a row does.
struct work {
  i64 num_elements;
  u64 bytes_moved;
};

/// Sets a row's counters. copy_rate: bytes that a copy of the tensor moves per second, in this run.
/// A clock that stands still, as in a simulator, leaves them out.
inline void set_counters(benchmark::State& state, const work& w, double seconds_per_call,
                         double copy_rate) {
  state.counters["bytes/element"] = double(w.bytes_moved) / double(w.num_elements);
  if (seconds_per_call <= 0) return;
  const double rate = double(w.bytes_moved) / seconds_per_call;
  state.counters["us/call"] = seconds_per_call * 1e6;
  state.counters["elements/s"] = double(w.num_elements) / seconds_per_call;
  state.counters["GB/s"] = rate * 1e-9;
  if (copy_rate > 0) state.counters["of_copy"] = rate / copy_rate;
}

/// Whether a row could not be measured.
inline bool& any_failure() {
  static bool any = false;
  return any;
}

/// Ends a row that could not be measured.
inline void fail(benchmark::State& state, const std::string& reason) {
  any_failure() = true;
  state.SkipWithError(reason.c_str());
}

/// Registers rows of a primitive, all or the default ones (see is_default); function(state, row)
/// measures one. suffix: what the program adds to their names.
template <class Function>
void register_rows(primitive what, bool all, bool on_device, const std::string& suffix,
                   const Function& function) {
  for (const row& r : rows_of(what)) {
    if (!on_device && r.axes->timed == timing::hot) continue;
    if (!all && !is_default(r, on_device)) continue;
    benchmark::RegisterBenchmark((name(r) + suffix).c_str(),
                                 [r, function](benchmark::State& state) { function(state, r); })
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond);
  }
}

/// Prints every row as it is done: the median of its repetitions alone.
class median_reporter : public benchmark::ConsoleReporter {
 public:
  median_reporter() : ConsoleReporter(OO_Tabular) {}
  void ReportRuns(const std::vector<Run>& runs) override {
    std::vector<Run> shown;
    for (const Run& each : runs)
      if (each.run_type == Run::RT_Iteration || each.aggregate_name == "median")
        shown.push_back(each);
    ConsoleReporter::ReportRuns(shown);
    std::fflush(stdout);
  }
};

/// The main function, which fails if no row was measured or one could not be. register_all(all):
/// registers all rows, or the default ones, which are what runs unless --benchmark_filter names
/// others. repetitions: of a row, unless a flag says otherwise.
inline int run(int argc, char** argv, int repetitions, void (*register_all)(bool all)) {
  std::vector<std::string> words = {
      argv[0], "--benchmark_repetitions=" + std::to_string(repetitions),
      "--benchmark_min_time=0.02", "--benchmark_report_aggregates_only=true"};
  words.insert(words.end(), argv + 1, argv + argc);
  bool filtered = false;
  std::vector<char*> arguments;
  for (std::string& word : words) {
    filtered = filtered || word.rfind("--benchmark_filter", 0) == 0;
    arguments.push_back(word.data());
  }
  arguments.push_back(nullptr);
  int count = int(words.size());
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 1;
  register_all(filtered);
  median_reporter reporter;
  const bool any = benchmark::RunSpecifiedBenchmarks(&reporter) > 0;
  benchmark::Shutdown();
  return any && !any_failure() ? 0 : 1;
}

}  // namespace furl::bench
