// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

#include "support/backend.hpp"

namespace furl::test {

const std::vector<std::unique_ptr<backend>>& backends() {
  static const auto all = [] {
    std::vector<std::unique_ptr<backend>> list;
    list.push_back(make_host_backend(1));
    list.push_back(make_host_backend(3));
    return list;
  }();
  return all;
}

}  // namespace furl::test
