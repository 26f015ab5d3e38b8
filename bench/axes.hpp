// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The axes of both benchmarks, named once: what a row measures, on what, and what it is called.
// bench/README.md says what the names mean.

#include <string>
#include <vector>

#include "furl/plan.hpp"

namespace furl::bench {

enum class primitive {
  copy,        // within one memory: what the others are held against
  add_arrays,  // y += x
  tile_load,
  tile_store,
  random_bits,
  cub_min_max,
  block_min_max,
  group_min_max,
  pack,
  unpack,
  pool,
  compress,
  decompress,
  decompress_add,
  stash,
  relu,
  relu_backward,
  dropout,
  dropout_masked,
  dropout_backward,
  max_pool,
  max_pool_backward,
  codebook_pack,
  codebook_unpack,
  unpack_multiply,
  measure,
  squared_ranges,
  squared_coded_ranges,
  expand_sensitivity,
  allocate_bits,
  index_tiles,
  division_compress,
  division_decompress,
  actnn_compress,
  actnn_decompress
};

enum class path {
  flat,
  lfc_1d,
  lfc_2d,
  mixed,
  rotated,
  positives,
  in_range,
  normalised,
  lines,
  gelu,
  nf4,
  window_2x2,
  window_3x3,
  batch
};

inline const char* name(path way) {
  constexpr const char* names[] = {"flat",      "lfc_1d",     "lfc_2d",     "mixed", "rotated",
                                   "positives", "in_range",   "normalised", "lines", "gelu",
                                   "nf4",       "window_2x2", "window_3x3", "batch"};
  return names[int(way)];
}

/// What is timed: calls that find nothing in a cache, calls that find all there, or the host's part
/// of a call that it does not wait for.
enum class timing { cold, hot, per_call };

/// A shape, and how a path takes it.
struct tensor {
  std::string name;
  extents shape;
  extents window;     // that it is pooled with
  int log2_size = 0;  // of one from the axis of sizes; 0 for the others
  i64 extent = 0;     // elements that share their statistics; 0: not normalised
  i64 num_parts = 1;  // tensors of equal size that it consists of
};

/// A primitive, and the axes of its rows. An empty list: it has no such axis, and its rows do not
/// name it.
struct primitive_axes {
  primitive what;
  const char* name;
  std::vector<path> paths;
  std::vector<dtype> types;  // none: bytes
  std::vector<int> bits;
  std::vector<int> groups;
  std::vector<furl::rounding> roundings;
  timing timed = timing::cold;
};

/// One row: a primitive at one point of its axes. What it has no use for stays as it is.
struct row {
  const primitive_axes* axes = nullptr;
  path way = path::flat;
  dtype type = dtype::f32;
  int bits = 2;     // of a mixed row: the mean of its tiles
  int group = 256;  // elements
  furl::rounding rounding = rounding::stochastic;
  tensor on;

  primitive what() const { return axes->what; }
};

/// A primitive stands here several times if its paths have different axes.
inline const std::vector<primitive_axes>& all_axes() {
  using p = primitive;
  const std::vector<path> flat = {path::flat};
  const std::vector<path> mixed = {path::mixed};
  const std::vector<path> pooled = {path::lfc_1d, path::lfc_2d};
  const std::vector<path> windows = {path::window_2x2, path::window_3x3};
  const std::vector<dtype> f32 = {dtype::f32};
  const std::vector<dtype> f32_and_bf16 = {dtype::f32, dtype::bf16};
  const std::vector<dtype> types = {dtype::f32, dtype::bf16, dtype::f16};
  const std::vector<int> bits = {1, 2, 3, 4, 5, 6, 7, 8};
  const std::vector<int> few_bits = {1, 2, 3, 4};
  const std::vector<int> dividing_8 = {1, 2, 4, 8};
  const std::vector<int> groups = {32, 64, 128, 256, 512, 1024};
  static const std::vector<primitive_axes> table = [&] {
    std::vector<primitive_axes> out = {
        {p::copy, "copy", flat, types, {}, {}, {}},
        {p::copy, "copy", flat, types, {}, {}, {}, timing::hot},
        {p::add_arrays, "add_arrays", flat, f32, {}, {}, {}},
        {p::tile_load, "tile_load", flat, types, {}, {}, {}},
        {p::tile_store, "tile_store", flat, types, {}, {}, {}},
        {p::random_bits, "random_bits", flat, {}, {}, {}, {}},
        {p::cub_min_max, "cub_min_max", flat, f32_and_bf16, {}, {}, {}},
        {p::block_min_max, "block_min_max", flat, types, {}, {}, {}},
        {p::group_min_max, "group_min_max", flat, types, {}, groups, {}},
        {p::pack, "pack", flat, {}, bits, {}, {}},
        {p::unpack, "unpack", flat, {}, bits, {}, {}},
        {p::pool, "pool", pooled, types, {}, {}, {}},
        {p::stash, "stash", flat, types, bits, {256}, {}},
        {p::relu, "relu", flat, types, {}, {}, {}},
        {p::relu, "relu", {path::positives}, types, few_bits, {256}, {}},
        {p::relu_backward, "relu_backward", flat, types, {}, {}, {}},
        {p::dropout, "dropout", flat, types, {}, {}, {}},
        {p::dropout_masked, "dropout_masked", flat, types, {}, {}, {}},
        {p::dropout_backward, "dropout_backward", flat, types, {}, {}, {}},
        {p::max_pool, "max_pool", windows, types, {}, {}, {}},
        {p::max_pool_backward, "max_pool_backward", windows, types, {}, {}, {}},
        {p::measure, "measure", flat, types, bits, {256}, {}},
        {p::squared_ranges, "squared_ranges", flat, types, {}, groups, {}},
        {p::squared_coded_ranges, "squared_coded_ranges", flat, f32, bits, groups, {}},
        {p::expand_sensitivity, "expand_sensitivity", mixed, {}, {}, {}, {}},
        {p::allocate_bits, "allocate_bits", mixed, {}, {}, {}, {}},
        {p::index_tiles, "index_tiles", mixed, {}, {}, {}, {}},
        {p::division_compress, "division_compress", {path::lfc_2d}, f32, dividing_8, {}, {}},
        {p::division_decompress, "division_decompress", {path::lfc_2d}, f32, dividing_8, {}, {}},
        {p::actnn_compress, "actnn_compress", flat, f32, dividing_8, {}, {}},
        {p::actnn_decompress, "actnn_decompress", flat, f32, dividing_8, {}, {}},
    };
    const auto add_codec = [&](primitive what, const char* name, furl::rounding other) {
      const std::vector<furl::rounding> roundings = {rounding::stochastic, other};
      const std::vector<path> min_max = {path::flat, path::lfc_1d, path::lfc_2d};
      out.push_back({what, name, min_max, types, bits, groups, roundings});
      out.push_back({what, name, mixed, types, {2, 3, 4, 5, 6, 7}, groups, roundings});
      out.push_back({what, name, {path::rotated, path::positives}, types, few_bits, {256}, {}});
      out.push_back({what, name, {path::normalised, path::lines}, types, bits, groups, {}});
    };
    add_codec(p::compress, "compress", rounding::nearest);
    add_codec(p::decompress, "decompress", rounding::dithered);
    add_codec(p::decompress_add, "decompress_add", rounding::dithered);
    out.push_back({p::compress, "compress", {path::in_range}, types, bits, groups, {}});
    out.push_back({p::compress, "compress", flat, types, {2}, {256}, {}, timing::hot});
    out.push_back({p::compress, "compress", flat, f32, {2}, {256}, {}, timing::per_call});
    out.push_back({p::decompress, "decompress", flat, f32, {2}, {256}, {}, timing::per_call});
    out.push_back({p::compress, "compress", {path::batch}, types, {2}, {256}, {}});
    out.push_back({p::decompress, "decompress", {path::batch}, types, {2}, {256}, {}});
    const auto add_codebook = [&](primitive what, const char* name) {
      out.push_back({what, name, {path::gelu}, types, few_bits, {}, {}});
      out.push_back({what, name, {path::nf4}, types, {4}, {64}, {}});
    };
    add_codebook(p::codebook_pack, "codebook_pack");
    add_codebook(p::codebook_unpack, "codebook_unpack");
    add_codebook(p::unpack_multiply, "unpack_multiply");
    return out;
  }();
  return table;
}

/// 2^k elements, in the shape that a path takes.
inline tensor tensor_of_size(path way, int log2_size) {
  const i64 n = i64(1) << log2_size;
  tensor out{"log2_size:" + std::to_string(log2_size), {n}, {}, log2_size};
  if (way == path::lfc_1d || way == path::normalised) out.shape = {n / 1024, 1024};
  if (way == path::lfc_2d || way == path::window_2x2 || way == path::window_3x3)
    out.shape = {n / 4096, 64, 64};
  if (way == path::lines) out.shape = {n / 128, 128};
  if (way == path::lfc_1d) out.window = {1, 8};
  if (way == path::lfc_2d) out.window = {1, 8, 8};
  if (way == path::normalised) out.extent = 1024;
  return out;
}

/// What a path is measured on. Shapes of ResNet-50 are those of 64 images.
inline std::vector<tensor> tensors_of(path way, timing timed) {
  std::vector<tensor> out;
  if (way == path::batch)
    return {{"100_of_1024", {102400}, {}, 0, 0, 100}, {"100_of_65536", {6553600}, {}, 0, 0, 100}};
  if (timed == timing::per_call) return {tensor_of_size(way, 10)};
  if (timed == timing::hot) return {tensor_of_size(way, 20), tensor_of_size(way, 22)};
  for (int log2_size = 16; log2_size <= 28; log2_size += 2)
    out.push_back(tensor_of_size(way, log2_size));
  if (way == path::lfc_1d) {
    out.push_back({"transformer_hidden", {64, 1024, 1024}, {1, 8, 1}});
    out.push_back({"transformer_hidden_by_64", {64, 1024, 1024}, {1, 64, 1}});
    out.push_back({"transformer_mlp", {16, 1024, 4096}, {1, 8, 1}});
  }
  if (way == path::lfc_2d) {
    out.push_back({"resnet50_224x224", {64, 3, 224, 224}, {1, 1, 8, 8}});
    out.push_back({"resnet50_112x112", {64, 64, 112, 112}, {1, 1, 8, 8}});
    out.push_back({"resnet50_56x56", {64, 256, 56, 56}, {1, 1, 8, 8}});
    out.push_back({"resnet50_28x28", {64, 512, 28, 28}, {1, 1, 8, 8}});
    out.push_back({"resnet50_14x14", {64, 1024, 14, 14}, {1, 1, 8, 8}});
    out.push_back({"resnet50_7x7", {64, 2048, 7, 7}, {1, 1, 8, 8}});
    out.push_back({"resnet50_56x56_channels_last", {64, 56, 56, 256}, {1, 8, 8, 1}});
    out.push_back({"transformer_attention", {4, 16, 1024, 1024}, {1, 1, 8, 8}});
  }
  if (way == path::window_2x2 || way == path::window_3x3)
    out.push_back({"resnet50_112x112", {64, 64, 112, 112}, {}});
  if (way == path::normalised) {
    out.push_back({"extent_768", {65536, 768}, {}, 0, 768});
    out.push_back({"extent_1", {65536, 768}, {}, 0, 1});
  }
  if (way == path::lines) {
    out.push_back({"lines_1000", {65536, 1000}, {}});
    out.push_back({"lines_197", {262144, 197}, {}});
  }
  return out;
}

inline std::string name(const row& r) {
  const primitive_axes& axes = *r.axes;
  std::string out = axes.name;
  out += std::string("/") + name(r.way) + "/" + (axes.types.empty() ? "u8" : name(r.type));
  if (!axes.bits.empty()) out += "/bits:" + std::to_string(r.bits);
  if (!axes.groups.empty()) out += "/group:" + std::to_string(r.group);
  if (r.rounding == rounding::nearest) out += "/nearest";
  if (r.rounding == rounding::dithered) out += "/dithered";
  if (axes.timed == timing::hot) out += "/hot";
  if (axes.timed == timing::per_call) out += "/per_call";
  return out + "/" + r.on.name;
}

}  // namespace furl::bench
