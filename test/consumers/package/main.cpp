// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

#include <vector>

#include "furl/furl.hpp"

furl::u64 size_of_blob();

int main() {
  const auto plan = furl::plan::make({}, {1000});
  if (!plan || plan->size_bytes() != size_of_blob()) return 1;
  const std::vector<float> x(1000, 0.25f);
  std::vector<float> y(1000);
  const auto kept = furl::host::stash::compress(*plan, x, {1, 2});
  if (!kept || !kept->restore(y)) return 1;
  return x == y ? 0 : 1;
}
