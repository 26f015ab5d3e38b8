// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// The README's example for kernels of one's own, between the two marks, and a program around it
// that compares what the kernel has written with what the library's calls write.

// [quickstart]
#include "furl/block.cuh"

// y = max(x, 0), and the blob of y, in one kernel: x is read once, y is written once.
__global__ void relu_compress(furl::block_layout layout, const float* x, float* y,
                              unsigned char* blob, furl::random_key key) {
  extern __shared__ float4 shared[];
  const furl::tile_run run(layout);  // the tiles of this block, one for each warp
  const furl::block_compress<furl::lfc_path::none> block(layout, run, shared);  // no window
  const auto relu = [](float value, furl::i64) { return value > 0.0f ? value : 0.0f; };
  furl::tile_fragment<float> values;  // in registers
  block.load(furl::map_elements(x, relu), blob, values);
  if (run.count == 0) return;
  furl::store_tile(y + run.tile * furl::tile_elements, run.count, values);
  block.compress(values, key, blob);
}
// The host makes `furl::block_layout layout(plan)` once, and launches the kernel with
// <<<layout.num_blocks(), layout.num_threads(), layout.shared_bytes(), stream>>>.
// [quickstart]

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "furl/compress.hpp"

namespace {

bool agrees_with_host() {
  constexpr std::size_t count = 10 * 1024 + 77;
  std::vector<float> x(count);
  for (std::size_t i = 0; i < count; ++i) x[i] = float(i * 37 % 101) / 16.0f - 2.0f;
  const auto plan = furl::plan::make({}, {furl::i64(count)});
  const furl::random_key key{1, 0};
  const std::size_t blob_bytes = std::size_t(plan->size_bytes());

  float* array = nullptr;
  unsigned char* blob = nullptr;
  if (cudaMalloc(&array, count * sizeof(float)) != cudaSuccess ||
      cudaMalloc(&blob, blob_bytes) != cudaSuccess ||
      cudaMemcpy(array, x.data(), count * sizeof(float), cudaMemcpyHostToDevice) != cudaSuccess)
    return false;
  const furl::block_layout layout(*plan);
  relu_compress<<<layout.num_blocks(), layout.num_threads(), layout.shared_bytes()>>>(
      layout, array, array, blob, key);
  std::vector<float> y(count);
  std::vector<unsigned char> made(blob_bytes);
  const bool copied =
      cudaMemcpy(y.data(), array, count * sizeof(float), cudaMemcpyDeviceToHost) == cudaSuccess &&
      cudaMemcpy(made.data(), blob, blob_bytes, cudaMemcpyDeviceToHost) == cudaSuccess;
  if (cudaFree(array) != cudaSuccess || cudaFree(blob) != cudaSuccess || !copied) return false;

  std::vector<unsigned char> expected(blob_bytes);
  for (float& value : x) value = value > 0.0f ? value : 0.0f;
  return furl::host::compress(*plan, x, expected, key).ok() && y == x && made == expected;
}

}  // namespace

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("no CUDA device");
    return std::getenv("FURL_REQUIRE_DEVICE") != nullptr ? 1 : 0;
  }
  const bool same = agrees_with_host();
  std::puts(same ? "the same bytes" : "DIFFERENT");
  return same ? 0 : 1;
}
