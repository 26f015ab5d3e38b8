// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The axes of both benchmarks, named once: what a row measures, on what, and what it is called.
// bench/README.md says what the names mean.

#include <initializer_list>
#include <string>
#include <vector>

#include "furl/plan.hpp"

namespace furl::bench {

enum class primitive {
  copy,        // within one memory: what the others are held against
  add_arrays,  // y += x
  block_min_max,
  group_min_max,
  pack,
  unpack,
  mask_pack,
  mask_unpack,
  pool,
  compress,
  decompress,
  decompress_add,
  division_compress,
  division_decompress,
  actnn_compress,
  actnn_decompress
};

enum class path { flat, lfc_1d, lfc_2d, mixed, rotated };

inline const char* name(path way) {
  constexpr const char* names[] = {"flat", "lfc_1d", "lfc_2d", "mixed", "rotated"};
  return names[int(way)];
}

/// A shape, and the window that a path pools it with.
struct tensor {
  std::string name;
  extents shape;
  extents window;
  int log2_size = 0;  // of one from the axis of sizes; 0 for the activation of a network
};

/// One row: a primitive at one point of the axes. What a primitive has no use for stays as it is.
struct row {
  primitive what = primitive::copy;
  path way = path::flat;
  dtype type = dtype::f32;
  int bits = 2;     // of a mixed row: the mean of its tiles
  int group = 256;  // elements
  furl::rounding rounding = rounding::stochastic;
  tensor on;
};

/// The axes of a primitive. An empty list: it has no such axis, and its rows do not name it.
struct primitive_axes {
  primitive what;
  const char* name;
  std::vector<path> paths;
  std::vector<dtype> types;  // none: bytes
  std::vector<int> bits;
  std::vector<int> groups;
  std::vector<furl::rounding> roundings;
};

inline const primitive_axes& axes_of(primitive what) {
  using p = primitive;
  const std::vector<path> flat = {path::flat};
  const std::vector<path> pooled = {path::lfc_1d, path::lfc_2d};
  const std::vector<path> all = {path::flat, path::lfc_1d, path::lfc_2d, path::mixed,
                                 path::rotated};
  const std::vector<dtype> f32 = {dtype::f32};
  const std::vector<dtype> types = {dtype::f32, dtype::bf16, dtype::f16};
  const std::vector<int> bits = {1, 2, 3, 4, 5, 6, 7, 8};
  const std::vector<int> dividing_8 = {1, 2, 4, 8};
  const std::vector<int> groups = {32, 64, 128, 256, 512, 1024};
  const std::vector<furl::rounding> roundings = {rounding::stochastic, rounding::nearest};
  const std::vector<furl::rounding> decodings = {rounding::stochastic, rounding::dithered};
  static const std::vector<primitive_axes> table = {
      {p::copy, "copy", flat, types, {}, {}, {}},
      {p::add_arrays, "add_arrays", flat, f32, {}, {}, {}},
      {p::block_min_max, "block_min_max", flat, types, {}, {}, {}},
      {p::group_min_max, "group_min_max", flat, types, {}, groups, {}},
      {p::pack, "pack", flat, {}, bits, {}, {}},
      {p::unpack, "unpack", flat, {}, bits, {}, {}},
      {p::mask_pack, "mask_pack", flat, {}, {}, {}, {}},
      {p::mask_unpack, "mask_unpack", flat, {}, {}, {}, {}},
      {p::pool, "pool", pooled, types, {}, {}, {}},
      {p::compress, "compress", all, types, bits, groups, roundings},
      {p::decompress, "decompress", all, types, bits, groups, decodings},
      {p::decompress_add, "decompress_add", all, types, bits, groups, decodings},
      {p::division_compress, "division_compress", {path::lfc_2d}, f32, dividing_8, {}, {}},
      {p::division_decompress, "division_decompress", {path::lfc_2d}, f32, dividing_8, {}, {}},
      {p::actnn_compress, "actnn_compress", flat, f32, dividing_8, {}, {}},
      {p::actnn_decompress, "actnn_decompress", flat, f32, dividing_8, {}, {}},
  };
  return table[std::size_t(what)];
}

/// What a path is measured on. Shapes of ResNet-50 are those of 64 images.
inline std::vector<tensor> tensors_of(path way) {
  std::vector<tensor> out;
  for (int log2_size = 16; log2_size <= 28; log2_size += 2) {
    const i64 n = i64(1) << log2_size;
    const std::string name = "log2_size:" + std::to_string(log2_size);
    if (way == path::lfc_1d) {
      out.push_back({name, {n / 1024, 1024}, {1, 8}, log2_size});
    } else if (way == path::lfc_2d) {
      out.push_back({name, {n / 4096, 64, 64}, {1, 8, 8}, log2_size});
    } else {
      out.push_back({name, {n}, {}, log2_size});
    }
  }
  if (way == path::lfc_1d) {
    out.push_back({"transformer_hidden", {64, 1024, 1024}, {1, 8, 1}, 0});
    out.push_back({"transformer_mlp", {16, 1024, 4096}, {1, 8, 1}, 0});
  }
  if (way == path::lfc_2d) {
    out.push_back({"resnet50_224x224", {64, 3, 224, 224}, {1, 1, 8, 8}, 0});
    out.push_back({"resnet50_112x112", {64, 64, 112, 112}, {1, 1, 8, 8}, 0});
    out.push_back({"resnet50_56x56", {64, 256, 56, 56}, {1, 1, 8, 8}, 0});
    out.push_back({"resnet50_28x28", {64, 512, 28, 28}, {1, 1, 8, 8}, 0});
    out.push_back({"resnet50_14x14", {64, 1024, 14, 14}, {1, 1, 8, 8}, 0});
    out.push_back({"resnet50_7x7", {64, 2048, 7, 7}, {1, 1, 8, 8}, 0});
    out.push_back({"resnet50_56x56_channels_last", {64, 56, 56, 256}, {1, 8, 8, 1}, 0});
    out.push_back({"transformer_attention", {4, 16, 1024, 1024}, {1, 1, 8, 8}, 0});
  }
  return out;
}

inline std::string name(const row& r) {
  const primitive_axes& axes = axes_of(r.what);
  std::string out = axes.name;
  out += std::string("/") + name(r.way) + "/" + (axes.types.empty() ? "u8" : name(r.type));
  if (!axes.bits.empty()) out += "/bits:" + std::to_string(r.bits);
  if (!axes.groups.empty()) out += "/group:" + std::to_string(r.group);
  if (r.rounding == rounding::nearest) out += "/nearest";
  if (r.rounding == rounding::dithered) out += "/dithered";
  return out + "/" + r.on.name;
}

// ---- Which rows there are --------------------------------------------------------------------

namespace detail {

inline bool contains(std::initializer_list<int> list, int value) {
  for (const int each : list)
    if (each == value) return true;
  return false;
}

inline bool is_base_tensor(const row& r) {
  if (r.way == path::lfc_1d) return r.on.name == "transformer_hidden";
  if (r.way == path::lfc_2d) return r.on.name == "resnet50_56x56";
  return r.on.log2_size == 26;
}

/// Whether there is a row for this point of the axes.
inline bool exists(const row& r) {
  const bool division =
      r.what == primitive::division_compress || r.what == primitive::division_decompress;
  if (division && r.on.window[r.on.window.rank - 1] == 1)
    return false;  // planes must be contiguous
  if (r.way == path::mixed && (r.bits == 1 || r.bits == max_bits)) return false;
  if (r.way == path::rotated)
    return r.bits <= max_rotated_bits && r.group == 256 && r.rounding == rounding::stochastic;
  return r.rounding == rounding::stochastic || (r.bits == 2 && r.group == 256);
}

}  // namespace detail

/// Whether a row is measured unless others are asked for: one axis at a time departs from f32,
/// 2 bits, groups of 256, stochastic, one large tensor.
/// all_sizes: whether the size is one of those axes.
inline bool is_default(const row& r, bool all_sizes) {
  if (!all_sizes && !detail::contains({0, 26}, r.on.log2_size)) return false;
  if (!detail::contains({0, 16, 20, 24, 26, 28}, r.on.log2_size)) return false;
  if (!detail::contains({1, 2, 3, 4, 8}, r.bits)) return false;
  if (!detail::contains({32, 256, 1024}, r.group)) return false;
  const int departures = int(r.type != dtype::f32) + int(r.bits != 2) + int(r.group != 256) +
                         int(r.rounding != rounding::stochastic) + int(!detail::is_base_tensor(r));
  return departures <= 1;
}

/// All rows of a primitive.
inline std::vector<row> rows_of(primitive what) {
  const primitive_axes& axes = axes_of(what);
  const auto or_base = [](const auto& list, auto base) {
    return list.empty() ? std::vector<decltype(base)>{base} : list;
  };
  const row base{};
  std::vector<row> out;
  for (const path way : axes.paths)
    for (const tensor& on : tensors_of(way))
      for (const dtype type : or_base(axes.types, base.type))
        for (const int bits : or_base(axes.bits, base.bits))
          for (const int group : or_base(axes.groups, base.group))
            for (const furl::rounding rounding : or_base(axes.roundings, base.rounding)) {
              const row r{what, way, type, bits, group, rounding, on};
              if (detail::exists(r)) out.push_back(r);
            }
  return out;
}

}  // namespace furl::bench
