// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// The shared tests run over no back end at all where there is no device; this says so.

#include <gtest/gtest.h>

#include "device/device.hpp"
#include "support/backend.hpp"

namespace furl::test {
namespace {

using presence = device_test;

TEST_F(presence, TheDeviceIsTheBackEnd) {
  ASSERT_EQ(backends().size(), 1u);
  EXPECT_STREQ(backends()[0]->name(), "device");
}

}  // namespace
}  // namespace furl::test
