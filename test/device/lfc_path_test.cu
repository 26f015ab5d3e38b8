// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Which way kernels come by the means: chosen from the shape alone, and without a second reading
// wherever a block can hold the cells.

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <string>

#include "device/buffer.cuh"
#include "furl/block/compress.cuh"
#include "furl/block/decompress.cuh"
#include "furl/block/layout.cuh"
#include "furl/plan.hpp"

namespace furl::test {
namespace {

lfc_source choose(const extents& shape, const extents& window) {
  codec c;
  c.window = window;
  return choose_lfc_source(plan::make(c, shape)->grid());
}

TEST(LfcPath, ImagesGoThroughSlots) {
  const struct {
    i64 side;
    u32 log2_granule;
    bool whole;
    int tiles;
  } planes[] = {{7, 0, false, 8},  {14, 1, false, 8}, {28, 2, false, 8},
                {32, 2, true, 8},  {56, 2, true, 7},  {75, 0, false, 8},
                {112, 2, true, 7}, {224, 2, true, 7}, {104, 2, true, 13}};
  for (const auto& each : planes) {
    SCOPED_TRACE(each.side);
    const lfc_source s = choose({64, 3, each.side, each.side}, {1, 1, 8, 8});
    EXPECT_EQ(s.path, lfc_path::slots);
    EXPECT_EQ(s.slots.log2_granule, each.log2_granule);
    EXPECT_EQ(s.slots.is_whole, each.whole);
    EXPECT_EQ(s.tiles_per_block, each.tiles);
  }
}

TEST(LfcPath, FeaturesStayInLanesWhereCellsDivideRows) {
  for (const i64 features : {8, 768, 1000, 4096, 1 << 20})
    EXPECT_EQ(choose({64, features}, {1, 8}).path, lfc_path::lanes) << features;
  EXPECT_EQ(choose({64, 768}, {1, 64}).path, lfc_path::lanes);
  for (const i64 features : {7, 50, 50257})
    EXPECT_EQ(choose({64, features}, {1, 8}).path, lfc_path::slots) << features;
}

TEST(LfcPath, SequencesGoByColumns) {
  for (const i64 length : {16, 128, 197, 1000})
    for (const i64 features : {4, 64, 192, 768, 1024})
      EXPECT_EQ(choose({32, length, features}, {1, 8, 1}).path, lfc_path::columns)
          << length << " x " << features;
}

TEST(LfcPath, WhatNoBlockCanHoldIsLookedUp) {
  EXPECT_EQ(choose({8, 56, 56, 64}, {1, 8, 8, 1}).path, lfc_path::table);
  EXPECT_EQ(choose({8, 16, 16, 16}, {1, 8, 8, 8}).path, lfc_path::table);
  EXPECT_EQ(choose({8, 100, 100}, {1, 16, 16}).path, lfc_path::table);
  EXPECT_EQ(choose({8, 100, 20000}, {1, 8, 8}).path, lfc_path::table);
  EXPECT_EQ(choose({8, 100, 4096}, {1, 8, 1}).path, lfc_path::table);
}

/// Every run of any plane fits into the shared memory that its blocks are launched with.
TEST(LfcPath, SharedMemoryHoldsEveryRun) {
  std::mt19937 random(5);
  const auto below = [&](u32 limit) { return i64(random() % limit); };
  int checked = 0;
  for (int turn = 0; turn < 2000; ++turn) {
    const extents shape{1 + below(40), 1 + below(turn % 2 == 0 ? 20 : 300), 1 + below(1500)};
    const extents window = turn % 3 == 0   ? extents{1, 2 + below(7), 1}
                           : turn % 3 == 1 ? extents{1, 1 + below(8), 2 + below(7)}
                                           : extents{1, 1, 2 + below(7)};
    const lfc_source s = choose(shape, window);
    EXPECT_LE(s.shared_bytes, 48u << 10);
    EXPECT_LE(s.tiles_per_block, detail::max_tiles(s.path));
    if (s.path != lfc_path::slots && s.path != lfc_path::columns) continue;
    const i64 n = shape[0] * shape[1] * shape[2];
    const i64 run_elements = i64(s.run_elements());
    for (i64 begin = 0; begin < n; begin += run_elements, ++checked) {
      const u32 count = u32(n - begin < run_elements ? n - begin : run_elements);
      const cell_run run = s.slots.plane.run_of(begin, count);
      u64 needed = 0;
      if (s.path == lfc_path::slots) {  // and slots for all of a partial run's tiles
        needed = ((run.head + 3 + run_elements + run.tail) >> s.slots.log2_granule) * 4 + 4;
      } else {
        const u32 rows = s.slots.plane.row_of(run.head + count + run.tail - 1) + 1;
        needed = u64(run.num_cells + rows) * 4;
      }
      ASSERT_LE(needed, s.shared_bytes)
          << shape[0] << " x " << shape[1] << " x " << shape[2] << ", run at " << begin;
      if (s.slots.is_whole) {
        ASSERT_EQ(run.head + run.tail, 0u);
        ASSERT_EQ(run.first_cell, begin / run_elements * s.slots.cells_per_run);
      }
    }
  }
  EXPECT_GT(checked, 10000);
}

__global__ void compress_without_window(block_layout layout, const float* x, u8* blob) {
  const tile_run run(layout);
  const block_compress<lfc_path::none> block(layout, run, nullptr);
  tile_fragment<float> values;
  block.load(array_elements<float>{x}, blob, values);
  if (run.count > 0) block.compress(values, random_key{}, blob);
}

__global__ void decompress_without_window(block_layout layout, const u8* blob, float* y) {
  const tile_run run(layout);
  const block_decompress<lfc_path::none> block(layout, run, nullptr, blob);
  tile_fragment<float> values;
  if (run.count > 0 && block.load(values)) store_tile(y, run.count, values);
}

/// Ends the process: with 1 if the device has failed.
template <class Kernel, class... Arguments>
void run_alone(Kernel* kernel, const block_layout& layout, Arguments... arguments) {
  kernel<<<layout.num_blocks(), layout.num_threads(), layout.shared_bytes()>>>(layout,
                                                                               arguments...);
  std::_Exit(cudaDeviceSynchronize() == cudaSuccess ? 0 : 1);
}

// A process for each: the error takes the device's memory with it.
TEST(LfcPath, KernelsOfAnotherPathEndWithAnError) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto run_both = [](const extents& window, int code) {
    codec c;
    c.window = window;
    const plan p = *plan::make(c, {10, 64});
    const device_array<float> x(std::vector<float>(640, 1.0f));
    const device_buffer blob(std::vector<u8>(p.size_bytes()));
    const block_layout layout(p);
    EXPECT_EXIT(run_alone(compress_without_window, layout, x.as<const float>(), blob.data()),
                testing::ExitedWithCode(code), "");
    EXPECT_EXIT(run_alone(decompress_without_window, layout, blob.data(), x.as<float>()),
                testing::ExitedWithCode(code), "");
  };
  run_both({}, 0);
  run_both({1, 8}, 1);
}

}  // namespace
}  // namespace furl::test
