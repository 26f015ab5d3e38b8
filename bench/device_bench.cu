// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// The device beside a device-to-device copy of the same run, and beside what others do.
// bench/README.md says what the rows and counters are.

#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "device_rows.hpp"
#include "device_timing.cuh"
#include "suite.hpp"

namespace furl::bench {
namespace {

bool find_device() {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess && count > 0) return true;
  const bool required = std::getenv("FURL_REQUIRE_DEVICE") != nullptr;
  // Two texts: by the second, ctest knows a skipped test.
  std::puts(required ? "FURL_REQUIRE_DEVICE is set, and CUDA finds no device"
                     : "no CUDA device: nothing is measured");
  return false;
}

/// Puts into the output what the numbers depend on.
void describe_device() {
  cudaDeviceProp device{};
  require(cudaGetDeviceProperties(&device, 0));
  int driver = 0;
  int runtime = 0;
  require(cudaDriverGetVersion(&driver));
  require(cudaRuntimeGetVersion(&runtime));
  benchmark::AddCustomContext("device", device.name);
  benchmark::AddCustomContext("multiprocessors", std::to_string(device.multiProcessorCount));
  benchmark::AddCustomContext("l2_bytes", std::to_string(device.l2CacheSize));
  benchmark::AddCustomContext("cuda_driver", std::to_string(driver));
  benchmark::AddCustomContext("cuda_runtime", std::to_string(runtime));
}

/// Lets a stash find memory where the one before it was, as a framework's allocator would.
void keep_freed_memory() {
  cudaMemPool_t pool = nullptr;
  u64 all = ~u64{0};
  require(cudaDeviceGetDefaultMemPool(&pool, 0));
  require(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all));
}

void register_all(bool all) {
  describe_device();
  keep_freed_memory();
  register_call_rows(all);
  register_baseline_rows(all);
}

}  // namespace
}  // namespace furl::bench

int main(int argc, char** argv) {
  if (!furl::bench::find_device()) return 1;
  return furl::bench::run(argc, argv, 5, furl::bench::register_all);
}
