// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Inputs of the tests of the device API, and what the host engine makes of them.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <vector>

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

struct mixed_setup {
  std::vector<u8> widths;
  plan p;
};

inline mixed_setup make_mixed_plan() {
  std::vector<u8> widths = {3, 8, 1, 2, 5};
  return {widths, *plan::make_mixed({}, {num_elements}, 19)};
}

inline std::vector<u8> host_blob(const plan& p, const std::vector<float>& x, random_key key,
                                 const std::vector<u8>& widths = {}) {
  alignas(16) static u8 memory[1 << 16];
  const status s = make_host_backend(1)->compress(p, x, {memory, p.size_bytes()}, key, widths);
  EXPECT_TRUE(s) << to_string(s);
  return {memory, memory + p.size_bytes()};
}

inline std::vector<float> host_values(const plan& p, const std::vector<u8>& blob) {
  alignas(16) static u8 memory[1 << 16];
  std::copy(blob.begin(), blob.end(), memory);
  std::vector<float> y(std::size_t(p.num_elements()));
  EXPECT_TRUE(make_host_backend(1)->decompress(p, {memory, blob.size()}, y));
  return y;
}

/// A device array of floats.
struct floats : device_buffer {
  explicit floats(const std::vector<float>& content) : device_buffer(content.size() * 4) {
    write(content.data());
  }
  values view() const { return {as<float>(), i64(size() / 4)}; }
  const_values const_view() const { return {as<const float>(), i64(size() / 4)}; }
  std::vector<float> read_back() const {
    std::vector<float> out(size() / 4);
    read(out.data());
    return out;
  }
};

/// A device array of T.
template <class T>
struct device_array : device_buffer {
  explicit device_array(std::size_t count) : device_buffer(count * sizeof(T)) {}
  explicit device_array(const std::vector<T>& content) : device_array(content.size()) {
    write(content.data());
  }
  furl::span<T> view() const { return {as<T>(), i64(size() / sizeof(T))}; }
  furl::span<const T> const_view() const { return {as<const T>(), i64(size() / sizeof(T))}; }
  std::vector<T> read_back() const {
    std::vector<T> out(size() / sizeof(T));
    read(out.data());
    return out;
  }
};

inline bytes view(const device_buffer& buffer) {
  return {buffer.data(), buffer.size()};
}
inline const_bytes const_view(const device_buffer& buffer) {
  return {buffer.data(), buffer.size()};
}

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
  void replay(const scoped_stream& stream) const {
    require(cudaGraphLaunch(exec_, stream));
    stream.wait();
  }

 private:
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t exec_ = nullptr;
};

}  // namespace furl::test
