// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// The README's example for kernels of your own, between the two marks; its launch; the kernel of
// its backward pass; and a program that compares both with the library's calls.

// [quickstart]
#include "furl/block.cuh"

// y = SiLU(x), and the blob of x, in one kernel. Path: how it gets the means of a window (LFC).
template <furl::lfc_path Path>
__global__ void __launch_bounds__(furl::block_compress<Path>::max_threads)
    silu_compress(furl::block_layout layout, const float* x, float* y, unsigned char* blob,
                  furl::random_key key) {
  extern __shared__ float4 shared[];
  const furl::tile_run run(layout);  // the tiles of this block, one for each warp
  const furl::block_compress<Path> block(layout, run, shared);
  furl::tile_fragment<float> values;  // in registers
  block.load(furl::array_elements<float>{x}, blob, values);
  if (run.count == 0) return;
  furl::tile_fragment<float> silu = values;
  furl::for_each_element(silu, [](int, float& value) { value /= 1.0f + expf(-value); });
  furl::store_tile(y + run.tile * furl::tile_elements, run.count, silu);
  block.compress(values, key, blob);
}
// The host launches it by furl::with_path(layout.means.path, ...), with <<<layout.num_blocks(),
// layout.num_threads(), layout.shared_bytes(), stream>>>. lfc_path::table needs pool_cells first.
// [quickstart]

// What launches it, for all paths but lfc_path::table (furl/block/compress.cuh has that too).
bool silu(const furl::plan& plan, const float* x, float* y, unsigned char* blob,
          furl::random_key key, cudaStream_t stream) {
  const furl::block_layout layout(plan);
  if (layout.means.path == furl::lfc_path::table) return false;  // needs pool_cells first
  furl::with_path(layout.means.path, [&](auto path) {
    silu_compress<path>
        <<<layout.num_blocks(), layout.num_threads(), layout.shared_bytes(), stream>>>(layout, x, y,
                                                                                       blob, key);
  });
  return true;
}

// gradient_x = gradient_y * SiLU'(x), for the x of the blob, which is nowhere in memory.
template <furl::lfc_path Path>
__global__ void __launch_bounds__(furl::block_decompress<Path>::max_threads)
    silu_backward(furl::block_layout layout, const unsigned char* blob, const float* gradient_y,
                  float* gradient_x) {
  extern __shared__ float4 shared[];
  const furl::tile_run run(layout);
  const furl::block_decompress<Path> block(layout, run, shared, blob);
  if (run.count == 0) return;
  const furl::i64 begin = run.tile * furl::tile_elements;
  furl::tile_fragment<float> gradient;
  furl::load_tile(gradient_y + begin, run.count, gradient);
  block.for_each_row([&](int row, const float(&x)[4]) {
    for (int k = 0; k < 4; ++k) {
      const float sigmoid = 1.0f / (1.0f + expf(-x[k]));
      gradient.word[row][k] *= sigmoid * (1.0f + x[k] * (1.0f - sigmoid));
    }
  });
  furl::store_tile(gradient_x + begin, run.count, gradient);
}

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "furl/compress.hpp"

namespace {

template <class T>
T* on_device(std::size_t count) {
  void* memory = nullptr;
  return cudaMalloc(&memory, count * sizeof(T)) == cudaSuccess ? static_cast<T*>(memory) : nullptr;
}

/// Whether a is b but for what expf may differ by between host and device.
bool is_near(float a, float b) {
  return std::fabs(a - b) <= 1e-5f * (1.0f + std::fabs(b));
}

bool agrees_with_host(const furl::extents& window) {
  furl::codec codec;
  codec.window = window;
  const auto plan = furl::plan::make(codec, {2, 5, 28, 32});
  if (!plan) return false;
  const auto count = static_cast<std::size_t>(plan->num_elements());
  std::vector<float> x(count);
  for (std::size_t i = 0; i < count; ++i) x[i] = float(i * 37 % 101) / 16.0f - 2.0f;
  const furl::random_key key{1, 0};

  float* const in = on_device<float>(count);
  float* const out = on_device<float>(count);
  auto* const blob = on_device<unsigned char>(plan->size_bytes());
  std::vector<float> y(count);
  std::vector<float> gradient(count);
  std::vector<unsigned char> made(plan->size_bytes());
  bool good =
      in != nullptr && out != nullptr && blob != nullptr &&
      cudaMemcpy(in, x.data(), count * sizeof(float), cudaMemcpyHostToDevice) == cudaSuccess &&
      silu(*plan, in, out, blob, key, nullptr) &&
      cudaMemcpy(y.data(), out, count * sizeof(float), cudaMemcpyDeviceToHost) == cudaSuccess &&
      cudaMemcpy(made.data(), blob, made.size(), cudaMemcpyDeviceToHost) == cudaSuccess;
  if (good) {  // y as the gradient of the output
    const furl::block_layout layout(*plan);
    furl::with_path(layout.means.path, [&](auto path) {
      silu_backward<path><<<layout.num_blocks(), layout.num_threads(), layout.shared_bytes()>>>(
          layout, blob, out, in);
    });
    good = cudaMemcpy(gradient.data(), in, count * sizeof(float), cudaMemcpyDeviceToHost) ==
           cudaSuccess;
  }
  good = cudaFree(in) == cudaSuccess && cudaFree(out) == cudaSuccess &&
         cudaFree(blob) == cudaSuccess && good;

  std::vector<unsigned char> expected(made.size());
  std::vector<float> kept(count);
  good = good && furl::host::compress(*plan, x, expected, key).ok() && made == expected &&
         furl::host::decompress(*plan, expected, kept).ok();
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
  const bool same = agrees_with_host({}) && agrees_with_host({1, 1, 1, 8}) &&
                    agrees_with_host({1, 1, 8, 8}) && agrees_with_host({1, 1, 8, 1});
  std::puts(same ? "the same bytes" : "DIFFERENT");
  return same ? 0 : 1;
}
