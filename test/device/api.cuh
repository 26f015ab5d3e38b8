// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Inputs of the tests of the device API, and what the host engine makes of them.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "device/buffer.cuh"
#include "device/device.hpp"
#include "device/library.cuh"
#include "support/backend.hpp"

namespace furl::test {

inline constexpr i64 num_elements = 5000;

inline std::vector<float> make_input(int seed = 1) {
  std::vector<float> x(num_elements);
  for (i64 i = 0; i < num_elements; ++i)
    x[std::size_t(i)] = float((i * 7919 + seed * 131) % 4001) / 400.0f - 5.0f;
  return x;
}

inline plan make_plan() {
  codec c;
  c.bits = 3;
  c.window = {8};
  return *plan::make(c, {num_elements});
}

/// A mixed plan, and the bits of its tiles.
struct mixed_setup {
  std::vector<u8> tile_bits = {3, 8, 1, 2, 5};
  plan p = *plan::make_mixed({}, {num_elements}, 19);
};

inline std::vector<u8> host_blob(const plan& p, const std::vector<float>& x, random_key key,
                                 const std::vector<u8>& tile_bits = {}) {
  alignas(16) static u8 memory[1 << 16];
  const status s = make_host_backend(1)->compress(p, x, {memory, p.size_bytes()}, key, tile_bits);
  EXPECT_TRUE(s) << to_string(s);
  return {memory, memory + p.size_bytes()};
}

inline std::vector<float> host_values(const plan& p, const std::vector<u8>& blob,
                                      const std::vector<u8>& tile_bits = {},
                                      const maybe_key& key = {}) {
  alignas(16) static u8 memory[1 << 16];
  std::copy(blob.begin(), blob.end(), memory);
  std::vector<float> y(std::size_t(p.num_elements()));
  EXPECT_TRUE(make_host_backend(1)->decompress(p, {memory, blob.size()}, y, tile_bits, key));
  return y;
}

/// A device array of floats, seen as the elements of a tensor.
struct floats : device_array<float> {
  using device_array::device_array;
  furl::values view() const { return {as<float>(), size() / 4}; }
  furl::const_values const_view() const { return {as<const float>(), size() / 4}; }
};

inline furl::bytes view(const device_buffer& buffer) {
  return {buffer.data(), buffer.size()};
}
inline furl::const_bytes const_view(const device_buffer& buffer) {
  return {buffer.data(), buffer.size()};
}

/// What a mixed plan takes beside its arrays.
class mixed_options {
 public:
  mixed_options(const mixed_setup& mixed, cudaStream_t stream)
      : tile_bits_(mixed.tile_bits), index_(tile_index_bytes(mixed.p)) {
    EXPECT_TRUE(index_tiles(mixed.p, const_view(tile_bits_), view(index_), stream));
  }
  options get() const {
    options o;
    o.tile_bits = const_view(tile_bits_);
    o.tile_index = const_view(index_);
    return o;
  }
  /// To break it.
  const device_buffer& index() const { return index_; }

 private:
  device_buffer tile_bits_;
  device_buffer index_;
};

/// What a stream is given in `record`, as a graph.
class captured {
 public:
  captured(cudaStream_t stream, const std::function<void()>& record) {
    require(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    record();
    require(cudaStreamEndCapture(stream, &graph_));
    require(cudaGraphInstantiate(&exec_, graph_, 0));
  }
  ~captured() {
    (void)cudaGraphExecDestroy(exec_);
    (void)cudaGraphDestroy(graph_);
  }
  captured(const captured&) = delete;
  captured& operator=(const captured&) = delete;
  std::size_t num_nodes() const {
    std::size_t count = 0;
    require(cudaGraphGetNodes(graph_, nullptr, &count));
    return count;
  }
  void replay(const scoped_stream& stream) const {
    require(cudaGraphLaunch(exec_, stream));
    stream.wait();
  }

 private:
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t exec_ = nullptr;
};

}  // namespace furl::test
