// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// libFuzzer target: the input is a serialised plan, then a blob of any bytes. What deserialises and
// is small enough is decompressed, compressed again and unpacked; sanitizers look for the rest.

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "furl/furl.hpp"

namespace {

using namespace furl;

struct aligned_bytes {
  explicit aligned_bytes(u64 size) : storage(static_cast<std::size_t>(size + 15) / 16) {}
  struct alignas(16) unit {
    u8 byte[16];
  };
  std::vector<unit> storage;
};

void require(bool holds) {
  if (!holds) std::abort();
}

void run(const plan& p, const u8* data, std::size_t size) {
  aligned_bytes blob(p.size_bytes());
  if (size != 0)
    std::memcpy(blob.storage.data(), data,
                std::min(size, static_cast<std::size_t>(p.size_bytes())));
  const bytes view{blob.storage.data(), p.size_bytes()};
  const auto n = static_cast<std::size_t>(p.num_elements());
  if (p.kind() == plan_kind::codes) {
    std::vector<u8> codes(n);
    require(bool(host::unpack(p, {view.data, view.size_bytes}, codes)));
    require(bool(host::pack(p, codes, view)));
    return;
  }
  if (p.kind() == plan_kind::scaled) {
    const float levels[] = {-1.0f, 1.0f};
    const codebook book = nearest_codebook(levels, 2);
    std::vector<float> y(n);
    require(bool(host::unpack(p, {view.data, view.size_bytes}, book, y)));
    require(bool(host::unpack_multiply(p, {view.data, view.size_bytes}, book, y, y)));
    require(bool(host::pack(p, y, book, view, {1, 2})));
    return;
  }
  std::vector<u8> widths;
  u64 left = p.kind() == plan_kind::mixed ? p.sum_of_bits() : 0;
  for (i64 tiles = p.num_tiles(); left > 0; --tiles) {
    const u64 width = std::min<u64>(8, left - u64(tiles - 1));
    widths.push_back(static_cast<u8>(width));
    left -= width;
  }
  const host::options o{nullptr, widths};
  std::vector<float> y(n);
  std::vector<f16> half(n);
  require(bool(host::decompress(p, {view.data, view.size_bytes}, y, random_key{1, 2}, o)));
  require(bool(host::decompress_add(p, {view.data, view.size_bytes}, half, random_key{1, 2}, o)));
  require(bool(host::compress(p, y, view, {1, 2}, o)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  plan_bytes serialised;
  if (size < sizeof serialised.data) return 0;
  std::memcpy(serialised.data, data, sizeof serialised.data);
  const result<plan> p = deserialize(serialised);
  if (p && p->num_elements() <= 1 << 16)
    run(*p, data + sizeof serialised.data, size - sizeof serialised.data);
  return 0;
}
