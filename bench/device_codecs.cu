// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Rows of the copy and of the calls that compress and decompress.

#include <vector>

#include "device_rows.hpp"
#include "device_timing.cuh"
#include "furl/furl.cuh"

namespace furl::bench {
namespace {

void run_copy(benchmark::State& state, const row& r) {
  const rotating_arrays arrays({tensor_bytes(r), tensor_bytes(r)});
  arrays.fill(0, deviates_as(r.type));
  arrays.replicate();
  measure(state, r, bytes_moved(r, {}),
          [&](i64 index, cudaStream_t stream) { launch_copy(arrays, index, stream); });
}

/// A tensor, its blob, and what a mixed plan takes.
class codec_arrays {
 public:
  explicit codec_arrays(const row& r)
      : plan_(plan_of(r)),
        type_(r.type),
        mixed_(r.way == path::mixed),
        arrays_({tensor_bytes(r), plan_.size_bytes(), mixed_ ? u64(plan_.num_tiles()) : 0,
                 tile_index_bytes(plan_)}) {
    arrays_.fill(elements, deviates_as(type_));
    if (mixed_) {
      arrays_.fill(tile_bits, tile_bits_of(r));
      require(index_tiles(plan_, {arrays_.at(tile_bits), arrays_.size(tile_bits)},
                          {arrays_.at(tile_index), arrays_.size(tile_index)}, nullptr));
    }
    require(compress(0, key_of_blobs, nullptr));
    arrays_.replicate();
  }

  const plan& p() const { return plan_; }

  status compress(i64 index, random_key key, cudaStream_t stream) const {
    return furl::compress(plan_, {arrays_.at(elements, index), type_, plan_.num_elements()},
                          {arrays_.at(blob, index), plan_.size_bytes()}, key, stream,
                          options_of(index));
  }
  status decompress(i64 index, cudaStream_t stream) const {
    return furl::decompress(plan_, blob_of(index), y(index), key_of_blobs, stream,
                            options_of(index));
  }
  status decompress_add(i64 index, cudaStream_t stream) const {
    return furl::decompress_add(plan_, blob_of(index), y(index), key_of_blobs, stream,
                                options_of(index));
  }

 private:
  enum which : std::size_t { elements, blob, tile_bits, tile_index };

  const_bytes blob_of(i64 index) const { return {arrays_.at(blob, index), plan_.size_bytes()}; }
  values y(i64 index) const { return {arrays_.at(elements, index), type_, plan_.num_elements()}; }
  options options_of(i64 index) const {
    options o;
    if (!mixed_) return o;
    o.tile_bits = {arrays_.at(tile_bits, index), arrays_.size(tile_bits)};
    o.tile_index = {arrays_.at(tile_index, index), arrays_.size(tile_index)};
    return o;
  }

  plan plan_;
  dtype type_;
  bool mixed_;
  rotating_arrays arrays_;
};

void run_codec(benchmark::State& state, const row& r) {
  const codec_arrays arrays(r);
  const u64 bytes = bytes_moved(r, arrays.p());
  switch (r.what) {
    case primitive::compress:
      return measure(state, r, bytes, [&](i64 index, cudaStream_t stream) {
        require(arrays.compress(index, {1, u64(index)}, stream));
      });
    case primitive::decompress:
      return measure(state, r, bytes, [&](i64 index, cudaStream_t stream) {
        require(arrays.decompress(index, stream));
      });
    default:
      return measure(state, r, bytes, [&](i64 index, cudaStream_t stream) {
        require(arrays.decompress_add(index, stream));
      });
  }
}

}  // namespace

void register_copy_rows(bool all) {
  register_device_rows(primitive::copy, all, run_copy);
}

void register_codec_rows(bool all) {
  for (const primitive what :
       {primitive::compress, primitive::decompress, primitive::decompress_add})
    register_device_rows(what, all, run_codec);
}

}  // namespace furl::bench
