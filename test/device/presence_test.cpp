// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include "support/backend.hpp"

namespace furl::test {
namespace {

TEST(Presence, TheDeviceIsTheBackEnd) {
  ASSERT_EQ(backends().size(), 1u);
  EXPECT_STREQ(backends()[0]->name(), "device");
}

}  // namespace
}  // namespace furl::test
