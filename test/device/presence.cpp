// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Where there is no device, every test of this program is skipped, and says so; with
// FURL_REQUIRE_DEVICE=1 it fails.

#include <gtest/gtest.h>

#include "device/device.hpp"

namespace furl::test {
namespace {

class device_environment : public ::testing::Environment {
 public:
  void SetUp() override {
    if (has_device()) return;
    // Other words than those of a skipped test, by which ctest knows one.
    if (device_required()) FAIL() << "FURL_REQUIRE_DEVICE is set, and CUDA finds no device";
    GTEST_SKIP() << "no CUDA device";
  }
};

const auto* const environment =
    ::testing::AddGlobalTestEnvironment(new device_environment);  // which GoogleTest deletes

}  // namespace
}  // namespace furl::test
