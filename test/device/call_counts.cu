// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Makes a call of furl a number of times, for a tool that counts calls of the CUDA runtime:
//   furl_call_counts compress|decompress[_batch] flat|planes|tile checked|unchecked TIMES
// A batch has 100 tensors.

#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

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

/// The tensors of a batch, which here are one and the same: what they write does not matter.
furl::status call_batch(const std::string& operation, const furl::plan& p, float* x,
                        furl::bytes blob, cudaStream_t stream, const furl::options& o) {
  const std::vector<furl::compress_entry> in(100, {&p, {x, p.num_elements()}, blob});
  const std::vector<furl::decompress_entry> out(100, {&p, blob, {x, p.num_elements()}});
  if (operation == "compress_batch") return furl::compress_batch(in, {1, 2}, stream, o);
  return furl::decompress_batch(out, {1, 2}, stream, o);
}

furl::status call(const std::string& operation, const furl::plan& p, float* x, furl::bytes blob,
                  cudaStream_t stream, const furl::options& o) {
  if (operation == "compress")
    return furl::compress(p, {x, p.num_elements()}, blob, {1, 2}, stream, o);
  if (operation == "decompress") return furl::decompress(p, blob, {x, p.num_elements()}, stream, o);
  return call_batch(operation, p, x, blob, stream, o);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  furl::codec c;
  if (argv[2] == std::string("planes")) c.window = {1, 8, 8};
  const int images = argv[2] == std::string("tile") ? 1 : 2;
  const furl::plan p = *furl::plan::make(c, {images, 32, 32});
  furl::options o;
  o.check_pointers = argv[3] == std::string("checked");
  float* x = nullptr;
  void* blob = nullptr;
  cudaStream_t stream = nullptr;
  if (!succeeds(cudaMalloc(&x, sizeof(float) * std::size_t(p.num_elements()))) ||
      !succeeds(cudaMalloc(&blob, p.size_bytes())) || !succeeds(cudaStreamCreate(&stream)))
    return 1;
  for (int made = 0; made < std::atoi(argv[4]); ++made)
    if (!succeeds(call(argv[1], p, x, {blob, p.size_bytes()}, stream, o))) return 1;
  return succeeds(cudaDeviceSynchronize()) ? 0 : 1;
}
