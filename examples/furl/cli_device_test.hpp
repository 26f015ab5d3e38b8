// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests that run on every device that is in the build.

#include <cstdlib>
#include <string>
#include <vector>

#include "cli_runner.hpp"

namespace furl::test {

#if defined(FURL_TEST_DEVICE)
inline const std::vector<std::string> devices = {"host", "cuda"};
inline const std::vector<std::string> device_launcher = {FURL_TEST_LAUNCHER};
#else
inline const std::vector<std::string> devices = {"host"};
inline const std::vector<std::string> device_launcher;
#endif

/// With the name of a device as its parameter. Skipped where that is not there, failed with
/// FURL_REQUIRE_DEVICE=1.
class cli_device_test : public cli_test, public ::testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "host") return;
    set_launcher(device_launcher);
    write("x", std::string(4, '\0'));
    const outcome done =
        run({"compress", "--in", "x", "--out", "x", "--shape=1", "--device", GetParam()});
    fs::remove(path("x"));
    if (done.status == 0) return;
    const char* const required = std::getenv("FURL_REQUIRE_DEVICE");
    const bool may_skip = required == nullptr || std::string(required) == "0";
    if (may_skip && done.err.find("no CUDA device") != std::string::npos) GTEST_SKIP() << done.err;
    FAIL() << done.err;
  }
};

#define FURL_ON_EVERY_DEVICE(suite)                                               \
  INSTANTIATE_TEST_SUITE_P(on, suite, ::testing::ValuesIn(::furl::test::devices), \
                           [](const auto& made) { return made.param; })

}  // namespace furl::test
