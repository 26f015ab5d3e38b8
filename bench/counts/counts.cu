// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Runs one operation once, for a tool that counts its instructions, and prints the number of
// elements:
//   furl_counts compress|decompress|decompress_add[_mixed|_rotated] f32|f16|bf16 BITS SHAPE
//   furl_counts compress|relu|decompress|decompress_add_positives f32|f16|bf16 BITS
//   furl_counts compress|decompress|decompress_add_lines f32|f16|bf16 BITS even_lines|odd_lines
//   furl_counts decompress|decompress_add_dithered[_mixed] f32|f16|bf16 BITS SHAPE
//   furl_counts compress_in_ranges|measure|squared_ranges|squared_coded_ranges f32|f16|bf16 BITS
//     SHAPE
//   furl_counts compress_batch|decompress_batch[_rotated|_dithered] f32|f16|bf16 BITS tensorsN
//   furl_counts pack|unpack|allocate_bits|expand_sensitivity|index_tiles u8 BITS
//   furl_counts pack|pack_stochastic|unpack|unpack_multiply[_scaled] f32|f16|bf16 BITS, by a
//     codebook, with groups of 64 and scales in bf16
//   furl_counts relu|dropout|dropout_masked f32|f16|bf16 1
//   furl_counts max_pool|max_pool_backward f32|f16|bf16 BITS: 2 for 2 x 2 windows, 4 for 3 x 3
// SHAPE is flat, without an LFC; extentN, flat and normalised by statistics of N elements each, for
// compress and decompress of codes that are not mixed; or with an LFC: features, sequence,
// sequence64, channels_last, the side of square planes under windows of 8 x 8, or odd for windows
// of 5 x 5. tensorsN are tensors of N elements each, in one call.

#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "furl/furl.cuh"

namespace {

using namespace furl;

constexpr i64 num_elements = i64(1) << 22;

#if defined(FURL_PROFILE)
/// How often warps ran each block of the kernels, to which machine.py has added counters.
__device__ unsigned long long furl_profile[FURL_PROFILE];
#endif

void require(cudaError_t code) {
  if (code == cudaSuccess) return;
  std::fprintf(stderr, "CUDA: %s\n", cudaGetErrorString(code));
  std::exit(1);
}

template <class T>
T require(const result<T>& made) {
  if (made) return *made;
  std::fprintf(stderr, "%s\n", to_string(made.status()).c_str());
  std::exit(1);
}

void require(const status& s) {
  if (s) return;
  std::fprintf(stderr, "%s\n", to_string(s).c_str());
  std::exit(1);
}

/// No container of Thrust, whose kernels would be counted.
u8* device_memory(u64 size) {
  void* pointer = nullptr;
  require(cudaMalloc(&pointer, size));
  require(cudaMemset(pointer, 0, size));
  return static_cast<u8*>(pointer);
}

/// Numbers in [1, 2), which no type makes special.
std::vector<u8> make_elements(dtype type, i64 count) {
  std::vector<u8> out(static_cast<std::size_t>(count * size_bytes(type)));
  u32 random = 1;
  for (i64 i = 0; i < count; ++i) {
    random = random * 1664525u + 1013904223u;
    const u32 bits = 0x3f800000u | random >> 9;
    const u16 half = type == dtype::f16 ? u16(0x3c00u | bits >> 13 & 0x3ffu) : u16(bits >> 16);
    if (type == dtype::f32) {
      std::memcpy(&out[std::size_t(i) * 4], &bits, 4);
    } else {
      std::memcpy(&out[std::size_t(i) * 2], &half, 2);
    }
  }
  return out;
}

void run_codes(const std::string& operation, int bits) {
  const plan p = require(plan::make_codes(bits, {num_elements}));
  u8* const codes = device_memory(u64(num_elements));
  u8* const blob = device_memory(p.size_bytes());
  if (operation == "pack") {
    require(pack(p, {codes, u64(num_elements)}, {blob, p.size_bytes()}, nullptr));
  } else {
    require(unpack(p, {blob, p.size_bytes()}, {codes, u64(num_elements)}, nullptr));
  }
}

void run_allocation(int bits) {
  constexpr i64 tiles = num_elements / tile_elements;
  std::vector<float> sensitivity(tiles);
  std::vector<double> squared(tiles);
  for (i64 t = 0; t < tiles; ++t) {
    sensitivity[std::size_t(t)] = float(t * 7919 % 1013);
    squared[std::size_t(t)] = double(t * 104729 % 4001);
  }
  u8* const s = device_memory(tiles * sizeof(float));
  u8* const r = device_memory(tiles * sizeof(double));
  u8* const tile_bits = device_memory(tiles);
  const u64 size = allocation_workspace_bytes(tiles);
  require(cudaMemcpy(s, sensitivity.data(), tiles * sizeof(float), cudaMemcpyHostToDevice));
  require(cudaMemcpy(r, squared.data(), tiles * sizeof(double), cudaMemcpyHostToDevice));
  require(allocate_bits(u64(tiles * bits), {reinterpret_cast<const float*>(s), tiles},
                        {reinterpret_cast<const double*>(r), tiles}, {tile_bits, u64(tiles)},
                        {device_memory(size), size}, nullptr));
}

/// Bits of tiles around `bits`, of which they are the mean, and their index, for a mixed plan.
options make_mixed_options(const plan& p, int bits) {
  const auto tiles = static_cast<std::size_t>(p.num_tiles());
  std::vector<u8> tile_bits(tiles);
  for (std::size_t t = 0; t < tiles; ++t) tile_bits[t] = u8(bits - 1 + int(t * 7 % 4 + 1) / 2);
  options o;
  u8* const copy = device_memory(tiles);
  require(cudaMemcpy(copy, tile_bits.data(), tiles, cudaMemcpyHostToDevice));
  o.tile_bits = {copy, tiles};
  const bytes index{device_memory(tile_index_bytes(p)), tile_index_bytes(p)};
  require(index_tiles(p, o.tile_bits, index, nullptr));
  o.tile_index = index;
  return o;
}

/// Statistics of as many elements as the name of a shape says; otherwise none.
options make_statistics(const std::string& shape_name) {
  options o;
  if (shape_name.rfind("extent", 0) != 0) return o;
  const std::vector<float> ones(1000, 1.0f);
  u8* const copy = device_memory(ones.size() * sizeof(float));
  require(cudaMemcpy(copy, ones.data(), ones.size() * sizeof(float), cudaMemcpyHostToDevice));
  const auto* const at = reinterpret_cast<const float*>(copy);
  o.statistics = {at, at, i64(ones.size()), std::atoi(shape_name.c_str() + 6)};
  return o;
}

/// Windows every two elements, 2 x 2 or 3 x 3, on images of 64 x 64.
void run_max_pool(const std::string& operation, dtype type, int bits) {
  const pool_window window = bits == 2 ? pool_window{} : pool_window{{3, 3}, {2, 2}, {1, 1}};
  const max_pool_plan p = require(max_pool_plan::make({num_elements / 4096, 64, 64}, window));
  const std::vector<u8> elements = make_elements(type, num_elements);
  u8* const x = device_memory(elements.size());
  u8* const y = device_memory(elements.size());
  u8* const blob = device_memory(p.codes().size_bytes());
  require(cudaMemcpy(x, elements.data(), elements.size(), cudaMemcpyHostToDevice));
  require(max_pool(p, {x, type, num_elements}, {y, type, p.num_outputs()},
                   {blob, p.codes().size_bytes()}, nullptr));
  if (operation == "max_pool") return;
  require(max_pool_backward(p, {blob, p.codes().size_bytes()}, {y, type, p.num_outputs()},
                            {x, type, num_elements}, nullptr));
}

void run_in_ranges(const plan& p, const_values x, bytes blob) {
  const bool flat = p.shape().rank == 1;
  const i64 pairs = flat ? 1 : p.shape()[0];
  const std::vector<range> ranges(std::size_t(pairs), {1.25f, 1.75f});
  u8* const copy = device_memory(u64(pairs) * sizeof(range));
  require(cudaMemcpy(copy, ranges.data(), u64(pairs) * sizeof(range), cudaMemcpyHostToDevice));
  const auto* const at = reinterpret_cast<const float*>(copy);
  options o;
  o.ranges = flat ? given_ranges::of_tensor(at) : given_ranges::of_channels(at, pairs, 0);
  require(compress(p, x, blob, {1, 2}, nullptr, o));
}

void run_measure(const plan& p, const_values x, const_bytes blob) {
  auto* const groups =
      reinterpret_cast<quality*>(device_memory(u64(p.num_groups() + 1) * sizeof(quality)));
  const u64 size = measure_workspace_bytes(p);
  require(measure(p, x, blob, {groups, p.num_groups()}, groups + p.num_groups(),
                  {device_memory(size), size}, nullptr));
}

void run_expansion(const plan& p) {
  constexpr i64 samples = 64;
  auto* const of_samples = reinterpret_cast<float*>(device_memory(samples * sizeof(float)));
  auto* const of_tiles =
      reinterpret_cast<float*>(device_memory(u64(p.num_tiles()) * sizeof(float)));
  require(expand_sensitivity(p, {of_samples, samples}, {of_tiles, p.num_tiles()}, nullptr));
}

struct pooled_shape {
  extents shape;
  extents window;
};

pooled_shape make_shape(const std::string& name) {
  if (name == "flat" || name.rfind("extent", 0) == 0) return {{num_elements}, {}};
  if (name.rfind("tensors", 0) == 0) return {{std::atoi(name.c_str() + 7)}, {}};
  if (name == "features") return {{1024, 1024}, {1, 8}};
  if (name == "sequence") return {{8, 197, 768}, {1, 8, 1}};
  if (name == "sequence64") return {{8, 197, 768}, {1, 64, 1}};
  if (name == "channels_last") return {{6, 56, 56, 64}, {1, 8, 8, 1}};
  if (name == "odd") return {{256, 64, 64}, {1, 5, 5}};
  if (name == "even_lines") return {{1000, 1000}, {}};
  if (name == "odd_lines") return {{5000, 197}, {}};
  const i64 side = std::atoi(name.c_str());
  return {{((1 << 20) + side * side - 1) / (side * side), side, side}, {1, 8, 8}};
}

/// 2^bits levels from 1 to 2; for one bit those of a mask.
codebook make_codebook(int bits, rounding mode) {
  if (bits == 1 && mode == rounding::nearest) return positive_codebook();
  std::vector<float> levels;
  for (int i = 0; i < 1 << bits; ++i) levels.push_back(1.0f + float(i) / float((1 << bits) - 1));
  return mode == rounding::nearest ? nearest_codebook(levels.data(), 1 << bits)
                                   : stochastic_codebook(levels.data(), 1 << bits);
}

bool has_codebook(const std::string& operation) {
  return operation.rfind("pack", 0) == 0 || operation.rfind("unpack", 0) == 0 ||
         operation == "relu" || operation.rfind("dropout", 0) == 0;
}

/// Whether a word ends with a suffix, which is cut off then.
bool cut_suffix(std::string& word, const std::string& suffix) {
  const auto at = word.rfind(suffix);
  if (at == std::string::npos || at + suffix.size() != word.size()) return false;
  word.resize(at);
  return true;
}

void run_coded(std::string operation, dtype type, int bits) {
  const bool scaled = cut_suffix(operation, "_scaled");
  const bool stochastic = operation == "pack_stochastic";
  const codebook book = make_codebook(bits, stochastic ? rounding::stochastic : rounding::nearest);
  const plan p = require(scaled ? plan::make_scaled(bits, 64, dtype::bf16, {num_elements})
                                : plan::make_codes(bits, {num_elements}));
  const std::vector<u8> elements = make_elements(type, num_elements);
  u8* const x = device_memory(elements.size());
  u8* const memory = device_memory(p.size_bytes());
  require(cudaMemcpy(x, elements.data(), elements.size(), cudaMemcpyHostToDevice));
  const const_values in{x, type, num_elements};
  const values out{x, type, num_elements};
  const bytes blob{memory, p.size_bytes()};
  const const_bytes packed{memory, p.size_bytes()};
  if (operation == "relu") {
    require(relu(p, in, out, blob, nullptr));
  } else if (operation == "dropout") {
    require(dropout(in, 0.1, out, {1, 2}, nullptr));
  } else if (operation == "dropout_masked") {
    require(dropout(p, in, 0.1, out, blob, {1, 2}, nullptr));
  } else if (operation == "unpack") {
    require(unpack(p, packed, book, out, nullptr));
  } else if (operation == "unpack_multiply") {
    require(unpack_multiply(p, packed, book, in, out, nullptr));
  } else {
    require(pack(p, in, book, blob, {1, 2}, nullptr));
  }
}

/// As many tensors of a plan as have num_elements, in one call.
void run_batch(const std::string& operation, dtype type, const plan& p) {
  const std::vector<u8> elements = make_elements(type, num_elements);
  u8* const x = device_memory(elements.size());
  require(cudaMemcpy(x, elements.data(), elements.size(), cudaMemcpyHostToDevice));
  const i64 count = num_elements / p.num_elements();
  u8* const blobs = device_memory(u64(count) * p.size_bytes());
  std::vector<compress_entry> in;
  std::vector<decompress_entry> out;
  for (i64 i = 0; i < count; ++i) {
    u8* const at = x + i * p.num_elements() * size_bytes(type);
    u8* const blob = blobs + u64(i) * p.size_bytes();
    in.push_back({&p, {at, type, p.num_elements()}, {blob, p.size_bytes()}, u64(i)});
    out.push_back({&p, {blob, p.size_bytes()}, {at, type, p.num_elements()}, u64(i)});
  }
  if (operation == "compress_batch") {
    require(compress_batch(in, {1, 2}, nullptr));
  } else {
    require(decompress_batch(out, {1, 2}, nullptr));
  }
  std::printf("%lld\n", num_elements);
}

void run(std::string operation, dtype type, int bits, const std::string& shape_name) {
  const pooled_shape pooled = make_shape(shape_name);
  codec c;
  c.bits = bits;
  c.window = pooled.window;
  const bool mixed = cut_suffix(operation, "_mixed") || operation == "index_tiles";
  if (cut_suffix(operation, "_rotated")) c.coding = coding::rotated;
  if (cut_suffix(operation, "_positives")) c.coding = coding::positives;
  c.by_lines = cut_suffix(operation, "_lines");
  if (cut_suffix(operation, "_dithered")) c.rounding = rounding::dithered;
  plan p = require(plan::make(c, pooled.shape));
  if (shape_name.rfind("tensors", 0) == 0) return run_batch(operation, type, p);
  if (mixed) p = require(plan::make_mixed(c, pooled.shape, u64(bits * p.num_tiles())));
  const i64 n = p.num_elements();
  const options o = mixed ? make_mixed_options(p, bits) : make_statistics(shape_name);
  const std::vector<u8> elements = make_elements(type, n);
  u8* const x = device_memory(elements.size());
  u8* const blob = device_memory(p.size_bytes());
  require(cudaMemcpy(x, elements.data(), elements.size(), cudaMemcpyHostToDevice));
  if (operation == "compress") {
    require(compress(p, {x, type, n}, {blob, p.size_bytes()}, {1, 2}, nullptr, o));
  } else if (operation == "relu") {
    const values y{device_memory(elements.size()), type, n};
    require(relu(p, {x, type, n}, y, {blob, p.size_bytes()}, {1, 2}, nullptr));
  } else if (operation == "decompress") {
    require(decompress(p, {blob, p.size_bytes()}, {x, type, n}, {1, 2}, nullptr, o));
  } else if (operation == "decompress_add") {
    require(decompress_add(p, {blob, p.size_bytes()}, {x, type, n}, {1, 2}, nullptr, o));
  } else if (operation == "compress_in_ranges") {
    run_in_ranges(p, {x, type, n}, {blob, p.size_bytes()});
  } else if (operation == "measure") {
    run_measure(p, {x, type, n}, {blob, p.size_bytes()});
  } else if (operation == "expand_sensitivity") {
    run_expansion(p);
  } else if (operation != "index_tiles") {  // what mixed options have called already
    const i64 tiles = p.num_tiles();
    auto* const squared = reinterpret_cast<double*>(device_memory(u64(tiles) * sizeof(double)));
    if (operation == "squared_ranges") {
      require(squared_ranges(p, const_values{x, type, n}, {squared, tiles}, nullptr));
    } else {
      require(squared_ranges(p, const_bytes{blob, p.size_bytes()}, {squared, tiles}, nullptr));
    }
  }
  std::printf("%lld\n", n);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const std::string operation = argv[1];
  const std::string type = argv[2];
  const int bits = std::atoi(argv[3]);
  const dtype elements = type == "f32" ? dtype::f32 : type == "f16" ? dtype::f16 : dtype::bf16;
  if (operation == "allocate_bits") {
    run_allocation(bits);
    std::printf("%lld\n", num_elements);
  } else if (type == "u8" && operation.find("pack") != std::string::npos) {
    run_codes(operation, bits);
    std::printf("%lld\n", num_elements);
  } else if (operation.rfind("max_pool", 0) == 0) {
    run_max_pool(operation, elements, bits);
    std::printf("%lld\n", num_elements);
  } else if (has_codebook(operation)) {
    run_coded(operation, elements, bits);
    std::printf("%lld\n", num_elements);
  } else {
    run(operation, elements, bits, argc > 4 ? argv[4] : "flat");
  }
  require(cudaDeviceSynchronize());
#if defined(FURL_PROFILE)
  std::vector<unsigned long long> profile(FURL_PROFILE);
  require(cudaMemcpyFromSymbol(profile.data(), furl_profile, sizeof(furl_profile)));
  for (std::size_t i = 0; i < profile.size(); ++i)
    if (profile[i] > 0) std::printf("%zu %llu\n", i, profile[i]);
#endif
  return 0;
}
