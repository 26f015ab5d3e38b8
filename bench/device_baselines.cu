// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Rows of the baselines. Their intermediates stay in one place, as a framework's allocator would
// give it to every call.

#include <cuda_runtime_api.h>

#include "baselines/actnn.cuh"
#include "baselines/division.cuh"
#include "device_rows.hpp"
#include "device_timing.cuh"

namespace furl::bench {
namespace {

/// The two innermost dimensions are a plane.
division::planes planes_of(const extents& shape) {
  division::planes p{1, int(shape[shape.rank - 2]), int(shape[shape.rank - 1])};
  for (int d = 0; d + 2 < shape.rank; ++d) p.count *= shape[d];
  return p;
}

void run_division(benchmark::State& state, const row& r) {
  const division::planes p = planes_of(r.on.shape);
  const u64 per_plane = u64(p.count) * sizeof(float);
  const u64 size = tensor_bytes(r);
  const rotating_arrays arrays({size, u64(p.count) * u64(p.cells()) * sizeof(bf16), per_plane,
                                per_plane, u64(division::packed_bytes(p, r.bits))});
  const fixed_arrays between({size, size, u64(p.num_elements()), per_plane, per_plane});
  const division::intermediates temporary{between.as<float>(0), between.as<float>(1),
                                          between.as<u8>(2), between.as<float>(3),
                                          between.as<float>(4)};
  const auto x = [&](i64 index) { return reinterpret_cast<float*>(arrays.at(0, index)); };
  const auto blob = [&](i64 index) {
    return division::compressed{reinterpret_cast<bf16*>(arrays.at(1, index)),
                                reinterpret_cast<float*>(arrays.at(2, index)),
                                reinterpret_cast<float*>(arrays.at(3, index)), arrays.at(4, index)};
  };
  arrays.fill(0, deviates_as(dtype::f32));
  division::compress(p, r.bits, x(0), 1, 0, temporary, blob(0), nullptr);
  arrays.replicate();
  if (r.what() == primitive::division_compress) {
    measure(state, r, division::compress_bytes(p, r.bits), [&](i64 index, cudaStream_t stream) {
      division::compress(p, r.bits, x(index), 1, 4 * u64(index), temporary, blob(index), stream);
    });
  } else {
    measure(state, r, division::decompress_bytes(p, r.bits), [&](i64 index, cudaStream_t stream) {
      division::decompress(p, r.bits, blob(index), temporary, x(index), stream);
    });
  }
  require(cudaGetLastError());
}

void run_actnn(benchmark::State& state, const row& r) {
  const i64 n = num_elements(r);
  const u64 per_group = u64(actnn::num_groups(n)) * sizeof(float);
  const rotating_arrays arrays(
      {tensor_bytes(r), per_group, per_group, u64(actnn::num_rows(n, r.bits)) * actnn::group});
  const fixed_arrays between({per_group});
  auto* const scale = between.as<float>(0);
  const auto x = [&](i64 index) { return reinterpret_cast<float*>(arrays.at(0, index)); };
  const auto blob = [&](i64 index) {
    return actnn::compressed{reinterpret_cast<float*>(arrays.at(1, index)),
                             reinterpret_cast<float*>(arrays.at(2, index)), arrays.at(3, index)};
  };
  arrays.fill(0, deviates_as(dtype::f32));
  actnn::compress(n, r.bits, x(0), 1, 0, scale, blob(0), nullptr);
  arrays.replicate();
  if (r.what() == primitive::actnn_compress) {
    measure(state, r, actnn::compress_bytes(n, r.bits), [&](i64 index, cudaStream_t stream) {
      actnn::compress(n, r.bits, x(index), 1, 8 * u64(index), scale, blob(index), stream);
    });
  } else {
    measure(state, r, actnn::decompress_bytes(n, r.bits), [&](i64 index, cudaStream_t stream) {
      actnn::decompress(n, r.bits, blob(index), x(index), stream);
    });
  }
  require(cudaGetLastError());
}

}  // namespace

void register_baseline_rows(bool all) {
  for (const primitive what : {primitive::division_compress, primitive::division_decompress})
    register_device_rows(what, all, run_division);
  for (const primitive what : {primitive::actnn_compress, primitive::actnn_decompress})
    register_device_rows(what, all, run_actnn);
}

}  // namespace furl::bench
