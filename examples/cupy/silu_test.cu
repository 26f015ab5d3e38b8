// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// The kernels of silu.cu, compiled by nvcc: blobs are those of the library.

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "furl/compress.hpp"
#include "silu.cu"

namespace {

void require(cudaError_t code) {
  if (code == cudaSuccess) return;
  std::puts(cudaGetErrorString(code));
  std::exit(1);
}

bool is_near(float a, float b) {
  return std::fabs(a - b) <= 1e-5f * (1.0f + std::fabs(b));
}

bool agrees_with_host(std::size_t count, int bits) {
  furl::codec codec;
  codec.bits = bits;
  const auto plan = furl::plan::make(codec, {furl::i64(count)});
  if (!plan) return false;
  std::vector<float> x(count);
  for (std::size_t i = 0; i < count; ++i) x[i] = float(i * 37 % 101) / 16.0f - 2.0f;
  std::vector<unsigned char> expected(plan->size_bytes());
  std::vector<float> kept(count);
  if (!furl::host::compress(*plan, x, expected, {5, 6}) ||
      !furl::host::decompress(*plan, expected, kept))
    return false;

  float* memory = nullptr;  // x, y, the gradient of x, and the blob
  const std::size_t row = (count + 3) / 4 * 4;
  require(cudaMalloc(&memory, 3 * row * sizeof(float) + expected.size()));
  float* const y_there = memory + row;
  float* const gradient_there = y_there + row;
  auto* const blob = reinterpret_cast<unsigned char*>(gradient_there + row);
  require(cudaMemcpy(memory, x.data(), count * sizeof(float), cudaMemcpyHostToDevice));
  silu_forward<<<2, 64>>>(furl::i64(count), bits, memory, y_there, blob, 5, 6);
  silu_backward<<<3, 32>>>(furl::i64(count), bits, blob, y_there, gradient_there);
  std::vector<float> y(count);
  std::vector<float> gradient(count);
  std::vector<unsigned char> made(expected.size());
  require(cudaMemcpy(y.data(), y_there, count * sizeof(float), cudaMemcpyDeviceToHost));
  require(
      cudaMemcpy(gradient.data(), gradient_there, count * sizeof(float), cudaMemcpyDeviceToHost));
  require(cudaMemcpy(made.data(), blob, made.size(), cudaMemcpyDeviceToHost));
  require(cudaFree(memory));

  bool good = made == expected;
  for (std::size_t i = 0; i < count && good; ++i) {
    const float sigmoid = 1.0f / (1.0f + std::exp(-kept[i]));
    good = is_near(y[i], x[i] / (1.0f + std::exp(-x[i]))) &&
           is_near(gradient[i], y[i] * sigmoid * (1.0f + kept[i] * (1.0f - sigmoid)));
  }
  return good;
}

}  // namespace

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("no CUDA device");
    return std::getenv("FURL_REQUIRE_DEVICE") != nullptr ? 1 : 0;
  }
  bool same = true;
  for (const std::size_t count : {1, 257, 1024, 5000})
    for (const int bits : {1, 2, 5, 8}) same = agrees_with_host(count, bits) && same;
  std::puts(same ? "the same bytes" : "DIFFERENT");
  return same ? 0 : 1;
}
