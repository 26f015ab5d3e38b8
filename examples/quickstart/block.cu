// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// The README's example for kernels of one's own, between the two marks, and a program around it.

// [quickstart]
#include "furl/block.cuh"

// y = max(x, 0), and the blob of y: one kernel, which reads x once and writes y once.
__global__ void relu_compress(furl::block_layout layout, const float* x, float* y,
                              unsigned char* blob, furl::random_key key) {
  extern __shared__ unsigned char shared[];  // layout.shared_bytes() of them
  furl::block_compress<float, furl::no_means> block(layout, shared);
  for (auto run : block.runs()) {  // of tiles, those of this block
    auto values = block.load(run, x);
    for (float& value : values) value = value > 0.0f ? value : 0.0f;  // in registers
    block.store(run, values, y);
    block.compress(run, values, blob, key);
  }
}

// Launch: <<<layout.blocks(), layout.threads(), layout.shared_bytes(), stream>>>,
// with furl::block_layout layout(plan) made on the host.
// [quickstart]
