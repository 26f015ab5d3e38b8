// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// ONE WARP. How many thresholds of a codebook are at most x (FORMAT.md, A9): a search in a tree of
// four branches in shared memory, two bits of the code for one load, for which lanes of a warp
// seldom compete. 16-bit elements are compared in pairs where the device can, with thresholds that
// are rounded up to their type: no element lies between.

#include "furl/block/tile.cuh"
#include "furl/config.hpp"
#include "furl/detail/device/intrinsics.cuh"
#include "furl/detail/device/one_bit.cuh"
#include "furl/detail/device/pairs.cuh"
#include "furl/extra/codebook.hpp"

FURL_HIDDEN_BEGIN

namespace furl {

/// Three neighbouring thresholds.
template <bool InPairs>
struct threshold_node {
  float threshold[3];  // ascending
  float unused;        // it is loaded with the others
};
/// As elements of 16 bits, for comparison in pairs.
template <>
struct threshold_node<true> {
  u16 threshold[3];  // ascending
  u16 unused;        // it is loaded with the others
};

/// 2^bits - 1 thresholds for elements of type T, ascending; those that a codebook lacks are NaN.
/// Stage s of the search tells apart four subtrees by three of them, all of a node. Before that, if
/// bits is odd, one threshold tells two halves apart.
template <class T, bool InPairs = compares_pairs<T>>
struct threshold_tree {
  using node_type = threshold_node<InPairs>;  // of 16 or of 8 bytes

  alignas(16) node_type node[85];  // stage after stage
  node_type half;                  // its first threshold is the one before the stages
};

namespace detail {

/// Thresholds that the search counts: those of the codebook, or for stochastic rounding all levels
/// but the first and the last.
__device__ __forceinline__ int num_counted(const codebook& book) {
  return book.num_levels - (book.rounding == rounding::nearest ? 1 : 2);
}
/// One of them as a node has it; NaN beyond them.
template <class T>
__device__ __forceinline__ void set_threshold(const codebook& book, int index, float& out) {
  out = float_of(f32_nan_bits);
  if (index < num_counted(book))
    out = book.rounding == rounding::nearest ? book.threshold[index] : book.level[index + 1];
}
template <class T>
__device__ __forceinline__ void set_threshold(const codebook& book, int index, u16& out) {
  float threshold;
  set_threshold<T>(book, index, threshold);
  out = is_nan(threshold) ? nan_bits_16 : u16(threshold_word<T>(threshold));
}

/// First node of a stage.
template <int Bits>
__device__ __forceinline__ constexpr int stage_begin(int stage) {
  return (1 + Bits % 2) * (0x5555 & ((1 << (2 * stage)) - 1));
}

// ---- One at a time ---------------------------------------------------------------------------

/// Minus the number of a node's thresholds that are at most x.
__device__ __forceinline__ int search_node(float x, const float (&threshold)[3]) {
  const int middle = minus_at_least(x, threshold[1]);
  return multiply_add<2>(middle, minus_at_least(x, choose(middle, threshold[0], threshold[2])));
}

/// Minus the number of thresholds that are at most x, from stage Stage on, in subtree -path.
template <int Bits, int Stage>
__device__ __forceinline__ int search_stages(float x, u32 nodes, int path) {
  if constexpr (Stage < Bits / 2) {
    float node[3];
    float unused;
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4 + %5];"
                 : "=f"(node[0]), "=f"(node[1]), "=f"(node[2]), "=f"(unused)
                 : "r"(multiply_add<-16>(path, int(nodes))), "n"(16 * stage_begin<Bits>(Stage)));
    return search_stages<Bits, Stage + 1>(x, nodes, multiply_add<4>(path, search_node(x, node)));
  } else {
    return path;
  }
}

/// A byte for each of a row's elements.
template <int Bits, class T>
__device__ __forceinline__ u32 search_row(const row_words<T>& row, u32 nodes,
                                          const threshold_node<false>& root) {
  float v[4];
  unpack_row<T>(row, v);
  int n[4];
  FURL_UNROLL
  for (int k = 0; k < 4; ++k) {
    if constexpr (Bits % 2 != 0) {
      n[k] = search_stages<Bits, 0>(v[k], nodes, minus_at_least(v[k], root.threshold[0]));
    } else {
      n[k] = search_stages<Bits, 1>(v[k], nodes, search_node(v[k], root.threshold));
    }
  }
  const int low = multiply_add<1 << 8>(n[1], n[0]);
  const int high = multiply_add<1 << 8>(n[3], n[2]);
  return u32(-multiply_add<1 << 16>(high, low));
}

// ---- In pairs --------------------------------------------------------------------------------

/// Adds the two bits of a stage to a pair of codes, the higher of which stands for Step * 2.
template <int Step, class T>
__device__ __forceinline__ u32 search_pair(u32 x, u32 first, u32 middle, u32 last, u32 codes) {
  constexpr u32 one_each = 0x00010001u * Step;
  const u32 above = at_least_pair<T>(x, middle);
  const u32 side = at_least_pair<T>(x, choose_bits(above, first, last));
  return and_or<2 * one_each>(above, and_or<one_each>(side, codes));
}

/// Where a node lies: of eight bytes each, in the order of codes without their last Rest bits,
/// which are 0.
template <int Rest>
__device__ __forceinline__ u32 node_address(u32 code, u32 nodes) {
  if constexpr (Rest == 2) {
    return u32(multiply_add<2>(int(code), int(nodes)));
  } else {
    return nodes + (code >> (Rest - 3));
  }
}

/// Codes of a pair from stage Stage on; `codes` has the bits of those before.
template <int Bits, int Stage, class T>
__device__ __forceinline__ u32 search_pair_stages(u32 x, u32 nodes, u32 codes) {
  if constexpr (Stage < Bits / 2) {
    constexpr int rest = Bits - Bits % 2 - 2 * Stage;  // bits of the codes that are still 0
    constexpr int begin = 8 * stage_begin<Bits>(Stage);
    const u32 at[2] = {node_address<rest>(codes & 0xffffu, nodes),
                       nodes + (codes >> (16 + rest - 3))};
    u32 node[2][2];
    FURL_UNROLL
    for (int k = 0; k < 2; ++k)
      asm volatile("ld.shared.v2.b32 {%0, %1}, [%2 + %3];"
                   : "=r"(node[k][0]), "=r"(node[k][1])
                   : "r"(at[k]), "n"(begin));
    codes = search_pair<1 << (rest - 2), T>(x, select_bytes(node[0][0], node[1][0], 0x5410),
                                            select_bytes(node[0][0], node[1][0], 0x7632),
                                            select_bytes(node[0][1], node[1][1], 0x5410), codes);
    return search_pair_stages<Bits, Stage + 1, T>(x, nodes, codes);
  } else {
    return codes;
  }
}

template <int Bits, class T>
__device__ __forceinline__ u32 search_row(const row_words<T>& row, u32 nodes,
                                          const threshold_node<true>& root) {
  u32 in_both[3];
  FURL_UNROLL
  for (int k = 0; k < 3; ++k) in_both[k] = 0x00010001u * root.threshold[k];
  u32 codes[2];
  FURL_UNROLL
  for (int k = 0; k < 2; ++k) {
    if constexpr (Bits % 2 != 0) {
      const u32 half = at_least_pair<T>(row[k], in_both[0]) & (0x00010001u << (Bits - 1));
      codes[k] = search_pair_stages<Bits, 0, T>(row[k], nodes, half);
    } else {
      const u32 quarter =
          search_pair<1 << (Bits - 2), T>(row[k], in_both[0], in_both[1], in_both[2], 0);
      codes[k] = search_pair_stages<Bits, 1, T>(row[k], nodes, quarter);
    }
  }
  return select_bytes(codes[0], codes[1], 0x6420);
}

}  // namespace detail

/// Lays out the thresholds of a codebook for search. Bits: book.bits().
/// Threads : one block, all threads.
/// Shared  : tree. Sync : none; the caller synchronises the block before the tree is used.
/// Pre     : the codebook is valid; best a __grid_constant__ parameter of the kernel.
template <int Bits, class T>
__device__ __forceinline__ void load_thresholds(const codebook& book, threshold_tree<T>& tree) {
  FURL_NO_UNROLL
  for (int i = int(threadIdx.x); i < (1 << Bits) - 1; i += int(blockDim.x)) {
    // Each two zeros that the number of a threshold ends in are one stage less down the tree.
    const int above = (__ffs(i + 1) - 1) / 2;
    const int stage = Bits / 2 - 1 - above;
    const int path = (i + 1) >> (2 * above);  // 4 * node of the stage + 1, 2 or 3
    const bool is_half = Bits % 2 != 0 && stage < 0;
    auto& node = is_half ? tree.half : tree.node[detail::stage_begin<Bits>(stage) + path / 4];
    const int place = is_half ? 0 : path % 4 - 1;
    detail::set_threshold<T>(book, i, node.threshold[place]);
    if (place == 0) node.unused = 0;
  }
}

/// Codes of a tile by thresholds. Bits: of the codebook, as load_thresholds had it.
/// Threads : one warp, all lanes; x is each lane's own.
/// Shared  : tree, filled. Sync : none.
/// Result  : codes, as store_codes takes them.
template <int Bits, class T>
__device__ __forceinline__ void encode_nearest(const tile_fragment<T>& x,
                                               const threshold_tree<T>& tree,
                                               u32 (&codes)[rows_per_tile]) {
  const u32 nodes = u32(__cvta_generic_to_shared(tree.node));
  typename threshold_tree<T>::node_type root{};
  if constexpr (Bits % 2 == 0) {
    root = tree.node[0];
  } else {
    root.threshold[0] = tree.half.threshold[0];  // the others are not written
  }
  FURL_UNROLL
  for (int row = 0; row < rows_per_tile; ++row)
    codes[row] = detail::search_row<Bits, T>(x.word[row], nodes, root);
}

}  // namespace furl

FURL_HIDDEN_END
