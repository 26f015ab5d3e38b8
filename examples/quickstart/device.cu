// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// The README's example for device memory, between the two marks, and a program around it.

// [quickstart]
#include "furl/compress.cuh"

// Forward pass: keeps x (NCHW, on the device) in about 2 bits per value. Each call needs a new key.
furl::result<furl::stash> save(const furl::extents& shape, const float* x, furl::random_key key,
                               cudaStream_t stream) {
  furl::codec codec;            // 2 bits, groups of 256, stochastic rounding: ActNN
  codec.window = {1, 1, 8, 8};  // subtract the mean of every 8 x 8 cell first: DIVISION
  const auto plan = furl::plan::make(codec, shape);
  if (!plan) return plan.status();  // says which argument is wrong, and why
  return furl::stash::compress(*plan, {x, plan->num_elements()}, key, stream);
}

// Backward pass: restores it as f32, f16 or bf16, as often as needed. The stash frees the memory.
furl::status load(const furl::stash& kept, float* y, cudaStream_t stream) {
  return kept.restore({y, kept.plan().num_elements()}, stream);
}
// [quickstart]

#include <cstdio>
#include <cstdlib>

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("no CUDA device");
    return std::getenv("FURL_REQUIRE_DEVICE") != nullptr ? 1 : 0;
  }
  constexpr std::size_t count = 4 * 16 * 28 * 28;
  float* array = nullptr;
  cudaStream_t stream = nullptr;
  bool ok = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess &&
            cudaMallocAsync(reinterpret_cast<void**>(&array), count * sizeof(float), stream) ==
                cudaSuccess &&
            cudaMemsetAsync(array, 0, count * sizeof(float), stream) == cudaSuccess;
  if (ok) {
    const auto kept = save({4, 16, 28, 28}, array, {1, 0}, stream);
    const furl::status restored = kept ? load(*kept, array, stream) : kept.status();
    std::puts(furl::to_string(restored).c_str());
    ok = restored.ok();
  }
  ok = cudaFreeAsync(array, stream) == cudaSuccess &&
       cudaStreamSynchronize(stream) == cudaSuccess && ok;
  return cudaStreamDestroy(stream) == cudaSuccess && ok ? 0 : 1;
}
