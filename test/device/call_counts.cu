// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Makes a call of furl a number of times, for a tool that counts calls of the CUDA runtime:
//   furl_call_counts compress|decompress flat|planes checked|unchecked TIMES

#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "device/library.cuh"

namespace {

bool succeeds(cudaError_t code) {
  if (code != cudaSuccess) std::puts(cudaGetErrorString(code));
  return code == cudaSuccess;
}
bool succeeds(const furl::status& s) {
  if (!s) std::puts(to_string(s).c_str());
  return s.ok();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  furl::codec c;
  if (argv[2] == std::string("planes")) c.window = {1, 8, 8};
  const furl::plan p = *furl::plan::make(c, {2, 32, 32});
  furl::options o;
  o.check_pointers = argv[3] == std::string("checked");
  float* x = nullptr;
  void* blob = nullptr;
  cudaStream_t stream = nullptr;
  if (!succeeds(cudaMalloc(&x, sizeof(float) * std::size_t(p.num_elements()))) ||
      !succeeds(cudaMalloc(&blob, p.size_bytes())) || !succeeds(cudaStreamCreate(&stream)))
    return 1;
  for (int call = 0; call < std::atoi(argv[4]); ++call) {
    const furl::status s =
        argv[1] == std::string("compress")
            ? furl::compress(p, {x, p.num_elements()}, {blob, p.size_bytes()}, {1, 2}, stream, o)
            : furl::decompress(p, {blob, p.size_bytes()}, {x, p.num_elements()}, stream, o);
    if (!succeeds(s)) return 1;
  }
  return succeeds(cudaDeviceSynchronize()) ? 0 : 1;
}
