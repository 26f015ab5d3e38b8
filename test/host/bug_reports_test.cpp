// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Public bug reports that are about what is kept: large counts (kind E), and the lifetime of what
// was given. Named after their numbers, as in bug_reports/values_test.cpp.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "bug_reports/codecs.hpp"
#include "furl/compress.hpp"
#include "support/inputs.hpp"
#include "support/run.hpp"

namespace furl::test {
namespace {

// bitsandbytes#2067: counts and products of 32 bits. Sizes around each limit; then, on the host,
// the cheapest tensor whose codes pass 2^31 bits.
TEST(BugReports, Case18_CountsBeyond32Bits) {
  for (const i64 n : {(i64(1) << 28) + 8, (i64(1) << 30) + 512, (i64(1) << 31) - 65536,
                      i64(1) << 31, (i64(1) << 31) + 65536, (i64(1) << 32) + 4096, i64(1) << 40}) {
    const plan p = make_plan(with(8, 256), {n});
    EXPECT_EQ(p.num_elements(), n);
    EXPECT_EQ(p.meta_offset(), u64((n + 1023) / 1024) * 1024);
    EXPECT_EQ(p.size_bytes(), p.meta_offset() + (u64(n + 255) / 256 * 8 + 15) / 16 * 16);
  }
  const i64 n = (i64(1) << 28) + 8;
  const plan p = *plan::make_codes(8, {n});
  std::vector<u8> codes(static_cast<std::size_t>(n), 1);
  for (const i64 i : {i64(0), i64(1) << 27, (i64(1) << 28) - 1, i64(1) << 28, n - 1})
    codes[static_cast<std::size_t>(i)] = static_cast<u8>(i % 251);
  const auto kept = host::stash::pack(p, codes);
  ASSERT_TRUE(kept);
  std::vector<u8> back(codes.size());
  ASSERT_TRUE(kept->unpack(back));
  EXPECT_TRUE(back == codes);
}

// vllm#45255: more than 65,535 rows. Windows along them too.
TEST(BugReports, Case19_ManyRows) {
  codec pooled = with(2, 128);
  pooled.window = {1, 8};
  codec rows = with(2, 128);
  rows.window = {8, 1};
  codec first = with(2, 128);
  first.window = {1, 1, 4};
  const std::pair<codec, extents> problems[] = {{with(2, 128), {65537, 16}},
                                                {pooled, {65536, 16}},
                                                {rows, {65535, 8}},
                                                {rows, {262141, 2}},
                                                {first, {65536, 1, 8}}};
  for (const auto& [c, shape] : problems) {
    const plan p = make_plan(c, shape);
    const auto x = uniform_floats(static_cast<std::size_t>(p.num_elements()), 8);
    const auto kept = host::stash::compress(p, x, {1, 2});
    ASSERT_TRUE(kept);
    std::vector<float> y(x.size());
    ASSERT_TRUE(kept->restore(y));
    const auto* const bytes = static_cast<const u8*>(kept->blob().data);
    const std::vector<u8> blob(bytes, bytes + p.size_bytes());
    for (i64 g = 0; g < p.num_groups(); ++g) {
      const float step = group_of(p, blob, g).step;
      for (i64 i = g * 128; i < std::min(g * 128 + 128, p.num_elements()); ++i) {
        const auto at = static_cast<std::size_t>(i);
        ASSERT_LE(std::fabs(y[at] - x[at]), step + 1e-6f) << i;
      }
    }
    if (p.has_lfc()) {
      EXPECT_EQ(cell_of(p.grid(), p.num_elements() - 1) + 1, p.num_cells());
    }
  }
}

// pytorch/pytorch#24818 and pyg-lib#671: positions past 2^31 and 2^32 elements. Gigabytes and many
// seconds, so not by default: run with --gtest_also_run_disabled_tests.
TEST(BugReports, DISABLED_Case20And21_BeyondTwoToThe32) {
  const i64 n = (i64(1) << 32) + 4096;
  const plan p = make_plan(with(1, 1024), {n});
  std::vector<bf16> x(static_cast<std::size_t>(n));
  for (i64 i = 0; i < n; ++i)
    x[static_cast<std::size_t>(i)] = {static_cast<u16>((i + i / 1024) % 2 == 0 ? 0 : 0x3f80)};
  const auto kept = host::stash::compress(p, x, {1, 2});
  ASSERT_TRUE(kept);
  std::vector<bf16> y(x.size());
  ASSERT_TRUE(kept->restore(y));
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i].bits, x[i].bits) << i;
}

// TransformerEngine#2848: a tensor without elements.
TEST(BugReports, Case22_NothingToKeep) {
  const auto kept = host::stash::compress(make_plan({}, {0, 8}), const_values{}, {});
  ASSERT_TRUE(kept);
  EXPECT_TRUE(kept->restore(values{}));
}

// trl#5694: a view that begins at element 1.
TEST(BugReports, Case29_ViewFromElementOne) {
  std::vector<float> x(1025);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  const plan p = make_plan(with(4, 256), {1024});
  const auto kept = host::stash::compress(p, {x.data() + 1, i64(1024)}, {1, 2});
  ASSERT_TRUE(kept);
  std::vector<float> y(1024);
  ASSERT_TRUE(kept->restore(y));
  for (std::size_t i = 0; i < 1024; ++i) EXPECT_LE(std::fabs(y[i] - x[i + 1]), 17.0f);
}

// pytorch/vision#3904: the input was used after it was freed.
TEST(BugReports, Case31_InputMayGoAfterTheCall) {
  const plan p = make_plan({}, {5000});
  const auto expected = compress(*backends()[0], p, normal_floats(5000, 1), {1, 2});
  auto x = std::make_unique<std::vector<float>>(normal_floats(5000, 1));
  const auto kept = host::stash::compress(p, *x, {1, 2});
  ASSERT_TRUE(kept);
  x.reset();
  std::vector<float> y(5000);
  ASSERT_TRUE(kept->restore(y));
  EXPECT_EQ(y, decompress(*backends()[0], p, expected));
}

}  // namespace
}  // namespace furl::test
