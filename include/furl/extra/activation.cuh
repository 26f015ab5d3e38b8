// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Activations whose backward pass needs one bit per element, or none: ReLU with its mask, and
// dropout with a mask or with nothing kept but its rate and key (FORMAT.md, A10), in device memory.
// extra/activation.hpp has the same calls for host memory, and documents each in full. What
// compress.cuh says of streams, launches and errors holds here too. Kernels have one warp a tile.

#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/detail/checks.hpp"
#include "furl/detail/device/intrinsics.cuh"
#include "furl/detail/device/launch.cuh"
#include "furl/detail/device/one_bit.cuh"
#include "furl/detail/device/pairs.cuh"
#include "furl/detail/device/positives_kernels.cuh"
#include "furl/detail/device/vectors.cuh"
#include "furl/detail/quantize.hpp"
#include "furl/extra/activation.hpp"
#include "furl/extra/codebook.hpp"
#include "furl/plan.hpp"
#include "furl/types.hpp"

FURL_HIDDEN_BEGIN

namespace furl {

namespace detail {

/// -1 where 16 random bits, the upper ones of `bits`, are at least the threshold, else 0.
__device__ __forceinline__ u32 minus_kept(u32 bits, u32 threshold) {
  u32 r;
  asm("set.ge.u32.u32 %0, %1, %2;" : "=r"(r) : "r"(bits), "r"(threshold << 16));
  return r;
}

/// Row Row of a tile: its random bytes, high and low, decide what is kept.
template <int Row, class T>
__device__ __forceinline__ u32 drop_row(u32 high, u32 low, const dropout_rate& rate, u32 word,
                                        tile_fragment<T>& x) {
  const u32 first_pair = select_bytes(low, high, 0x6240);  // columns 0 and 1: bytes 0 and 2
  const u32 second_pair = select_bytes(low, high, 0x7351);
  const u32 kept[4] = {minus_kept(first_pair << 16, rate.threshold),
                       minus_kept(first_pair & 0xffff0000u, rate.threshold),
                       minus_kept(second_pair << 16, rate.threshold),
                       minus_kept(second_pair & 0xffff0000u, rate.threshold)};
  float v[4];
  unpack_row<T>(x.word[Row], v);
  FURL_UNROLL
  for (int k = 0; k < 4; ++k) v[k] = mul_rn(keep_by_mask(v[k], kept[k]), rate.scale);
  pack_row<T>(v, x.word[Row]);
  word = and_or<0x00000001u << Row>(kept[0], word);
  word = and_or<0x00000100u << Row>(kept[1], word);
  word = and_or<0x00010000u << Row>(kept[2], word);
  return and_or<0x01000000u << Row>(kept[3], word);
}

}  // namespace detail

/// Drops and scales the elements of a tile.
/// Threads : one warp, all lanes; x is each lane's own, of which `count` elements are present.
/// Shapes  : tile : its index in the tensor.
/// Shared  : none. Sync : none.
/// Result  : the lane's mask of what is kept, as the blob of one-bit codes has it; x, replaced.
template <class T>
__device__ __forceinline__ u32 drop_tile(i64 tile, int count, const dropout_rate& rate,
                                         random_key key, tile_fragment<T>& x) {
  const u32 lane = u32(lane_index());
  philox_block high = random_words(u64(tile), 0, lane, key);
  philox_block low = random_words(u64(tile) + low_byte_tiles, 0, lane, key);
  u32 word = detail::drop_row<0>(high.word[0], low.word[0], rate, 0u, x);
  word = detail::drop_row<1>(high.word[1], low.word[1], rate, word, x);
  word = detail::drop_row<2>(high.word[2], low.word[2], rate, word, x);
  word = detail::drop_row<3>(high.word[3], low.word[3], rate, word, x);
  high = random_words(u64(tile), 1, lane, key);
  low = random_words(u64(tile) + low_byte_tiles, 1, lane, key);
  word = detail::drop_row<4>(high.word[0], low.word[0], rate, word, x);
  word = detail::drop_row<5>(high.word[1], low.word[1], rate, word, x);
  word = detail::drop_row<6>(high.word[2], low.word[2], rate, word, x);
  word = detail::drop_row<7>(high.word[3], low.word[3], rate, word, x);
  return count < tile_elements ? word & present_bits(count) : word;
}

namespace kernel {

/// y and the mask of x > 0.
template <class T, class Architectures>
__global__ void __launch_bounds__(block_threads) relu(masked_arrays<T> a) {
  // In a register of its own: a constant would be loaded for every tile.
  const u32 threshold = forgotten(threshold_word<T>(smallest_positive));
  for_each_masked_tile<true>(a, [&](tile_fragment<T>& x, int count, i64, u32* word) {
    store_blob_word<0>(u64(word), relu_tile(x, count, threshold));
  });
}

/// HasMask : whether what is kept is stored too.
template <class T, bool HasMask, class Architectures>
__global__ void __launch_bounds__(block_threads, 4)  // without the number ptxas spills
    dropout(masked_arrays<T> a, dropout_rate rate, key_argument key_source) {
  const random_key key = key_source.get();
  for_each_masked_tile<true>(a, [&](tile_fragment<T>& x, int count, i64 tile, u32* word) {
    const u32 kept = drop_tile(tile, count, rate, key, x);
    if constexpr (HasMask) store_blob_word<0>(u64(word), kept);
  });
}

}  // namespace kernel

#if !defined(__CUDACC_RTC__)

namespace detail {

/// What device memory and options must be for a call that makes y, and perhaps a blob, from x.
inline status check_activation(const plan& p, const_values x, values y, bytes blob,
                               const options& o) {
  if (const status s = check_device_alignment(p, blob, {{x, "x"}, {y, "y"}}); !s) return s;
  return check_options_without_ranges(p, o, {bytes_of(y, "y"), bytes_of(p, blob)});
}

/// What both kinds of dropout do once their arrays are checked. Without a mask, codes and blob are
/// empty.
template <class Architectures>
status launch_dropout(const plan& codes, const_values x, double p, values y, bytes blob,
                      random_key key, cudaStream_t stream, const options& o) {
  const result<dropout_rate> rate = make_dropout_rate(p);
  if (!rate) return rate.status();
  if (const status s = check_activation(codes, x, y, blob, o); !s) return s;
  if (x.num_elements == 0) return {};
  return kernel::run_on(
      stream, o.check_pointers,
      {{x.data, "x"}, {blob.data, "blob"}, {o.device_key, "options.device_key"}, {y.data, "y"}},
      [&] {
        return with_type(x.type, [&](auto element) {
          using type = decltype(element);
          const kernel::masked_arrays<type> arrays(x.num_elements, static_cast<const type*>(x.data),
                                                   static_cast<type*>(y.data),
                                                   static_cast<u32*>(blob.data));
          const auto function = blob.data != nullptr ? kernel::dropout<type, true, Architectures>
                                                     : kernel::dropout<type, false, Architectures>;
          const i64 num_tiles = ceil_div(x.num_elements, tile_elements);
          return kernel::launch(function, {kernel::blocks_of_few_tiles(num_tiles)}, stream, arrays,
                                *rate, kernel::key_argument{key, o.device_key});
        });
      });
}

}  // namespace detail

/// Writes to y what a ReLU makes of x, and to the blob the mask of x > 0, in one pass, on a stream.
/// As furl::host::relu, with the same values.
/// x    : device, plan.num_elements() elements of any dtype, aligned to one element; to four, it is
///        fast.
/// y    : device, as many elements of x's dtype, aligned likewise; x itself, or disjoint from it.
/// blob : device, plan.size_bytes() bytes or more, aligned to 16 bytes, disjoint from x and y.
/// Options for tiles, ranges and statistics are refused. Errors: see status; nothing is launched
/// for a bad argument.
template <class Architectures = kernel::architectures>
status relu(const plan& p, const_values x, values y, bytes blob, cudaStream_t stream,
            const options& o = {}) {
  if (const status s = detail::check_masked(p, x, y, blob); !s) return s;
  if (const status s = detail::check_activation(p, x, y, blob, o); !s) return s;
  if (p.num_elements() == 0) return {};
  return kernel::run_on(
      stream, o.check_pointers, {{x.data, "x"}, {blob.data, "blob"}, {y.data, "y"}}, [&] {
        return with_type(x.type, [&](auto element) {
          using type = decltype(element);
          const kernel::masked_arrays<type> arrays(
              p.num_elements(), static_cast<const type*>(x.data), static_cast<type*>(y.data),
              static_cast<u32*>(blob.data));
          return kernel::launch(kernel::relu<type, Architectures>,
                                {kernel::blocks_of_few_tiles(p.num_tiles())}, stream, arrays);
        });
      });
}

/// Writes to y what a ReLU makes of x, and to the blob its mask, means and rotated codes, in one
/// pass, on a stream. As furl::host::relu with a key, with the same values and bytes.
/// p    : from plan::make with coding::positives.
/// x    : device, plan.num_elements() elements of any dtype, aligned to one element; to four, it is
///        fast.
/// y    : device, as many elements of x's dtype, aligned likewise; x itself, or disjoint from it.
/// blob : device, plan.size_bytes() bytes or more, aligned to 16 bytes, disjoint from x and y.
/// key  : of the random stream; options.device_key takes its place.
/// Options for tiles, ranges and statistics are refused. Errors: see status; nothing is launched
/// for a bad argument.
template <class Architectures = kernel::architectures>
status relu(const plan& p, const_values x, values y, bytes blob, random_key key,
            cudaStream_t stream, const options& o = {}) {
  if (const status s = detail::check_positives(p, x, y, blob); !s) return s;
  if (const status s = detail::check_activation(p, x, y, blob, o); !s) return s;
  if (p.num_elements() == 0) return {};
  return kernel::run_on(
      stream, o.check_pointers,
      {{x.data, "x"}, {blob.data, "blob"}, {o.device_key, "options.device_key"}, {y.data, "y"}},
      [&] {
        return with_type(x.type, [&](auto element) {
          using type = decltype(element);
          return kernel::launch_compress_positives<Architectures>(
              p, o, static_cast<const type*>(x.data), static_cast<type*>(y.data),
              static_cast<u8*>(blob.data), key, stream);
        });
      });
}

/// Makes each element +0 with probability p, and multiplies the others by 1 / (1 - p), on a stream.
/// As furl::host::dropout, with the same values. Nothing is kept: the backward pass is the same
/// call with the same p and key on the gradient.
/// x   : device, any number of elements of any dtype, aligned to one element; to four, it is fast.
/// y   : device, as many elements of x's dtype, aligned likewise; x itself, or disjoint from it.
/// key : of the random stream; options.device_key takes its place.
/// Options for tiles, ranges and statistics are refused. Errors: see status; nothing is launched
/// for a bad argument.
template <class Architectures = kernel::architectures>
status dropout(const_values x, double p, values y, random_key key, cudaStream_t stream,
               const options& o = {}) {
  if (const status s = detail::check_dropout(x, y); !s) return s;
  return detail::launch_dropout<Architectures>({}, x, p, y, {}, key, stream, o);
}

/// Drops elements as the dropout without a plan does, on a stream, and writes the mask of those
/// that are kept. As furl::host::dropout with a mask, with the same values.
/// codes : from plan::make_codes with 1 bit, of as many elements as x and y.
/// blob  : device, codes.size_bytes() bytes or more, aligned to 16 bytes, disjoint from x and y.
/// x, p, y, key, options and errors are as without a plan.
template <class Architectures = kernel::architectures>
status dropout(const plan& codes, const_values x, double p, values y, bytes blob, random_key key,
               cudaStream_t stream, const options& o = {}) {
  if (const status s = detail::check_masked(codes, x, y, blob); !s) return s;
  return detail::launch_dropout<Architectures>(codes, x, p, y, blob, key, stream, o);
}

#endif

}  // namespace furl

FURL_HIDDEN_END
