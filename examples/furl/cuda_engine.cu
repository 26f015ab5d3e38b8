// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

#include <cuda_runtime_api.h>

#include "engine.hpp"
#include "failure.hpp"
#include "furl/compress.cuh"
#include "furl/extra/allocate_bits.cuh"
#include "timing.hpp"

namespace furl::cli {
namespace {

void require(cudaError_t code) {
  if (code != cudaSuccess) throw bad_device(cudaGetErrorString(code));
}

/// Does not wait for the default stream.
class scoped_stream {
 public:
  scoped_stream() { require(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~scoped_stream() { (void)cudaStreamDestroy(stream_); }
  scoped_stream(const scoped_stream&) = delete;
  scoped_stream& operator=(const scoped_stream&) = delete;
  operator cudaStream_t() const { return stream_; }
  void wait() const { require(cudaStreamSynchronize(stream_)); }

 private:
  cudaStream_t stream_ = nullptr;
};

class scoped_event {
 public:
  scoped_event() { require(cudaEventCreate(&event_)); }
  ~scoped_event() { (void)cudaEventDestroy(event_); }
  scoped_event(const scoped_event&) = delete;
  scoped_event& operator=(const scoped_event&) = delete;
  operator cudaEvent_t() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

/// Device memory of exactly the size that is needed; none, and null, for 0 bytes.
class device_buffer {
 public:
  explicit device_buffer(u64 size) : size_(size) {
    if (size == 0) return;
    if (cudaMalloc(&data_, static_cast<std::size_t>(size)) != cudaSuccess)
      throw bad_device("not enough memory for " + std::to_string(size) + " bytes");
  }
  device_buffer(const void* from, u64 size, cudaStream_t stream) : device_buffer(size) {
    copy(data_, from, cudaMemcpyHostToDevice, stream);
  }
  ~device_buffer() { (void)cudaFree(data_); }
  device_buffer(const device_buffer&) = delete;
  device_buffer& operator=(const device_buffer&) = delete;

  void* data() const { return data_; }
  operator bytes() const { return {data_, size_}; }
  operator const_bytes() const { return {data_, size_}; }
  void copy_to(void* to, cudaStream_t stream) const {
    copy(to, data_, cudaMemcpyDeviceToHost, stream);
  }

 private:
  void copy(void* to, const void* from, cudaMemcpyKind kind, cudaStream_t stream) const {
    if (size_ != 0)
      require(cudaMemcpyAsync(to, from, static_cast<std::size_t>(size_), kind, stream));
  }

  void* data_ = nullptr;
  const u64 size_;
};

/// What a mixed plan needs beside the arrays; nothing for others.
struct device_options {
  device_buffer tile_bits;
  device_buffer index;
  status indexed;  // what became of making the index

  device_options(const plan& p, const_bytes bits, cudaStream_t stream)
      : tile_bits(bits.data, bits.size_bytes, stream), index(tile_index_bytes(p)) {
    if (p.kind() == plan_kind::mixed) indexed = index_tiles(p, tile_bits, index, stream);
  }
  operator options() const {
    options o;
    o.tile_bits = tile_bits;
    if (index.data() != nullptr) o.tile_index = index;
    return o;
  }
};

class cuda_engine final : public engine {
 public:
  status compress(const plan& p, const_values x, bytes blob, random_key key,
                  const_bytes tile_bits) override {
    const device_buffer in(x.data, x.size_bytes(), stream_);
    const device_buffer out(blob.size_bytes);
    const device_options o(p, tile_bits, stream_);
    if (!o.indexed) return o.indexed;
    const const_values array{in.data(), x.type, x.num_elements};
    if (const status s = furl::compress(p, array, out, key, stream_, o); !s) return s;
    return finish(out, blob.data);
  }
  status decompress(const plan& p, const_bytes blob, values y, random_key key,
                    const_bytes tile_bits) override {
    const device_buffer out(y.size_bytes());
    return restore(p, blob, out, y, key, tile_bits,
                   [](const auto&... arguments) { return furl::decompress(arguments...); });
  }
  status decompress_add(const plan& p, const_bytes blob, values y, random_key key,
                        const_bytes tile_bits) override {
    const device_buffer out(y.data, y.size_bytes(), stream_);
    return restore(p, blob, out, y, key, tile_bits,
                   [](const auto&... arguments) { return furl::decompress_add(arguments...); });
  }
  status pack(const plan& p, const_bytes codes, bytes blob) override {
    const device_buffer in(codes.data, codes.size_bytes, stream_);
    const device_buffer out(blob.size_bytes);
    if (const status s = furl::pack(p, in, out, stream_); !s) return s;
    return finish(out, blob.data);
  }
  status unpack(const plan& p, const_bytes blob, bytes codes) override {
    const device_buffer in(blob.data, blob.size_bytes, stream_);
    const device_buffer out(codes.size_bytes);
    if (const status s = furl::unpack(p, in, out, stream_); !s) return s;
    return finish(out, codes.data);
  }

  result<timings> measure(const plan& p, const_values x, bytes blob, values y,
                          random_key key) override {
    const device_buffer x_memory(x.data, x.size_bytes(), stream_);
    const device_buffer blob_memory(blob.size_bytes);
    const device_buffer y_memory(y.size_bytes());
    const const_values in{x_memory.data(), x.type, x.num_elements};
    const values out{y_memory.data(), y.type, y.num_elements};
    timings best;
    best.compress = best_seconds([&] { return furl::compress(p, in, blob_memory, key, stream_); });
    best.decompress =
        best_seconds([&] { return furl::decompress(p, blob_memory, out, key, stream_); });
    best.copy = best_seconds([&] {
      return kernel::cuda_status(
          cudaMemcpyAsync(out.data, in.data, x.size_bytes(), cudaMemcpyDeviceToDevice, stream_),
          "stream");
    });
    return best;
  }

 private:
  template <class Function>
  status restore(const plan& p, const_bytes blob, const device_buffer& out, values y,
                 random_key key, const_bytes tile_bits, const Function& function) {
    const device_buffer in(blob.data, blob.size_bytes, stream_);
    const device_options o(p, tile_bits, stream_);
    if (!o.indexed) return o.indexed;
    const values array{out.data(), y.type, y.num_elements};
    if (const status s = function(p, in, array, key, stream_, o); !s) return s;
    return finish(out, y.data);
  }

  status finish(const device_buffer& result, void* host) const {
    result.copy_to(host, stream_);
    stream_.wait();
    return {};
  }

  /// Of the device, between two events around the call's work.
  template <class Function>
  double best_seconds(const Function& function) const {
    return best_of_several([&] {
      require(cudaEventRecord(start_, stream_));
      cli::require(function());
      require(cudaEventRecord(stop_, stream_));
      require(cudaEventSynchronize(stop_));
      float milliseconds = 0.0f;
      require(cudaEventElapsedTime(&milliseconds, start_, stop_));
      return double(milliseconds) * 1e-3;
    });
  }

  scoped_stream stream_;
  scoped_event start_;
  scoped_event stop_;
};

}  // namespace

std::unique_ptr<engine> make_cuda_engine() {
  int count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  if (code != cudaSuccess)
    throw bad_device(std::string("no CUDA device: ") + cudaGetErrorString(code));
  if (count == 0) throw bad_device("no CUDA device");
  return std::make_unique<cuda_engine>();
}

}  // namespace furl::cli
