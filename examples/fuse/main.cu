// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Runs the fused kernels and the same steps one after another, and compares every byte.

#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "furl/furl.cuh"
#include "kernels.cuh"

namespace {

using namespace furl;

void require(cudaError_t code) {
  if (code == cudaSuccess) return;
  std::fprintf(stderr, "CUDA: %s\n", cudaGetErrorString(code));
  std::exit(1);
}

void require(const status& s) {
  if (s) return;
  std::fprintf(stderr, "%s\n", to_string(s).c_str());
  std::exit(1);
}

/// Device memory, freed with the program.
template <class T>
T* device_array(u64 count) {
  void* pointer = nullptr;
  require(cudaMalloc(&pointer, count * sizeof(T)));
  return static_cast<T*>(pointer);
}

template <class T>
std::vector<T> to_host(const T* array, u64 count) {
  std::vector<T> out(static_cast<std::size_t>(count));
  require(cudaMemcpy(out.data(), array, count * sizeof(T), cudaMemcpyDeviceToHost));
  return out;
}

__global__ void relu(const float* x, float* y, u8* positive, i64 n) {
  const i64 i = i64(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  positive[i] = x[i] > 0.0f;
  y[i] = x[i] > 0.0f ? x[i] : 0.0f;
}

__global__ void relu_backward(const u8* positive, float* gradient, i64 n) {
  const i64 i = i64(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n && positive[i] == 0) gradient[i] = 0.0f;
}

/// What one way of doing it leaves behind.
struct outcome {
  std::vector<float> y;
  std::vector<u8> folded;
  std::vector<u8> mask;
  std::vector<float> restored;
  std::vector<float> grad_x;
};

bool operator==(const outcome& a, const outcome& b) {
  return a.y == b.y && a.folded == b.folded && a.mask == b.mask && a.restored == b.restored &&
         a.grad_x == b.grad_x;
}

outcome run(const std::vector<float>& input, const std::vector<float>& gradient, bool fused,
            cudaStream_t stream) {
  const i64 n = i64(input.size());
  const plan p = *plan::make({}, {n});
  const plan mask_plan = *plan::make_codes(1, {n});
  const random_key key{42, 1};
  float* const x = device_array<float>(u64(n));
  float* const y = device_array<float>(u64(n));
  float* const restored = device_array<float>(u64(n));
  float* const grad = device_array<float>(u64(n));
  u8* const codes = device_array<u8>(u64(n));
  u8* const folded = device_array<u8>(p.size_bytes());
  u8* const mask = device_array<u8>(mask_plan.size_bytes());
  require(cudaMemcpy(x, input.data(), u64(n) * 4, cudaMemcpyHostToDevice));
  require(cudaMemcpy(grad, gradient.data(), u64(n) * 4, cudaMemcpyHostToDevice));
  require(cudaMemset(folded, 0, p.size_bytes()));  // the fused kernel leaves padding alone

  const unsigned blocks = unsigned((n + 255) / 256);
  if (fused) {
    const unsigned tile_blocks = kernel::blocks_for(p.num_tiles());
    fuse::relu_compress<<<tile_blocks, kernel::block_threads, 0, stream>>>(blob_layout(p), x, y,
                                                                           key, folded, mask);
    fuse::decompress_relu_backward<<<tile_blocks, kernel::block_threads, 0, stream>>>(
        blob_layout(p), folded, mask, restored, grad);
  } else {
    relu<<<blocks, 256, 0, stream>>>(x, y, codes, n);
    require(compress(p, {y, n}, {folded, p.size_bytes()}, key, stream));
    require(pack(mask_plan, {codes, u64(n)}, {mask, mask_plan.size_bytes()}, stream));
    require(decompress(p, {folded, p.size_bytes()}, {restored, n}, stream));
    require(unpack(mask_plan, {mask, mask_plan.size_bytes()}, {codes, u64(n)}, stream));
    relu_backward<<<blocks, 256, 0, stream>>>(codes, grad, n);
  }
  require(cudaStreamSynchronize(stream));
  return {to_host(y, u64(n)), to_host(folded, p.size_bytes()),
          to_host(mask, mask_plan.size_bytes()), to_host(restored, u64(n)), to_host(grad, u64(n))};
}

}  // namespace

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    const bool required = std::getenv("FURL_REQUIRE_DEVICE") != nullptr;
    std::puts(required ? "CUDA finds no device" : "no CUDA device");
    return required ? 1 : 0;
  }
  cudaStream_t stream = nullptr;
  require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  constexpr int n = 100 * 1024 + 333;
  std::vector<float> x(n);
  std::vector<float> gradient(n);
  for (int i = 0; i < n; ++i) {
    x[std::size_t(i)] = float(i * 7919LL % 2003) / 500.0f - 2.0f;
    gradient[std::size_t(i)] = float(i % 11) - 5.0f;
  }
  const bool same = run(x, gradient, true, stream) == run(x, gradient, false, stream);
  require(cudaStreamDestroy(stream));
  std::printf("%d elements, fused and step by step: %s\n", n,
              same ? "the same bytes" : "DIFFERENT");
  return same ? 0 : 1;
}
