// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

#include <cstdint>
#include <optional>

#include "device/backend.hpp"
#include "device/device.hpp"
#include "device/library.cuh"

namespace furl::test {
namespace {

/// A negative count or an unknown type, which the library refuses, has no bytes to copy.
u64 bytes_of(i64 count, dtype type) {
  return count < 0 ? 0 : u64(count) * u64(size_bytes(type));
}

const_values const_view(values v) {
  return {v.data, v.type, v.num_elements};
}

/// The device's copy of an array in host memory, made only if the pointer is not null.
class mirror {
 public:
  template <class T>
  explicit mirror(span<T> host) : mirror(host.data, host.size_bytes(), sizeof(T)) {}
  mirror(const void* host, u64 size, u64 element_bytes = 1) {
    if (host == nullptr) return;
    const u64 misalignment = reinterpret_cast<std::uintptr_t>(host) % 64;
    buffer_.emplace(size, misalignment / element_bytes * element_bytes);
    buffer_->write(host);
  }
  explicit mirror(const_values v)
      : mirror(v.data, bytes_of(v.num_elements, v.type), u64(size_bytes(v.type))) {}
  void* data() const { return buffer_ ? buffer_->data() : nullptr; }
  template <class T>
  span<T> view(span<T> host) const {
    return {static_cast<T*>(data()), host.size};
  }
  void copy_back(void* host) const {
    if (buffer_) buffer_->read(host);
  }

 private:
  std::optional<device_buffer> buffer_;
};

/// An input and an output, which are one array on the device if they are in host memory.
class elementwise {
 public:
  elementwise(const_values input, values output)
      : in_place_(output.data == input.data),
        input_(input),
        output_(in_place_ ? const_values{nullptr, output.type, 0} : const_view(output)) {}
  const_values input(const_values host) const {
    return {input_.data(), host.type, host.num_elements};
  }
  values output(values host) const { return {written().data(), host.type, host.num_elements}; }
  void copy_back(values host) const { written().copy_back(host.data); }

 private:
  const mirror& written() const { return in_place_ ? input_ : output_; }

  bool in_place_;
  mirror input_;
  mirror output_;
};

class device_backend final : public backend {
 public:
  const char* name() const override { return "device"; }

  status compress(const plan& p, const_values x, bytes blob, random_key key, const_bytes widths,
                  const given_ranges& ranges) override {
    const mirror in(x);
    const mirror out(blob.data, blob.size_bytes);
    const mirror tile_widths(widths.data, widths.size_bytes);
    const mirror pairs(span<const float>{ranges.pairs, 2 * ranges.num_pairs});
    const device_buffer index(tile_index_bytes(p));
    options o = options_of(p, widths, tile_widths, index);
    o.ranges = ranges;
    o.ranges.pairs = static_cast<const float*>(pairs.data());
    const status s = furl::compress(p, {in.data(), x.type, x.num_elements},
                                    {out.data(), blob.size_bytes}, key, stream_, o);
    stream_.wait();
    out.copy_back(blob.data);
    return s;
  }

  status decompress(const plan& p, const_bytes blob, values y, const_bytes widths) override {
    return restore(p, blob, y, widths, furl::decompress<>);
  }
  status decompress_add(const plan& p, const_bytes blob, values y, const_bytes widths) override {
    return restore(p, blob, y, widths, furl::decompress_add<>);
  }

  status pack(const plan& p, const_bytes codes, bytes blob) override {
    const mirror in(codes.data, codes.size_bytes);
    const mirror out(blob.data, blob.size_bytes);
    const status s =
        furl::pack(p, {in.data(), codes.size_bytes}, {out.data(), blob.size_bytes}, stream_);
    stream_.wait();
    out.copy_back(blob.data);
    return s;
  }
  status unpack(const plan& p, const_bytes blob, bytes codes) override {
    const mirror in(blob.data, blob.size_bytes);
    const mirror out(codes.data, codes.size_bytes);
    const status s =
        furl::unpack(p, {in.data(), blob.size_bytes}, {out.data(), codes.size_bytes}, stream_);
    stream_.wait();
    out.copy_back(codes.data);
    return s;
  }

  status squared_ranges(const plan& p, const_values x, span<double> squared) override {
    const mirror in(x.data, bytes_of(x.num_elements, x.type), u64(size_bytes(x.type)));
    const mirror out(squared);
    const status s =
        furl::squared_ranges(p, {in.data(), x.type, x.num_elements}, out.view(squared), stream_);
    stream_.wait();
    out.copy_back(squared.data);
    return s;
  }
  status squared_ranges(const plan& p, const_bytes blob, span<double> squared,
                        const_bytes widths) override {
    const mirror in(blob.data, blob.size_bytes);
    const mirror out(squared);
    const mirror tile_widths(widths.data, widths.size_bytes);
    options o;
    o.tile_bits = {tile_widths.data(), widths.size_bytes};
    const status s = furl::squared_ranges(p, const_bytes{in.data(), blob.size_bytes},
                                          out.view(squared), stream_, o);
    stream_.wait();
    out.copy_back(squared.data);
    return s;
  }
  status expand_sensitivity(const plan& p, span<const float> of_parts,
                            span<float> of_tiles) override {
    const mirror in(of_parts);
    const mirror out(of_tiles);
    const status s = furl::expand_sensitivity(p, in.view(of_parts), out.view(of_tiles), stream_);
    stream_.wait();
    out.copy_back(of_tiles.data);
    return s;
  }
  status allocate_bits(u64 sum_of_bits, span<const float> sensitivity,
                       span<const double> squared_range, bytes tile_bits) override {
    const mirror sensitivities(sensitivity);
    const mirror ranges(squared_range);
    const mirror out(tile_bits.data, tile_bits.size_bytes);
    const device_buffer workspace(allocation_workspace_bytes(i64(tile_bits.size_bytes)));
    const status s = furl::allocate_bits(
        sum_of_bits, sensitivities.view(sensitivity), ranges.view(squared_range),
        {out.data(), tile_bits.size_bytes}, {workspace.data(), workspace.size()}, stream_);
    stream_.wait();
    out.copy_back(tile_bits.data);
    return s;
  }

  status pack(const plan& p, const_values x, const codebook& book, bytes blob,
              random_key key) override {
    const mirror in(x);
    const mirror out(blob.data, blob.size_bytes);
    const status s = furl::pack(p, {in.data(), x.type, x.num_elements}, book,
                                {out.data(), blob.size_bytes}, key, stream_);
    stream_.wait();
    out.copy_back(blob.data);
    return s;
  }
  status unpack(const plan& p, const_bytes blob, const codebook& book, values y) override {
    const mirror in(blob.data, blob.size_bytes);
    const mirror out(const_view(y));
    const status s = furl::unpack(p, {in.data(), blob.size_bytes}, book,
                                  {out.data(), y.type, y.num_elements}, stream_);
    stream_.wait();
    out.copy_back(y.data);
    return s;
  }
  status unpack_multiply(const plan& p, const_bytes blob, const codebook& book, const_values g,
                         values out) override {
    const mirror packed(blob.data, blob.size_bytes);
    const elementwise arrays(g, out);
    const status s = furl::unpack_multiply(p, {packed.data(), blob.size_bytes}, book,
                                           arrays.input(g), arrays.output(out), stream_);
    stream_.wait();
    arrays.copy_back(out);
    return s;
  }
  status relu(const plan& p, const_values x, values y, bytes blob) override {
    const elementwise arrays(x, y);
    const mirror mask(blob.data, blob.size_bytes);
    const status s =
        furl::relu(p, arrays.input(x), arrays.output(y), {mask.data(), blob.size_bytes}, stream_);
    stream_.wait();
    arrays.copy_back(y);
    mask.copy_back(blob.data);
    return s;
  }
  status max_pool(const max_pool_plan& p, const_values x, values y, bytes blob) override {
    const mirror in(x);
    const mirror out(const_view(y));
    const mirror indices(blob.data, blob.size_bytes);
    const status s =
        furl::max_pool(p, {in.data(), x.type, x.num_elements}, {out.data(), y.type, y.num_elements},
                       {indices.data(), blob.size_bytes}, stream_);
    stream_.wait();
    out.copy_back(y.data);
    indices.copy_back(blob.data);
    return s;
  }
  status max_pool_backward(const max_pool_plan& p, const_bytes blob, const_values g,
                           values out) override {
    const mirror indices(blob.data, blob.size_bytes);
    const mirror in(g);
    const mirror gathered(const_view(out));
    const status s = furl::max_pool_backward(
        p, {indices.data(), blob.size_bytes}, {in.data(), g.type, g.num_elements},
        {gathered.data(), out.type, out.num_elements}, stream_);
    stream_.wait();
    gathered.copy_back(out.data);
    return s;
  }
  status dropout(const_values x, double p, values y, random_key key) override {
    const elementwise arrays(x, y);
    const status s = furl::dropout(arrays.input(x), p, arrays.output(y), key, stream_);
    stream_.wait();
    arrays.copy_back(y);
    return s;
  }
  status dropout(const plan& codes, const_values x, double p, values y, bytes blob,
                 random_key key) override {
    const elementwise arrays(x, y);
    const mirror mask(blob.data, blob.size_bytes);
    const status s = furl::dropout(codes, arrays.input(x), p, arrays.output(y),
                                   {mask.data(), blob.size_bytes}, key, stream_);
    stream_.wait();
    arrays.copy_back(y);
    mask.copy_back(blob.data);
    return s;
  }
  status measure(const plan& p, const_values x, const_bytes blob, span<quality> groups,
                 quality* total, const_bytes widths) override {
    const mirror elements(x);
    const mirror in(blob.data, blob.size_bytes);
    const mirror of_groups(groups);
    const mirror of_all(total, sizeof *total, sizeof(double));
    const mirror tile_widths(widths.data, widths.size_bytes);
    const device_buffer index(tile_index_bytes(p));
    const device_buffer workspace(measure_workspace_bytes(p));
    const status s = furl::measure(
        p, {elements.data(), x.type, x.num_elements}, {in.data(), blob.size_bytes},
        of_groups.view(groups), static_cast<quality*>(of_all.data()),
        {workspace.data(), workspace.size()}, stream_, options_of(p, widths, tile_widths, index));
    stream_.wait();
    of_groups.copy_back(groups.data);
    of_all.copy_back(total);
    return s;
  }

 private:
  /// With the index of the tiles, made here if the bits are as many as the plan has tiles.
  options options_of(const plan& p, const_bytes widths, const mirror& copy,
                     const device_buffer& index) const {
    options o;
    o.tile_bits = {copy.data(), widths.size_bytes};
    if (p.kind() != plan_kind::mixed) return o;
    o.tile_index = {index.data(), index.size()};
    (void)index_tiles(p, o.tile_bits, {index.data(), index.size()}, stream_);
    return o;
  }

  template <class Function>
  status restore(const plan& p, const_bytes blob, values y, const_bytes widths,
                 const Function& function) {
    const mirror in(blob.data, blob.size_bytes);
    const mirror out(const_view(y));
    const mirror tile_widths(widths.data, widths.size_bytes);
    const device_buffer index(tile_index_bytes(p));
    const status s = function(p, {in.data(), blob.size_bytes}, {out.data(), y.type, y.num_elements},
                              stream_, options_of(p, widths, tile_widths, index));
    stream_.wait();
    out.copy_back(y.data);
    return s;
  }

  scoped_stream stream_;
};

}  // namespace

std::unique_ptr<backend> make_device_backend() {
  if (!has_device() && !device_required()) return nullptr;
  return std::make_unique<device_backend>();
}

}  // namespace furl::test
