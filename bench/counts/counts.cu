// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Runs one operation once, on 2^22 elements, for a tool that counts its instructions:
//   furl_counts compress|decompress|decompress_add f32|f16|bf16 BITS [WINDOW]
//   furl_counts pack|unpack u8 BITS
// WINDOW is two-dimensional on images of 64 x 64, and 0 without an LFC.

#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "furl/furl.cuh"

namespace {

using namespace furl;

constexpr i64 num_elements = i64(1) << 22;

void require(cudaError_t code) {
  if (code == cudaSuccess) return;
  std::fprintf(stderr, "CUDA: %s\n", cudaGetErrorString(code));
  std::exit(1);
}

template <class T>
T require(const result<T>& made) {
  if (made) return *made;
  std::fprintf(stderr, "%s\n", to_string(made.status()).c_str());
  std::exit(1);
}

void require(const status& s) {
  if (s) return;
  std::fprintf(stderr, "%s\n", to_string(s).c_str());
  std::exit(1);
}

u8* device_memory(u64 size) {
  void* pointer = nullptr;
  require(cudaMalloc(&pointer, size));
  require(cudaMemset(pointer, 0, size));
  return static_cast<u8*>(pointer);
}

/// Numbers in [1, 2), which no type makes special.
std::vector<u8> make_elements(dtype type) {
  std::vector<u8> out(static_cast<std::size_t>(num_elements * size_bytes(type)));
  u32 random = 1;
  for (i64 i = 0; i < num_elements; ++i) {
    random = random * 1664525u + 1013904223u;
    const u32 bits = 0x3f800000u | random >> 9;
    const u16 half = type == dtype::f16 ? u16(0x3c00u | bits >> 13 & 0x3ffu) : u16(bits >> 16);
    if (type == dtype::f32) {
      std::memcpy(&out[std::size_t(i) * 4], &bits, 4);
    } else {
      std::memcpy(&out[std::size_t(i) * 2], &half, 2);
    }
  }
  return out;
}

void run_codes(const std::string& operation, int bits) {
  const plan p = require(plan::make_codes(bits, {num_elements}));
  u8* const codes = device_memory(u64(num_elements));
  u8* const blob = device_memory(p.size_bytes());
  if (operation == "pack") {
    require(pack(p, {codes, u64(num_elements)}, {blob, p.size_bytes()}, nullptr));
  } else {
    require(unpack(p, {blob, p.size_bytes()}, {codes, u64(num_elements)}, nullptr));
  }
}

void run(const std::string& operation, dtype type, int bits, int window) {
  codec c;
  c.bits = bits;
  if (window > 0) c.window = {1, window, window};
  const plan p = require(plan::make(c, {num_elements / 4096, 64, 64}));
  const std::vector<u8> elements = make_elements(type);
  u8* const x = device_memory(elements.size());
  u8* const blob = device_memory(p.size_bytes());
  require(cudaMemcpy(x, elements.data(), elements.size(), cudaMemcpyHostToDevice));
  if (operation == "compress") {
    require(compress(p, {x, type, num_elements}, {blob, p.size_bytes()}, {1, 2}, nullptr));
  } else if (operation == "decompress") {
    require(decompress(p, {blob, p.size_bytes()}, {x, type, num_elements}, nullptr));
  } else {
    require(decompress_add(p, {blob, p.size_bytes()}, {x, type, num_elements}, nullptr));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const std::string operation = argv[1];
  const std::string type = argv[2];
  const int bits = std::atoi(argv[3]);
  if (type == "u8") {
    run_codes(operation, bits);
  } else {
    run(operation,
        type == "f32"   ? dtype::f32
        : type == "f16" ? dtype::f16
                        : dtype::bf16,
        bits, argc > 4 ? std::atoi(argv[4]) : 0);
  }
  require(cudaDeviceSynchronize());
  return 0;
}
