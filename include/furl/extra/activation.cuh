// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE GRID. ReLU and its mask in one pass: one warp a tile.
//
// ONE GRID. Dropout (FORMAT.md, A10): one warp a tile.
//
// ReLU that keeps one bit per element for its backward pass, in device memory.
//
// Dropout in device memory (FORMAT.md, A10): with one bit per element for its backward pass, or with
// nothing kept but p and the key.

#include "furl/block/codes.cuh"
#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/detail/device/compress.cuh"
#include "furl/detail/device/intrinsics.cuh"
#include "furl/detail/device/launch.cuh"
#include "furl/detail/device/pairs.cuh"
#include "furl/detail/extra/one_bit.cuh"
#include "furl/detail/quantize.hpp"
#include "furl/extra/activation.hpp"
#include "furl/extra/codebook.cuh"
#include "furl/extra/codebook.hpp"
#include "furl/plan.hpp"
#include "furl/types.hpp"

FURL_HIDDEN_BEGIN

namespace furl::kernel {

/// y and the mask of x > 0.
template <class T>
__global__ void __launch_bounds__(block_threads) relu(masked_arrays<T> a) {
  // In a register of its own: a constant would be loaded for every tile.
  const u32 threshold = forgotten(threshold_word<T>(smallest_positive));
  for_each_masked_tile<true>(a, [&](tile_fragment<T>& x, int count, i64, u32* word) {
    store_word(word, encode_binary(x, count, threshold));
    FURL_UNROLL
    for (auto& row : x.word) {
      FURL_UNROLL
      for (auto& element : row) {
        if constexpr (sizeof(T) == 4) {
          element = max_nan_zero(element);
        } else {
          element = max_nan_pair<T>(element, 0u);
        }
      }
    }
  });
}

}  // namespace furl::kernel

FURL_HIDDEN_END

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

/// HasMask : whether what is kept is stored too.
template <class T, bool HasMask>
__global__ void __launch_bounds__(block_threads)
    dropout(masked_arrays<T> a, dropout_rate rate, key_argument key_source) {
  const random_key key = key_source.get();
  for_each_masked_tile<true>(a, [&](tile_fragment<T>& x, int count, i64 tile, u32* word) {
    const u32 kept = drop_tile(tile, count, rate, key, x);
    if constexpr (HasMask) store_word(word, kept);
  });
}

}  // namespace kernel
}  // namespace furl

FURL_HIDDEN_END

#if !defined(__CUDACC_RTC__)

FURL_HIDDEN_BEGIN

namespace furl {

/// y = x where x > 0, NaN where x is NaN, else +0; and the mask of x > 0, which is false for NaN,
/// in the same pass. The backward pass is unpack_multiply with positive_codebook().
/// x      : device, plan.num_elements() elements of any dtype, aligned to one; to four, it is fast.
/// y      : likewise, of x's dtype; x itself, or apart from it.
/// blob   : device, the mask: plan.size_bytes() bytes or more; aligned to 16 bytes; apart from x
///          and y.
/// stream : as for compress.
/// Errors: see status; nothing is launched for a bad argument. The plan must come from
/// plan::make_codes with 1 bit. Allocates nothing and waits for nothing.
template <class Architectures = kernel::architectures>
status relu(const plan& p, const_values x, values y, bytes blob, cudaStream_t stream) {
  if (const status s = detail::check_masked(p, x, y, {blob.data, blob.size_bytes}); !s) return s;
  if (const status s = detail::check_element_alignment(x.data, x.type, "x"); !s) return s;
  if (const status s = detail::check_element_alignment(y.data, y.type, "y"); !s) return s;
  if (p.num_elements() == 0) return {};
  const kernel::stream_scope scope(stream);
  if (const status s =
          detail::check_reachable(scope, {{x.data, "x"}, {blob.data, "blob"}, {y.data, "y"}});
      !s)
    return s;
  return with_type(x.type, [&](auto element) {
    using type = decltype(element);
    return kernel::launch(
        kernel::relu<type>, kernel::blocks_of_few_tiles(p.num_tiles()), kernel::block_threads,
        stream,
        kernel::masked_arrays<type>(p.num_elements(), static_cast<const type*>(x.data),
                                    static_cast<type*>(y.data), static_cast<u32*>(blob.data)));
  });
}

}  // namespace furl

FURL_HIDDEN_END

#endif

#if !defined(__CUDACC_RTC__)

FURL_HIDDEN_BEGIN

namespace furl {

namespace detail {

/// What both kinds of dropout do once their arrays are checked. mask: null if there is none.
template <class Architectures>
status launch_dropout(const_values x, double p, values y, void* mask, random_key key,
                      cudaStream_t stream, const options& o) {
  const auto rate = make_dropout_rate(p);
  if (!rate) return rate.status();
  if (const status s = check_element_alignment(x.data, x.type, "x"); !s) return s;
  if (const status s = check_element_alignment(y.data, y.type, "y"); !s) return s;
  if (const status s = check_device_key(o.device_key); !s) return s;
  if (const status s = check_options(plan{}, o); !s) return s;
  if (x.num_elements == 0) return {};
  const kernel::stream_scope scope(stream);
  if (const status s = check_reachable(
          scope,
          {{x.data, "x"}, {mask, "blob"}, {o.device_key, "options.device_key"}, {y.data, "y"}});
      !s)
    return s;
  return with_type(x.type, [&](auto element) {
    using type = decltype(element);
    const kernel::masked_arrays<type> arrays(x.num_elements, static_cast<const type*>(x.data),
                                             static_cast<type*>(y.data), static_cast<u32*>(mask));
    const auto function =
        mask != nullptr ? kernel::dropout<type, true> : kernel::dropout<type, false>;
    return kernel::launch(
        function, kernel::blocks_of_few_tiles(ceil_div(x.num_elements, tile_elements)),
        kernel::block_threads, stream, arrays, *rate, kernel::key_argument{key, o.device_key});
  });
}

}  // namespace detail

/// Each element becomes +0 with probability p, whatever it is, else itself times 1 / (1 - p),
/// rounded once to its dtype. Nothing is kept: the backward pass is the same call with the same p
/// and key on the gradient.
/// x      : device, any number of elements of any dtype, aligned to one; to four, it is fast.
/// p      : rounded to a multiple of 2^-16, in the scale too; at least 0 and below 1 - 2^-17.
/// y      : device, of x's dtype and size; x itself, or apart from it.
/// key    : of the random stream; each dropout takes another.
/// stream : as for compress; options.device_key too.
/// Errors: see status; nothing is launched for a bad argument. Allocates nothing and waits for
/// nothing.
template <class Architectures = kernel::architectures>
status dropout(const_values x, double p, values y, random_key key, cudaStream_t stream,
               const options& o = {}) {
  if (const status s = detail::check_dropout(x, y); !s) return s;
  return detail::launch_dropout<Architectures>(x, p, y, nullptr, key, stream, o);
}

/// The same, and the mask of what is kept. The backward pass is unpack_multiply with
/// dropout_codebook(p).
/// codes : from plan::make_codes with 1 bit, of as many elements as x and y.
/// blob  : device, codes.size_bytes() bytes or more; aligned to 16 bytes; apart from x and y.
template <class Architectures = kernel::architectures>
status dropout(const plan& codes, const_values x, double p, values y, bytes blob, random_key key,
               cudaStream_t stream, const options& o = {}) {
  if (const status s = detail::check_masked(codes, x, y, {blob.data, blob.size_bytes}); !s)
    return s;
  return detail::launch_dropout<Architectures>(x, p, y, blob.data, key, stream, o);
}

}  // namespace furl

FURL_HIDDEN_END

#endif
