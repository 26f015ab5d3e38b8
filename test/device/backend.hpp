// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "support/backend.hpp"

namespace furl::test {

/// The device as a back end for tests that hold host memory. Everything is copied to allocations of
/// the exact size and the same misalignment, in whole elements (the device takes no other), and
/// back. Null pointers are passed on as they are.
/// Null if there is no device and FURL_REQUIRE_DEVICE does not ask for one.
std::unique_ptr<backend> make_device_backend();

}  // namespace furl::test
