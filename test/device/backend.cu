// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

#include <deque>
#include <vector>

#include "device/backend.hpp"
#include "device/buffer.cuh"
#include "device/library.cuh"
#include "device/mirror.cuh"

namespace furl::test {
namespace {

class device_backend final : public backend {
 public:
  const char* name() const override { return "device"; }

  status compress(const plan& p, const_values x, bytes blob, random_key key, const_bytes widths,
                  const given_ranges& ranges, const statistics& given) override {
    const input in(x);
    const output out(blob.data, blob.size_bytes);
    const input tile_widths(widths.data, widths.size_bytes);
    const input pairs(span<const float>{ranges.pairs, 2 * ranges.num_pairs});
    const statistics_copy copy(given);
    const device_buffer index(tile_index_bytes(p));
    options o = options_of(p, widths, tile_widths, index);
    o.statistics = copy.of_device(given);
    o.ranges = ranges;
    o.ranges.pairs = static_cast<const float*>(pairs.data());
    const status s = furl::compress(p, {in.data(), x.type, x.num_elements},
                                    {out.data(), blob.size_bytes}, key, stream_, o);
    stream_.wait();
    out.copy_back(blob.data);
    return s;
  }

  status decompress(const plan& p, const_bytes blob, values y, const_bytes widths,
                    const maybe_key& key, const statistics& given) override {
    return restore(p, blob, y, widths, given,
                   [&](const_bytes from, furl::values to, const options& o) {
                     return key ? furl::decompress(p, from, to, *key, stream_, o)
                                : furl::decompress(p, from, to, stream_, o);
                   });
  }
  status decompress_add(const plan& p, const_bytes blob, values y, const_bytes widths,
                        const maybe_key& key, const statistics& given) override {
    return restore(p, blob, y, widths, given,
                   [&](const_bytes from, furl::values to, const options& o) {
                     return key ? furl::decompress_add(p, from, to, *key, stream_, o)
                                : furl::decompress_add(p, from, to, stream_, o);
                   });
  }

  batch_status compress_batch(span<const compress_entry> batch, random_key key) override {
    if (batch.data == nullptr) return furl::compress_batch(batch, key, stream_);
    std::deque<input> arrays;
    std::deque<output> blobs;
    std::vector<compress_entry> copies;
    for (i64 i = 0; i < batch.size; ++i) {
      const compress_entry& e = batch.data[i];
      copies.push_back(
          {e.plan,
           {arrays.emplace_back(e.x).data(), e.x.type, e.x.num_elements},
           {blobs.emplace_back(e.blob.data, e.blob.size_bytes).data(), e.blob.size_bytes},
           e.key_offset});
    }
    const batch_status s = furl::compress_batch({copies.data(), batch.size}, key, stream_);
    stream_.wait();
    for (i64 i = 0; i < batch.size; ++i) blobs[std::size_t(i)].copy_back(batch.data[i].blob.data);
    return s;
  }
  batch_status decompress_batch(span<const decompress_entry> batch, random_key key) override {
    if (batch.data == nullptr) return furl::decompress_batch(batch, key, stream_);
    std::deque<input> blobs;
    std::deque<output> arrays;
    std::vector<decompress_entry> copies;
    for (i64 i = 0; i < batch.size; ++i) {
      const decompress_entry& e = batch.data[i];
      copies.push_back(
          {e.plan,
           {blobs.emplace_back(e.blob.data, e.blob.size_bytes).data(), e.blob.size_bytes},
           {arrays.emplace_back(const_view(e.y)).data(), e.y.type, e.y.num_elements},
           e.key_offset});
    }
    const batch_status s = furl::decompress_batch({copies.data(), batch.size}, key, stream_);
    stream_.wait();
    for (i64 i = 0; i < batch.size; ++i) arrays[std::size_t(i)].copy_back(batch.data[i].y.data);
    return s;
  }

  status pack(const plan& p, const_bytes codes, bytes blob) override {
    const input in(codes.data, codes.size_bytes);
    const output out(blob.data, blob.size_bytes);
    const status s =
        furl::pack(p, {in.data(), codes.size_bytes}, {out.data(), blob.size_bytes}, stream_);
    stream_.wait();
    out.copy_back(blob.data);
    return s;
  }
  status unpack(const plan& p, const_bytes blob, bytes codes) override {
    const input in(blob.data, blob.size_bytes);
    const output out(codes.data, codes.size_bytes);
    const status s =
        furl::unpack(p, {in.data(), blob.size_bytes}, {out.data(), codes.size_bytes}, stream_);
    stream_.wait();
    out.copy_back(codes.data);
    return s;
  }

  status squared_ranges(const plan& p, const_values x, span<double> squared) override {
    const input in(x.data, bytes_of(x.num_elements, x.type), u64(size_bytes(x.type)));
    const output out(squared);
    const status s =
        furl::squared_ranges(p, {in.data(), x.type, x.num_elements}, out.view(squared), stream_);
    stream_.wait();
    out.copy_back(squared.data);
    return s;
  }
  status squared_ranges(const plan& p, const_bytes blob, span<double> squared,
                        const_bytes widths) override {
    const input in(blob.data, blob.size_bytes);
    const output out(squared);
    const input tile_widths(widths.data, widths.size_bytes);
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
    const input in(of_parts);
    const output out(of_tiles);
    const status s = furl::expand_sensitivity(p, in.view(of_parts), out.view(of_tiles), stream_);
    stream_.wait();
    out.copy_back(of_tiles.data);
    return s;
  }
  status allocate_bits(u64 sum_of_bits, span<const float> sensitivity,
                       span<const double> squared_range, bytes tile_bits) override {
    const input sensitivities(sensitivity);
    const input ranges(squared_range);
    const output out(tile_bits.data, tile_bits.size_bytes);
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
    const input in(x);
    const output out(blob.data, blob.size_bytes);
    const status s = furl::pack(p, {in.data(), x.type, x.num_elements}, book,
                                {out.data(), blob.size_bytes}, key, stream_);
    stream_.wait();
    out.copy_back(blob.data);
    return s;
  }
  status pack(const plan& p, const_values x, const codebook& book, span<const float> scales,
              bytes blob, random_key key) override {
    const input in(x);
    const input given(scales);
    const output out(blob.data, blob.size_bytes);
    const status s = furl::pack(p, {in.data(), x.type, x.num_elements}, book, given.view(scales),
                                {out.data(), blob.size_bytes}, key, stream_);
    stream_.wait();
    out.copy_back(blob.data);
    return s;
  }
  status unpack(const plan& p, const_bytes blob, const codebook& book, values y) override {
    const input in(blob.data, blob.size_bytes);
    const output out(const_view(y));
    const status s = furl::unpack(p, {in.data(), blob.size_bytes}, book,
                                  {out.data(), y.type, y.num_elements}, stream_);
    stream_.wait();
    out.copy_back(y.data);
    return s;
  }
  status unpack_multiply(const plan& p, const_bytes blob, const codebook& book, const_values g,
                         values out) override {
    const input packed(blob.data, blob.size_bytes);
    const elementwise arrays(g, out);
    const status s = furl::unpack_multiply(p, {packed.data(), blob.size_bytes}, book,
                                           arrays.input_of(g), arrays.output_of(out), stream_);
    stream_.wait();
    arrays.copy_back(out);
    return s;
  }
  status relu(const plan& p, const_values x, values y, bytes blob) override {
    return relu_into(x, y, blob, [&](const_values from, furl::values to, furl::bytes mask) {
      return furl::relu(p, from, to, mask, stream_);
    });
  }
  status relu(const plan& p, const_values x, values y, bytes blob, random_key key) override {
    return relu_into(x, y, blob, [&](const_values from, furl::values to, furl::bytes out) {
      return furl::relu(p, from, to, out, key, stream_);
    });
  }
  status max_pool(const max_pool_plan& p, const_values x, values y, bytes blob) override {
    const input in(x);
    const output out(const_view(y));
    const output indices(blob.data, blob.size_bytes);
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
    const input indices(blob.data, blob.size_bytes);
    const input in(g);
    const output gathered(const_view(out));
    const status s = furl::max_pool_backward(
        p, {indices.data(), blob.size_bytes}, {in.data(), g.type, g.num_elements},
        {gathered.data(), out.type, out.num_elements}, stream_);
    stream_.wait();
    gathered.copy_back(out.data);
    return s;
  }
  status dropout(const_values x, double p, values y, random_key key) override {
    const elementwise arrays(x, y);
    const status s = furl::dropout(arrays.input_of(x), p, arrays.output_of(y), key, stream_);
    stream_.wait();
    arrays.copy_back(y);
    return s;
  }
  status dropout(const plan& codes, const_values x, double p, values y, bytes blob,
                 random_key key) override {
    const elementwise arrays(x, y);
    const output mask(blob.data, blob.size_bytes);
    const status s = furl::dropout(codes, arrays.input_of(x), p, arrays.output_of(y),
                                   {mask.data(), blob.size_bytes}, key, stream_);
    stream_.wait();
    arrays.copy_back(y);
    mask.copy_back(blob.data);
    return s;
  }
  status measure(const plan& p, const_values x, const_bytes blob, span<quality> groups,
                 quality* total, const_bytes widths) override {
    const input elements(x);
    const input in(blob.data, blob.size_bytes);
    const output of_groups(groups);
    const output of_all(total, sizeof *total, sizeof(double));
    const input tile_widths(widths.data, widths.size_bytes);
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
  options options_of(const plan& p, const_bytes widths, const input& copy,
                     const device_buffer& index) const {
    options o;
    o.tile_bits = {copy.data(), widths.size_bytes};
    if (p.kind() != plan_kind::mixed) return o;
    o.tile_index = {index.data(), index.size()};
    (void)index_tiles(p, o.tile_bits, {index.data(), index.size()}, stream_);
    return o;
  }

  template <class Function>
  status relu_into(const_values x, values y, bytes blob, const Function& function) {
    const elementwise arrays(x, y);
    const output out(blob.data, blob.size_bytes);
    const status s =
        function(arrays.input_of(x), arrays.output_of(y), {out.data(), blob.size_bytes});
    stream_.wait();
    arrays.copy_back(y);
    out.copy_back(blob.data);
    return s;
  }

  template <class Function>
  status restore(const plan& p, const_bytes blob, values y, const_bytes widths,
                 const statistics& given, const Function& function) {
    const input in(blob.data, blob.size_bytes);
    const output out(const_view(y));
    const input tile_widths(widths.data, widths.size_bytes);
    const device_buffer index(tile_index_bytes(p));
    const statistics_copy copy(given);
    options o = options_of(p, widths, tile_widths, index);
    o.statistics = copy.of_device(given);
    const status s =
        function({in.data(), blob.size_bytes}, {out.data(), y.type, y.num_elements}, o);
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
