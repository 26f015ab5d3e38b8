// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A call on the device: its arguments, and the library's calls with what they take there.

#include <cuda_runtime_api.h>

#include <vector>

#include "calls.hpp"
#include "furl/furl.cuh"

namespace furl::bench {

/// As furl::NAME, with these arguments behind the others.
#define FURL_BENCH_CALL(NAME, ...)           \
  template <class... Rest>                   \
  status NAME(const Rest&... rest) const {   \
    return furl::NAME(rest..., __VA_ARGS__); \
  }

struct device_call : arguments {
  cudaStream_t stream = nullptr;

  furl::options options() const {
    furl::options o;
    give(o);
    if (of->r.way == path::mixed) o.tile_index = all_of(operand::tile_index);
    return o;
  }

  FURL_BENCH_CALL(compress, stream, options())
  FURL_BENCH_CALL(decompress, stream, options())
  FURL_BENCH_CALL(decompress_add, stream, options())
  FURL_BENCH_CALL(compress_batch, stream)
  FURL_BENCH_CALL(decompress_batch, stream)
  FURL_BENCH_CALL(pack, stream)
  FURL_BENCH_CALL(unpack, stream)
  FURL_BENCH_CALL(unpack_multiply, stream)
  FURL_BENCH_CALL(relu, stream)
  FURL_BENCH_CALL(dropout, stream)
  FURL_BENCH_CALL(max_pool, stream)
  FURL_BENCH_CALL(max_pool_backward, stream)
  FURL_BENCH_CALL(measure, workspace(), stream)
  FURL_BENCH_CALL(squared_ranges, stream)
  FURL_BENCH_CALL(expand_sensitivity, stream)
  FURL_BENCH_CALL(allocate_bits, workspace(), stream)

  status keep_and_restore() const {
    const furl::result<furl::stash> kept =
        furl::stash::compress(plan(), input(), key(), stream, options());
    return kept ? kept->restore(y(), stream, options()) : kept.status();
  }

  static u64 workspace_bytes(const task& t) {
    if (t.r.what() == primitive::measure) return measure_workspace_bytes(t.plan);
    if (t.r.what() == primitive::allocate_bits)
      return allocation_workspace_bytes(t.plan.num_tiles());
    return t.r.what() == primitive::cub_min_max ? u64{1} << 20 : 0;
  }
  bytes workspace() const { return {at[std::size_t(operand::workspace)], workspace_bytes(*of)}; }
};

#undef FURL_BENCH_CALL

/// What has no call of the library: the copy, the parts of its kernels, and CUB beside them.
std::vector<call<device_call>> part_calls();

}  // namespace furl::bench
