// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests: files of values, and inspect's table of them.

#include <cstring>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "cli_runner.hpp"

namespace furl::test {

inline std::string floats(const std::vector<float>& values) {
  std::string out(values.size() * sizeof(float), '\0');
  if (!values.empty()) std::memcpy(out.data(), values.data(), out.size());
  return out;
}

/// 0, 1, 2, 3, 0, ... as f32: exact in 2 bits.
inline std::string grid(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 4);
  return floats(values);
}

class cli_inspect : public cli_test {
 protected:
  std::string inspect(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "inspect");
    const outcome done = run(arguments);
    EXPECT_EQ(done.status, 0) << done.err;
    EXPECT_EQ(done.err, "");
    EXPECT_EQ(done.out.find("nan"), std::string::npos) << done.out;
    return done.out;
  }

  /// The words of the table's row for a codec.
  static std::vector<std::string> row(const std::string& table, const std::string& codec) {
    const auto at = table.find("\n" + codec + "  ");
    if (at == std::string::npos) return {};
    std::istringstream line(
        table.substr(at + 1 + codec.size(), table.find('\n', at + 1) - at - 1 - codec.size()));
    return {std::istream_iterator<std::string>(line), {}};
  }
};

}  // namespace furl::test
