// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// In place of support/backends.cpp, in the program that runs the shared tests on the device.

#include "device/backend.hpp"
#include "support/backend.hpp"

namespace furl::test {

const std::vector<std::unique_ptr<backend>>& backends() {
  static const auto all = [] {
    std::vector<std::unique_ptr<backend>> list;
    if (auto device = make_device_backend()) list.push_back(std::move(device));
    return list;
  }();
  return all;
}

}  // namespace furl::test
