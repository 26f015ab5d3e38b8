// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Tensors stay in host memory, their folded form in device memory: each call copies to the device
// and back, and waits. It shows the calls; a program that computes on the device copies nothing.

#include <cuda_runtime_api.h>

#include <utility>

#include "fold_store.hpp"
#include "furl/stash.cuh"

namespace trainer {
namespace {

void check_cuda(cudaError_t code) {
  if (code != cudaSuccess)
    throw std::runtime_error(std::string("CUDA: ") + cudaGetErrorString(code));
}

class scoped_stream {
 public:
  scoped_stream() { check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~scoped_stream() { (void)cudaStreamDestroy(stream_); }
  scoped_stream(const scoped_stream&) = delete;
  scoped_stream& operator=(const scoped_stream&) = delete;
  operator cudaStream_t() const { return stream_; }
  void wait() const { check_cuda(cudaStreamSynchronize(stream_)); }

 private:
  cudaStream_t stream_ = nullptr;
};

/// An array's counterpart in device memory, for work on one stream.
template <class T>
class device_array {
 public:
  device_array(index size, cudaStream_t stream) : size_(size), stream_(stream) {
    void* memory = nullptr;
    check_cuda(cudaMallocAsync(&memory, num_bytes(), stream));
    data_ = static_cast<T*>(memory);
  }
  ~device_array() { (void)cudaFreeAsync(data_, stream_); }
  device_array(const device_array&) = delete;
  device_array& operator=(const device_array&) = delete;

  T* data() const { return data_; }
  index size() const { return size_; }
  void copy_from(const buffer<T>& host) {
    check_cuda(cudaMemcpyAsync(data_, host.data(), num_bytes(), cudaMemcpyHostToDevice, stream_));
  }
  void copy_to(const buffer<T>& host) const {
    check_cuda(cudaMemcpyAsync(host.data(), data_, num_bytes(), cudaMemcpyDeviceToHost, stream_));
  }

 private:
  std::size_t num_bytes() const { return static_cast<std::size_t>(size_) * sizeof(T); }

  T* data_ = nullptr;
  const index size_;
  const cudaStream_t stream_;
};

class cuda_folded final : public folded {
 public:
  cuda_folded(furl::stash kept, const scoped_stream& stream)
      : kept_(std::move(kept)), stream_(stream) {}

  u64 size_bytes() const override { return kept_.plan().size_bytes(); }
  void restore(const buffer<float>& values) const override {
    const device_array<float> restored(values.size(), stream_);
    check(kept_.restore(restored, stream_));
    restored.copy_to(values);
    stream_.wait();
  }
  void unpack(const codes& c) const override {
    const device_array<u8> unpacked(c.size(), stream_);
    check(kept_.unpack(unpacked, stream_));
    unpacked.copy_to(c);
    stream_.wait();
  }

 private:
  furl::stash kept_;
  const scoped_stream& stream_;
};

class cuda_store final : public fold_store {
 public:
  std::unique_ptr<const folded> compress(const furl::plan& p, const buffer<float>& values,
                                         furl::random_key key) override {
    device_array<float> x(values.size(), stream_);
    x.copy_from(values);
    return keep(furl::stash::compress(p, x, key, stream_));
  }
  std::unique_ptr<const folded> pack(const furl::plan& p, const codes& c) override {
    device_array<u8> unpacked(c.size(), stream_);
    unpacked.copy_from(c);
    return keep(furl::stash::pack(p, unpacked, stream_));
  }

 private:
  std::unique_ptr<const folded> keep(furl::result<furl::stash> made) const {
    auto kept = std::make_unique<cuda_folded>(value_of(std::move(made)), stream_);
    stream_.wait();
    return kept;
  }

  scoped_stream stream_;
};

}  // namespace

std::unique_ptr<fold_store> make_cuda_store() {
  int count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  if (code != cudaSuccess)
    throw std::runtime_error(std::string("--device cuda: no CUDA device: ") +
                             cudaGetErrorString(code));
  if (count == 0) throw std::runtime_error("--device cuda: no CUDA device");
  return std::make_unique<cuda_store>();
}

}  // namespace trainer
