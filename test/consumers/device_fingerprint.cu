// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// With FINGERPRINT_SMALL only the calls with few kernels run on the device, the others on the host:
// a fifth of the compile time, and the same fingerprint.

#include <cuda_runtime.h>

#include "fingerprint.hpp"
#include "furl/furl.cuh"
#if defined(FINGERPRINT_SMALL)
#include "host_engine.hpp"
#endif

namespace {

using array = std::vector<u8>;

/// A device's copy of an array.
class on_device {
 public:
  explicit on_device(const array& host) : size_(host.size()) {
    cudaMalloc(&data_, size_ + 1);
    cudaMemcpy(data_, host.data(), size_, cudaMemcpyHostToDevice);
  }
  ~on_device() { cudaFree(data_); }
  on_device(const on_device&) = delete;
  on_device& operator=(const on_device&) = delete;

  furl::bytes bytes() const { return {data_, size_}; }
  furl::const_bytes const_bytes() const { return {data_, size_}; }
  void* data() const { return data_; }
  /// Whether all that was launched before has succeeded.
  bool read(array& host) const {
    return cudaMemcpy(host.data(), data_, size_, cudaMemcpyDeviceToHost) == cudaSuccess;
  }

 private:
  void* data_ = nullptr;
  std::size_t size_;
};

/// The index of one chunk of tiles, which all tensors here have, is zero.
inline furl::options device_options(const furl::plan& p, const on_device& tile_bits,
                                    const on_device& index) {
  furl::options o;
  if (p.kind() != furl::plan_kind::mixed) return o;
  o.tile_bits = tile_bits.const_bytes();
  o.tile_index = index.const_bytes();
  return o;
}

#if defined(FINGERPRINT_SMALL)
using others = host_engine;
#else
/// The calls with many kernels.
struct others {
  bool compress(const furl::plan& p, const array& x, dtype type, array& blob,
                const array& tile_bits, bool in_range) {
    const furl::range range = furl::symmetric_range(0.7f, 4);
    const on_device in(x), out(blob), bits(tile_bits), index(array(furl::tile_index_bytes(p))),
        pair(array(sizeof range));
    cudaMemcpy(pair.data(), &range, sizeof range, cudaMemcpyHostToDevice);
    furl::options o = device_options(p, bits, index);
    if (in_range) o.ranges = furl::given_ranges::of_tensor(static_cast<const float*>(pair.data()));
    return furl::compress(p, {in.data(), type, p.num_elements()}, out.bytes(), {7, 11}, nullptr,
                          o) &&
           out.read(blob);
  }
  bool allocate(const furl::plan& p, const array& x, dtype type, u64 sum, array& tile_bits) {
    const i64 tiles = p.num_tiles();
    const std::vector<float> ones(tile_bits.size(), 1.0f);
    const on_device in(x), out(tile_bits), squared(array(tile_bits.size() * sizeof(double))),
        sensitivity(array(tile_bits.size() * sizeof(float))),
        work(array(furl::allocation_workspace_bytes(tiles)));
    cudaMemcpy(sensitivity.data(), ones.data(), ones.size() * sizeof(float),
               cudaMemcpyHostToDevice);
    return furl::squared_ranges(p, furl::const_values(in.data(), type, p.num_elements()),
                                {static_cast<double*>(squared.data()), tiles}, nullptr) &&
           furl::allocate_bits(sum, {static_cast<const float*>(sensitivity.data()), tiles},
                               {static_cast<const double*>(squared.data()), tiles}, out.bytes(),
                               work.bytes(), nullptr) &&
           out.read(tile_bits);
  }
  bool measure(const furl::plan& p, const array& x, dtype type, const array& blob,
               const array& tile_bits, array& sums) {
    const on_device elements(x), in(blob), bits(tile_bits), out(sums),
        work(array(furl::measure_workspace_bytes(p))), index(array(furl::tile_index_bytes(p)));
    auto* const groups = static_cast<furl::quality*>(out.data());
    return furl::measure(p, {elements.data(), type, p.num_elements()}, in.const_bytes(),
                         {groups, p.num_groups()}, groups + p.num_groups(), work.bytes(), nullptr,
                         device_options(p, bits, index)) &&
           out.read(sums);
  }
};
#endif

struct device_engine : others {
  bool decompress(const furl::plan& p, const array& blob, array& y, dtype type, bool add,
                  const array& tile_bits) {
#if defined(FINGERPRINT_SMALL)
    if (add) return host_engine::decompress(p, blob, y, type, add, tile_bits);
#endif
    const on_device in(blob), out(y), bits(tile_bits), index(array(furl::tile_index_bytes(p)));
    const furl::values values(out.data(), type, p.num_elements());
    const furl::options o = device_options(p, bits, index);
    return (add ? furl::decompress_add(p, in.const_bytes(), values, nullptr, o)
                : furl::decompress(p, in.const_bytes(), values, nullptr, o)) &&
           out.read(y);
  }
  bool pack(const furl::plan& p, const array& codes, array& blob) {
    const on_device in(codes), out(blob);
    return furl::pack(p, in.const_bytes(), out.bytes(), nullptr) && out.read(blob);
  }
  bool unpack(const furl::plan& p, const array& blob, array& codes) {
    const on_device in(blob), out(codes);
    return furl::unpack(p, in.const_bytes(), out.bytes(), nullptr) && out.read(codes);
  }
};

}  // namespace

extern "C" unsigned long long make_fingerprint() {
  return fingerprint<device_engine>().make();
}

#if !defined(FINGERPRINT_LIBRARY)
int main() {
  std::printf("%016llx\n", make_fingerprint());
}
#endif
