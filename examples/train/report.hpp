// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the user sees: a progress bar per run, one table, a file for other programs.

#include <chrono>
#include <string>
#include <vector>

#include "training.hpp"

namespace trainer {

/// On standard error. On a terminal a bar that moves, elsewhere one line when the run is over.
class progress_bar {
 public:
  explicit progress_bar(std::string title);

  void show(int done, int all, float loss);

 private:
  using clock = std::chrono::steady_clock;

  const std::string title_;
  const bool moves_;
  const clock::time_point start_ = clock::now();
  clock::time_point shown_{};
};

/// The table, for people.
std::string to_table(const std::vector<run_result>& results);

/// The same for programs, with the settings.
std::string to_csv(const std::vector<run_result>& results, const run_settings& settings);

std::string to_csv(const std::vector<gradient_error>& errors);

/// Throws std::runtime_error if a file of this name could not be written: better before the
/// training than after.
void check_writable(const std::string& file);

/// Writes a file whole or not at all. Throws std::runtime_error.
void write_file(const std::string& file, const std::string& text);

}  // namespace trainer
