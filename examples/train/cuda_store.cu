// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Tensors stay in host memory, their folded form in device memory: each call copies to the device
// and back, and waits. It shows the calls; a program that computes on the device copies nothing.

#include <cuda_runtime_api.h>

#include <memory>
#include <utility>
#include <vector>

#include "fold_store.hpp"
#include "furl/compress.cuh"
#include "furl/extra/allocate_bits.cuh"
#include "furl/extra/codebook.cuh"

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
    if (size == 0) return;
    void* memory = nullptr;
    check_cuda(cudaMallocAsync(&memory, num_bytes(), stream));
    data_ = static_cast<T*>(memory);
  }
  device_array(const buffer<T>& host, cudaStream_t stream) : device_array(host.size(), stream) {
    copy(data_, host.data(), cudaMemcpyHostToDevice);
  }
  ~device_array() {
    if (data_ != nullptr) (void)cudaFreeAsync(data_, stream_);
  }
  device_array(const device_array&) = delete;
  device_array& operator=(const device_array&) = delete;

  T* data() const { return data_; }
  index size() const { return size_; }
  furl::values values() const { return {data_, size_}; }
  furl::bytes bytes() const { return {data_, num_bytes()}; }
  furl::span<T> span() const { return {data_, size_}; }
  void copy_to(T* host) const { copy(host, data_, cudaMemcpyDeviceToHost); }

 private:
  std::size_t num_bytes() const { return static_cast<std::size_t>(size_) * sizeof(T); }
  void copy(T* to, const T* from, cudaMemcpyKind kind) const {
    check_cuda(cudaMemcpyAsync(to, from, num_bytes(), kind, stream_));
  }

  T* data_ = nullptr;
  const index size_;
  const cudaStream_t stream_;
};

using device_codes = device_array<u8>;

/// The sensitivity of a tensor whose tiles all have the same.
buffer<float> one() {
  buffer<float> value(1);
  *value.data() = 1.0F;
  return value;
}

/// Options for the bits of each tile, with the index that tiles are found by: made for a call,
/// since keeping it from the forward to the backward pass would take memory.
class mixed_options {
 public:
  /// tiles : null for a plan that is not mixed.
  mixed_options(const furl::plan& p, const device_codes* tiles, cudaStream_t stream)
      : index_(index(furl::tile_index_bytes(p)), stream) {
    if (tiles == nullptr) return;
    check(furl::index_tiles(p, tiles->bytes(), index_.bytes(), stream));
    options_.tile_bits = tiles->bytes();
    options_.tile_index = index_.bytes();
  }
  operator const furl::options&() const { return options_; }

 private:
  const device_codes index_;
  furl::options options_;
};

class cuda_folded final : public folded {
 public:
  /// tiles : for a mixed plan; book : for one packed by it.
  cuda_folded(furl::stash kept, const scoped_stream& stream, std::unique_ptr<device_codes> tiles,
              const furl::codebook* book)
      : kept_(std::move(kept)), stream_(stream), tiles_(std::move(tiles)), book_(book) {}

  u64 size_bytes() const override {
    return kept_.plan().size_bytes() + (tiles_ ? tiles_->bytes().size_bytes : 0);
  }
  void restore(const buffer<float>& values) const override {
    const device_array<float> y(values.size(), stream_);
    check(book_ != nullptr ? furl::unpack(kept_.plan(), kept_.blob(), *book_, y.values(), stream_)
                           : kept_.restore(y.values(), stream_, options()));
    fetch(y, values);
  }
  void restore_add(const buffer<float>& values) const override {
    const device_array<float> y(values, stream_);
    check(kept_.restore_add(y.values(), stream_, options()));
    fetch(y, values);
  }
  void unpack(const codes& c) const override {
    const device_codes y(c.size(), stream_);
    check(kept_.unpack(y.bytes(), stream_));
    fetch(y, c);
  }
  void multiply(const buffer<float>& values) const override {
    const device_array<float> g(values, stream_);
    check(
        furl::unpack_multiply(kept_.plan(), kept_.blob(), *book_, g.values(), g.values(), stream_));
    fetch(g, values);
  }
  std::vector<double> squared_ranges() const override {
    const device_array<double> squared(kept_.plan().num_tiles(), stream_);
    check(furl::squared_ranges(kept_.plan(), kept_.blob(), squared.span(), stream_, options()));
    std::vector<double> values(static_cast<std::size_t>(squared.size()));
    squared.copy_to(values.data());
    stream_.wait();
    return values;
  }

 private:
  mixed_options options() const { return {kept_.plan(), tiles_.get(), stream_}; }
  template <class T>
  void fetch(const device_array<T>& from, const buffer<T>& to) const {
    from.copy_to(to.data());
    stream_.wait();
  }

  furl::stash kept_;
  const scoped_stream& stream_;
  const std::unique_ptr<device_codes> tiles_;
  const furl::codebook* const book_;
};

class cuda_store final : public fold_store {
 public:
  std::unique_ptr<const folded> compress(const furl::plan& p, const buffer<float>& values,
                                         furl::random_key key,
                                         const buffer<float>& channel_ranges) override {
    const device_array<float> x(values, stream_);
    const device_array<float> ranges(channel_ranges, stream_);
    furl::options o;
    o.ranges = as_ranges(ranges.data(), ranges.size());
    return keep(furl::stash::compress(p, x.values(), key, stream_, o));
  }
  std::unique_ptr<const folded> compress_mixed(const furl::plan& p, const buffer<float>& values,
                                               furl::random_key key) override {
    const index num_tiles = p.num_tiles();
    const device_array<float> x(values, stream_);
    const device_array<double> squared(num_tiles, stream_);
    const device_array<float> sensitivity(num_tiles, stream_);
    auto tiles = std::make_unique<device_codes>(num_tiles, stream_);
    const device_codes workspace(index(furl::allocation_workspace_bytes(num_tiles)), stream_);
    check(furl::squared_ranges(p, x.values(), squared.span(), stream_));
    check(furl::expand_sensitivity(p, {even_.data(), 1}, sensitivity.span(), stream_));
    check(furl::allocate_bits(p.sum_of_bits(), {sensitivity.data(), num_tiles},
                              {squared.data(), num_tiles}, tiles->bytes(), workspace.bytes(),
                              stream_));
    auto made =
        furl::stash::compress(p, x.values(), key, stream_, mixed_options(p, tiles.get(), stream_));
    return keep(std::move(made), std::move(tiles));
  }
  std::unique_ptr<const folded> pack(const furl::plan& p, const codes& c) override {
    const device_codes unpacked(c, stream_);
    return keep(furl::stash::pack(p, unpacked.bytes(), stream_));
  }
  std::unique_ptr<const folded> pack(const furl::plan& p, const buffer<float>& values,
                                     const furl::codebook& book) override {
    const device_array<float> x(values, stream_);
    const auto write = [&](furl::bytes blob) {
      return furl::pack(p, x.values(), book, blob, {}, stream_);
    };
    return keep(furl::stash::make(p, write, stream_), nullptr, &book);
  }

 private:
  std::unique_ptr<const folded> keep(furl::result<furl::stash> made,
                                     std::unique_ptr<device_codes> tiles = nullptr,
                                     const furl::codebook* book = nullptr) const {
    auto kept =
        std::make_unique<cuda_folded>(value_of(std::move(made)), stream_, std::move(tiles), book);
    stream_.wait();
    return kept;
  }

  scoped_stream stream_;
  const device_array<float> even_{one(), stream_};
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
