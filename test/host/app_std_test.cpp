// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Case 141: an application with a namespace `std` of its own and a using-directive at global scope.
// furl's headers come last, and are what is tested.

#include <gtest/gtest.h>

#include <algorithm>
#include <cfenv>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#if defined(__SSE__)
#include <immintrin.h>
#endif

namespace app::std {
struct string;
struct mutex;
template <class T>
void min(T, T);
}  // namespace app::std
using namespace app;

#include "furl/compress.hpp"

namespace app {
namespace {

TEST(AppStd, IsNotFurls) {
  const auto plan = furl::plan::make({}, {3000});
  ASSERT_TRUE(plan);
  const ::std::vector<float> x(3000, 1.5f);
  furl::host::thread_pool pool(2);
  furl::host::options options;
  options.pool = &pool;
  const auto kept = furl::host::stash::compress(*plan, x, {1, 2}, options);
  ASSERT_TRUE(kept) << furl::to_string(kept.status());
  ::std::vector<float> y(3000);
  EXPECT_TRUE(kept->restore(y));
  EXPECT_EQ(x, y);
}

}  // namespace
}  // namespace app
