// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

#include <cstdint>
#include <optional>

#include "device/backend.hpp"
#include "device/device.hpp"
#include "furl/furl.cuh"

namespace furl::test {
namespace {

/// The device's copy of an array in host memory, made only if the pointer is not null.
class mirror {
 public:
  mirror(const void* host, u64 size, u64 element_bytes = 1) {
    if (host == nullptr) return;
    const u64 misalignment = reinterpret_cast<std::uintptr_t>(host) % 64;
    buffer_.emplace(size, misalignment / element_bytes * element_bytes);
    buffer_->write(host);
  }
  void* data() const { return buffer_ ? buffer_->data() : nullptr; }
  void copy_back(void* host) const {
    if (buffer_) buffer_->read(host);
  }

 private:
  std::optional<device_buffer> buffer_;
};

class device_backend final : public backend {
 public:
  const char* name() const override { return "device"; }

  status compress(const plan& p, const_values x, bytes blob, random_key key,
                  const_bytes widths) override {
    const mirror in(x.data, bytes_of(x.num_elements, x.type), u64(size_bytes(x.type)));
    const mirror out(blob.data, blob.size_bytes);
    const mirror tile_widths(widths.data, widths.size_bytes);
    const device_buffer workspace(workspace_bytes(p));
    const status s =
        furl::compress(p, {in.data(), x.type, x.num_elements}, {out.data(), blob.size_bytes}, key,
                       stream_, options_of(widths, tile_widths, workspace));
    stream_.wait();
    out.copy_back(blob.data);
    return s;
  }

  status decompress(const plan& p, const_bytes blob, values y, const_bytes widths) override {
    return restore(p, blob, y, widths, furl::decompress);
  }
  status decompress_add(const plan& p, const_bytes blob, values y, const_bytes widths) override {
    return restore(p, blob, y, widths, furl::decompress_add);
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

 private:
  /// A negative count or an unknown type, which the library refuses, has no bytes to copy.
  static u64 bytes_of(i64 count, dtype type) {
    return count < 0 ? 0 : u64(count) * u64(size_bytes(type));
  }

  static options options_of(const_bytes widths, const mirror& copy,
                            const device_buffer& workspace) {
    options o;
    o.widths = {copy.data(), widths.size_bytes};
    o.workspace = {workspace.data(), workspace.size()};
    return o;
  }

  template <class Function>
  status restore(const plan& p, const_bytes blob, values y, const_bytes widths,
                 const Function& function) {
    const mirror in(blob.data, blob.size_bytes);
    const mirror out(y.data, bytes_of(y.num_elements, y.type), u64(size_bytes(y.type)));
    const mirror tile_widths(widths.data, widths.size_bytes);
    const device_buffer workspace(workspace_bytes(p));
    const status s = function(p, {in.data(), blob.size_bytes}, {out.data(), y.type, y.num_elements},
                              stream_, options_of(widths, tile_widths, workspace));
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
