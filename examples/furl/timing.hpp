// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <limits>

namespace furl::cli {

/// The shortest of several runs, which is the least disturbed; run() returns its seconds.
template <class Run>
double best_of_several(const Run& run) {
  double best = std::numeric_limits<double>::infinity();
  double total = 0;
  for (int count = 0; count < 3 || (total < 0.1 && count < 100); ++count) {
    const double seconds = run();
    best = std::min(best, seconds);
    total += seconds;
  }
  return std::max(best, 1e-9);
}

}  // namespace furl::cli
