// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// A kernel as a user writes it, on the installed headers: it adds a bias to activations in bf16 and
// keeps 4 bits of each, in units of a seventh of the largest magnitude of every 64.

#include <cmath>
#include <cstdio>
#include <furl/block.cuh>
#include <furl/compress.cuh>
#include <vector>

__global__ void add_bias_compress(furl::blob_layout layout, const furl::bf16* x,
                                  const furl::bf16* bias, int columns, unsigned char* blob) {
  using namespace furl;
  for (i64 tile = first_tile(); tile < layout.num_tiles; tile += tile_stride()) {
    const int count = elements_in_tile(layout.num_elements, tile);
    const i64 begin = tile * tile_elements;
    tile_fragment<float> values;
    load_tile_as_f32(x + begin, count, values);
    for_each_element(values, [&](int index, float& value) {
      const i64 element = begin + min(index, count - 1);  // absent ones repeat the last
      value += to_f32(bias[element % columns]);
    });
    const min_max ends = tile_min_max(values, layout.group);
    const range kept = symmetric_range(fmaxf(-ends.lo, ends.hi), layout.bits);
    compress_tile_in_range(layout, tile, count, values, {kept.lo, kept.hi}, random_key{}, blob);
  }
}

int main() {
  constexpr int columns = 75;
  constexpr int count = 41 * columns;
  furl::codec codec;
  codec.bits = 4;
  codec.group = 64;
  codec.meta = furl::dtype::f32;
  codec.rounding = furl::rounding::nearest;
  const auto plan = furl::plan::make(codec, {41, columns});
  if (!plan) return 1;
  furl::bf16* x = nullptr;
  float* y = nullptr;
  unsigned char* blob = nullptr;
  if (cudaMallocManaged(&x, (count + columns) * sizeof *x) != cudaSuccess ||
      cudaMallocManaged(&y, count * sizeof *y) != cudaSuccess ||
      cudaMalloc(&blob, plan->size_bytes()) != cudaSuccess)
    return 2;
  furl::bf16* const bias = x + count;
  for (int i = 0; i < count + columns; ++i) x[i] = {furl::bf16_nearest(float(i * 37 % 101 - 50))};
  std::vector<float> sum(count);
  for (int i = 0; i < count; ++i) sum[i] = furl::to_f32(x[i]) + furl::to_f32(bias[i % columns]);

  add_bias_compress<<<1, 128>>>(furl::blob_layout(*plan), x, bias, columns, blob);
  if (const auto s =
          furl::decompress(*plan, {blob, plan->size_bytes()}, {y, count}, cudaStream_t{});
      !s) {
    std::puts(furl::to_string(s).c_str());
    return 3;
  }
  if (cudaDeviceSynchronize() != cudaSuccess) return 4;
  for (int i = 0; i < count; ++i) {
    float largest = 0.0f;
    for (int j = i / 64 * 64; j < count && j < i / 64 * 64 + 64; ++j)
      largest = std::fmax(largest, std::fabs(sum[j]));
    const bool is_kept = std::fabs(y[i] - sum[i]) <= largest / 14 * 1.02f;
    if (!is_kept || (sum[i] == 0.0f && y[i] != 0.0f)) {
      std::printf("element %d is %g, not %g\n", i, y[i], sum[i]);
      return 5;
    }
  }
}
