// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE WARP. Values to codes by a codebook, and back to levels (README, A9). Thresholds are searched
// in a tree of four branches in shared memory: two bits of the code for one load of 16 bytes, which
// lanes of a warp seldom dispute.

#include "furl/block/codes.cuh"
#include "furl/block/quantize_pack.cuh"
#include "furl/block/selection.cuh"
#include "furl/block/tile.cuh"
#include "furl/codebook.hpp"
#include "furl/config.hpp"
#include "furl/element/philox.hpp"
#include "furl/element/quantize.hpp"

FURL_HIDDEN_BEGIN

namespace furl {

/// 2^bits - 1 thresholds, ascending; those that a codebook lacks are NaN. Stage s of the search
/// tells apart four subtrees by three of them, all of a node. Before that, if bits is odd, one
/// threshold tells two halves apart.
struct threshold_tree {
  float4 node[85];  // stage after stage; w is not used
  float half;       // the one before the stages
};

/// Levels. A code that names none stands for 0.
struct level_table {
  float level[max_levels];  // by code
};
/// Where intervals between levels begin, and 1 over their lengths.
struct interval_table {
  float2 begin[max_levels];  // level, inverse
};

namespace detail {

/// Thresholds that the search counts: those of the codebook, or for stochastic rounding all levels
/// but the first and the last.
__device__ __forceinline__ int num_counted(const codebook& book) {
  return book.num_levels - (book.rounding == rounding::nearest ? 1 : 2);
}
__device__ __forceinline__ float counted(const codebook& book, int index) {
  if (index >= num_counted(book)) return float_of(f32_nan_bits);
  return book.rounding == rounding::nearest ? book.threshold[index] : book.level[index + 1];
}

/// Minus the number of a node's thresholds that are at most x.
__device__ __forceinline__ int search_node(float x, const float4& node) {
  const int middle = minus_at_least(x, node.y);
  return multiply_add<2>(middle, minus_at_least(x, choose(middle, node.x, node.z)));
}

/// Minus the number of thresholds that are at most x, from stage Stage on, in subtree -path.
template <int Bits, int Stage>
__device__ __forceinline__ int search_stages(float x, u32 nodes, int path) {
  if constexpr (Stage < Bits / 2) {
    constexpr int begin = (1 + Bits % 2) * ((1 << (2 * Stage)) - 1) / 3;
    float4 node;
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4 + %5];"
                 : "=f"(node.x), "=f"(node.y), "=f"(node.z), "=f"(node.w)
                 : "r"(multiply_add<-16>(path, int(nodes))), "n"(16 * begin));
    return search_stages<Bits, Stage + 1>(x, nodes, multiply_add<4>(path, search_node(x, node)));
  } else {
    return path;
  }
}

/// How many thresholds are at most each x: a byte each of codes.
template <int Bits, class T>
__device__ __forceinline__ void count_thresholds(const tile_fragment<T>& x,
                                                 const threshold_tree& tree,
                                                 u32 (&codes)[rows_per_tile]) {
  const u32 nodes = u32(__cvta_generic_to_shared(tree.node));
  const float4 root = Bits % 2 == 0 ? tree.node[0] : float4{};
  const float half = Bits % 2 != 0 ? tree.half : 0.0f;
  FURL_UNROLL
  for (int row = 0; row < rows_per_tile; ++row) {
    float v[4];
    unpack_row<T>(x.word[row], v);
    int n[4];
    FURL_UNROLL
    for (int k = 0; k < 4; ++k) {
      if constexpr (Bits % 2 != 0) {
        n[k] = search_stages<Bits, 0>(v[k], nodes, minus_at_least(v[k], half));
      } else {
        n[k] = search_stages<Bits, 1>(v[k], nodes, search_node(v[k], root));
      }
    }
    const int low = multiply_add<1 << 8>(n[1], n[0]);
    const int high = multiply_add<1 << 8>(n[3], n[2]);
    codes[row] = u32(-multiply_add<1 << 16>(high, low));
  }
}

}  // namespace detail

/// Lays out the thresholds of a codebook for search. Bits: book.bits().
/// Threads : one block, all threads.
/// Shared  : tree. Sync : none; the caller synchronises the block before the tree is used.
/// Pre     : the codebook is valid; best a __grid_constant__ parameter of the kernel.
template <int Bits>
__device__ __forceinline__ void load_thresholds(const codebook& book, threshold_tree& tree) {
  FURL_NO_UNROLL
  for (int i = int(threadIdx.x); i < (1 << Bits) - 1; i += int(blockDim.x)) {
    // Each two zeros that the number of a threshold ends in are one stage less down the tree.
    const int above = (__ffs(i + 1) - 1) / 2;
    const int stage = Bits / 2 - 1 - above;
    const int path = (i + 1) >> (2 * above);  // 4 * node of the stage + 1, 2 or 3
    const int nodes_before = (1 + Bits % 2) * (0x5555 & ((1 << (2 * stage)) - 1));
    const float threshold = detail::counted(book, i);
    if (stage < 0) {
      tree.half = threshold;
    } else {
      float4& node = tree.node[nodes_before + path / 4];
      (&node.x)[path % 4 - 1] = threshold;
      if (path % 4 == 1) node.w = 0.0f;  // it is read with the others
    }
  }
}

/// @{
/// Threads, Shared, Sync, Pre : as load_thresholds.
__device__ __forceinline__ void load_levels(const codebook& book, level_table& table) {
  FURL_NO_UNROLL
  for (int i = int(threadIdx.x); i < max_levels; i += int(blockDim.x))
    table.level[i] = i < book.num_levels ? book.level[i] : 0.0f;
}
__device__ __forceinline__ void load_intervals(const codebook& book, interval_table& table) {
  FURL_NO_UNROLL
  for (int i = int(threadIdx.x); i < book.num_levels - 1; i += int(blockDim.x)) {
    const float inverse = div(1.0f, sub(book.level[i + 1], book.level[i]));
    table.begin[i] = make_float2(book.level[i], inverse);
  }
}
/// @}

/// Codes of a tile by thresholds. Bits: of the codebook, as load_thresholds had it.
/// Threads : one warp, all lanes; x is each lane's own.
/// Shared  : tree, filled. Sync : none.
/// Result  : codes, as store_codes takes them.
template <int Bits, class T>
__device__ __forceinline__ void encode_nearest(const tile_fragment<T>& x,
                                               const threshold_tree& tree,
                                               u32 (&codes)[rows_per_tile]) {
  detail::count_thresholds<Bits>(x, tree, codes);
}

/// Codes of a tile by stochastic rounding between levels. Bits, Threads, Result: as encode_nearest.
/// Shapes  : first, last : the first and the last level.
///           tile        : its index in the tensor.
/// Shared  : tree and intervals, filled. Sync : none.
template <int Bits, class T>
__device__ __forceinline__ void encode_stochastic(const tile_fragment<T>& x,
                                                  const threshold_tree& tree,
                                                  const interval_table& intervals, float first,
                                                  float last, i64 tile, random_key key,
                                                  u32 (&codes)[rows_per_tile]) {
  tile_fragment<float> inside;
  FURL_UNROLL
  for (int row = 0; row < rows_per_tile; ++row) {
    unpack_row<T>(x.word[row], inside.word[row]);
    FURL_UNROLL
    for (int k = 0; k < 4; ++k) inside.word[row][k] = clamp(inside.word[row][k], first, last);
  }
  detail::count_thresholds<Bits>(inside, tree, codes);
  FURL_UNROLL
  for (int half = 0; half < 2; ++half) {
    const philox_block random = random_words(u64(tile), u32(half), u32(lane_index()), key);
    FURL_UNROLL
    for (int r = 0; r < 4; ++r) {
      const int row = 4 * half + r;
      float y[4];
      FURL_UNROLL
      for (int k = 0; k < 4; ++k) {
        const float2 begin = intervals.begin[select_bytes(codes[row], 0u, 0x4440u + u32(k))];
        y[k] = fma(sub(inside.word[row][k], begin.x), begin.y, 32768.0f);
      }
      const detail::fixed_row fixed{select_bytes(y[0], y[1], 0x5410),
                                    select_bytes(y[2], y[3], 0x5410)};
      codes[row] += detail::round_row(fixed, random.word[r]);  // at most 255 in each byte
    }
  }
}

/// Levels of a row's four codes.
__device__ __forceinline__ void look_up_row(u32 codes, const level_table& table,
                                            float (&level)[4]) {
  const int begin = int(__cvta_generic_to_shared(table.level));
  FURL_UNROLL
  for (int k = 0; k < 4; ++k) {
    const int code = int(select_bytes(codes, 0u, 0x4440u + u32(k)));
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(level[k]) : "r"(multiply_add<4>(code, begin)));
  }
}

/// A row's elements times the levels of their codes; a level of 0 gives +0.
template <class T>
__device__ __forceinline__ void scale_row(u32 codes, const level_table& table, row_words<T>& word) {
  float v[4];
  float level[4];
  unpack_row<T>(word, v);
  look_up_row(codes, table, level);
  FURL_UNROLL
  for (int k = 0; k < 4; ++k) v[k] = keep_by_factor(mul(v[k], level[k]), level[k]);
  pack_row<T>(v, word);
}

}  // namespace furl

FURL_HIDDEN_END
