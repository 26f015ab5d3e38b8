// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

namespace furl::cli {

/// The command line taken apart: a command, operands, and options that all have a value, given as
/// "--name value" or "--name=value" in any order, each at most once.
class arguments {
 public:
  arguments(int count, const char* const* texts);

  const std::string& command() const { return command_; }  // "" if there is none
  bool wants_help() const { return help_; }

  bool has(const std::string& option) const { return options_.count(option) != 0; }
  /// Of an option such as "--in". Pre: has(option).
  const std::string& operator[](const std::string& option) const { return options_.at(option); }
  const std::vector<std::string>& operands() const { return operands_; }

 private:
  void check() const;

  std::string command_;
  std::vector<std::string> operands_;
  std::map<std::string, std::string> options_;
  bool help_ = false;
};

}  // namespace furl::cli
