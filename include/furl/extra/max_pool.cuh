// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Max pooling that keeps the index of each maximum in its window, in as few bits as it needs, for
// its backward pass (FORMAT.md, A11), in device memory. extra/max_pool.hpp has the same calls for
// host memory, and documents each in full. What compress.cuh says of streams, launches and
// errors holds here too. One warp pools a tile of outputs. One thread gathers the gradients of a
// few inputs of a column, which needs no atomics.

#include "furl/block/codes.cuh"
#include "furl/block/layout.cuh"
#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/detail/checks.hpp"
#include "furl/detail/device/intrinsics.cuh"
#include "furl/detail/device/launch.cuh"
#include "furl/detail/extra/max_pool.hpp"
#include "furl/detail/number.hpp"
#include "furl/extra/max_pool.hpp"
#include "furl/plan.hpp"
#include "furl/types.hpp"

FURL_HIDDEN_BEGIN

namespace furl {

namespace kernel {

/// The maximum of each window and its index, as packed codes.
/// Neighbouring lanes take neighbouring outputs, so that their reads share lines. The codes then
/// change lanes through shared memory.
template <class T, class Architectures>
__global__ void __launch_bounds__(block_threads)
    max_pool(pool_geometry g, image_list outputs, const T* x, T* y, u8* blob) {
  __shared__ u32 codes_of_warp[warps_per_block][rows_per_tile * words_per_row];
  u32* const words = codes_of_warp[threadIdx.x / warp_threads];
  u8* const bytes = reinterpret_cast<u8*>(words);
  const int lane = lane_index();
  const i64 plane_inputs = i64(g.rows.input) * g.columns.input;
  const i64 stride = tile_stride();
  for (i64 tile = first_tile(); tile * tile_elements < outputs.num_elements; tile += stride) {
    const int count = elements_in_tile(outputs.num_elements, tile);
    for (int i = lane; i < tile_elements; i += warp_threads) {
      window_max best{0.0f, 0};
      if (i < count) {
        const i64 output = tile * tile_elements + i;
        const image_list::place at = outputs.place_of(output);
        const T* const image = x + at.plane * plane_inputs;
        best = max_of_window(g, at.row, at.column, [&](int row, int column) {
          return to_f32(image[row * g.columns.input + column]);
        });
        y[output] = round_to<T>(best.value);
      }
      bytes[i] = u8(best.index);
    }
    __syncwarp();
    u32 codes[rows_per_tile];
    FURL_UNROLL
    for (int row = 0; row < rows_per_tile; ++row) codes[row] = words[row * words_per_row + lane];
    store_codes(codes, g.bits, blob + tile * (g.bits * row_elements));
    __syncwarp();  // the bytes are used again
  }
}

/// The gradient of the inputs.
/// strips : images of as many columns, and one row for every gathered_rows of the inputs.
/// (Four blocks at once are fewer than fit; without the number ptxas spills to have 32 registers.)
template <class T, class Architectures>
__global__ void __launch_bounds__(block_threads, 4)
    max_pool_backward(pool_geometry g, image_list strips, const u8* blob, const T* gradient,
                      T* out) {
  const i64 plane_outputs = i64(g.rows.output) * g.columns.output;
  const i64 plane_inputs = i64(g.rows.input) * g.columns.input;
  const i64 stride = i64(gridDim.x) * blockDim.x;
  for (i64 strip = i64(blockIdx.x) * blockDim.x + threadIdx.x; strip < strips.num_elements;
       strip += stride) {
    const image_list::place at = strips.place_of(strip);
    const int row = at.row * gathered_rows;
    const i64 first_output = at.plane * plane_outputs;
    const T* const gradients = gradient + first_output;
    float sum[gathered_rows];
    gather_gradients(
        g, row, at.column, [&](int output) { return code_at(blob, first_output + output, g.bits); },
        [&](int output) { return to_f32(gradients[output]); }, sum);
    T* const column = out + at.plane * plane_inputs + (row * g.columns.input + at.column);
    FURL_UNROLL
    for (int k = 0; k < gathered_rows; ++k)
      if (row + k < g.rows.input) column[k * g.columns.input] = round_to<T>(sum[k]);
  }
}

}  // namespace kernel

#if !defined(__CUDACC_RTC__)

/// Writes to y the maximum of each window of x, and to the blob its index in the window, in one
/// pass, on a stream. As furl::host::max_pool, with the same values.
/// x    : device, p.num_inputs() elements of any dtype, aligned to one element.
/// y    : device, p.num_outputs() elements of x's dtype, aligned to one element, disjoint from x.
/// blob : device, p.codes().size_bytes() bytes or more, aligned to 16 bytes, disjoint from x and y.
/// Options for tiles, ranges and statistics are refused. Errors: see status; nothing is launched
/// for a bad argument.
template <class Architectures = kernel::architectures>
status max_pool(const max_pool_plan& p, const_values x, values y, bytes blob, cudaStream_t stream,
                const options& o = {}) {
  if (const status s = detail::check_max_pool(p, x, "x", y, "y", blob); !s) return s;
  if (const status s = detail::check_device_alignment(p.codes(), blob, {{x, "x"}, {y, "y"}}); !s)
    return s;
  if (const status s = detail::check_options_without_ranges(
          p.codes(), o, {detail::bytes_of(y, "y"), detail::bytes_of(p.codes(), blob)});
      !s)
    return s;
  if (p.num_outputs() == 0) return {};
  const pool_geometry& g = p.geometry();
  const image_list outputs(g.num_planes, g.rows.output, g.columns.output);
  return kernel::run_on(
      stream, o.check_pointers, {{x.data, "x"}, {y.data, "y"}, {blob.data, "blob"}}, [&] {
        return with_type(x.type, [&](auto element) {
          using type = decltype(element);
          return kernel::launch(kernel::max_pool<type, Architectures>,
                                {kernel::blocks_for(p.codes().num_tiles())}, stream, g, outputs,
                                static_cast<const type*>(x.data), static_cast<type*>(y.data),
                                static_cast<u8*>(blob.data));
        });
      });
}

/// Writes the gradient of the input of a max pooling, on a stream. As
/// furl::host::max_pool_backward, with the same values.
/// blob : device, what max_pool wrote, aligned to 16 bytes. Indices beyond the window are ignored.
/// g    : device, the gradient of y: p.num_outputs() elements of any dtype, aligned to one element.
/// out  : device, p.num_inputs() elements of g's dtype, aligned to one element, disjoint from g and
///        the blob.
/// Options for tiles, ranges and statistics are refused. Errors: see status; nothing is launched
/// for a bad argument.
template <class Architectures = kernel::architectures>
status max_pool_backward(const max_pool_plan& p, const_bytes blob, const_values g, values out,
                         cudaStream_t stream, const options& o = {}) {
  if (const status s = detail::check_max_pool(p, out, "out", g, "g", blob); !s) return s;
  if (const status s = detail::check_device_alignment(p.codes(), blob, {{g, "g"}, {out, "out"}});
      !s)
    return s;
  if (const status s =
          detail::check_options_without_ranges(p.codes(), o, {detail::bytes_of(out, "out")});
      !s)
    return s;
  if (p.num_inputs() == 0) return {};
  const pool_geometry& geometry = p.geometry();
  const image_list strips(geometry.num_planes,
                          int(detail::ceil_div(geometry.rows.input, gathered_rows)),
                          geometry.columns.input);
  const i64 warps = detail::ceil_div(strips.num_elements, warp_threads);
  return kernel::run_on(
      stream, o.check_pointers, {{out.data, "out"}, {g.data, "g"}, {blob.data, "blob"}}, [&] {
        return with_type(g.type, [&](auto element) {
          using type = decltype(element);
          return kernel::launch(kernel::max_pool_backward<type, Architectures>,
                                {kernel::blocks_for(warps)}, stream, geometry, strips,
                                static_cast<const u8*>(blob.data), static_cast<const type*>(g.data),
                                static_cast<type*>(out.data));
        });
      });
}

#endif

}  // namespace furl

FURL_HIDDEN_END
