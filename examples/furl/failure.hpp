// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>

#include "furl/types.hpp"

namespace furl::cli {

enum class exit_status { success = 0, failed = 1, bad_usage = 2 };

/// Why the program ends without a result: one line, and the exit status that goes with it.
class failure : public std::runtime_error {
 public:
  failure(exit_status status, const std::string& line)
      : std::runtime_error(line), status_(status) {}
  exit_status status() const { return status_; }

 private:
  exit_status status_;
};

/// What was asked for makes no sense, or no plan accepts it.
inline failure bad_usage(const std::string& why) {
  return {exit_status::bad_usage, why};
}

/// A file cannot be read or written, or is not what it should be.
inline failure bad_file(const std::string& path, const std::string& why) {
  return {exit_status::failed, (path.empty() ? "''" : path) + ": " + why};
}

/// The device does not do what it is asked for.
inline failure bad_device(const std::string& why) {
  return {exit_status::failed, "--device cuda: " + why};
}

inline void require(const status& s) {
  if (s.code == error::cuda) throw bad_device(to_string(s));
  if (!s) throw bad_usage(to_string(s));
}

template <class T>
T require(const result<T>& made) {
  require(made.status());
  return *made;
}

}  // namespace furl::cli
