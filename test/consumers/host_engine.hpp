// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>

#include "fingerprint.hpp"
#include "furl/furl.hpp"

namespace {

struct host_engine {
  using array = std::vector<u8>;
  furl::host::thread_pool pool{2};
  furl::range range = furl::symmetric_range(0.7f, 4);

  furl::host::options options(const array& tile_bits) {
    furl::host::options o;
    o.pool = &pool;
    if (!tile_bits.empty()) o.tile_bits = tile_bits;
    return o;
  }
  bool compress(const furl::plan& p, const array& x, dtype type, array& blob,
                const array& tile_bits, bool in_range) {
    furl::host::options o = options(tile_bits);
    if (in_range) o.ranges = furl::given_ranges::of_tensor(&range.lo);
    return bool(furl::host::compress(p, {x.data(), type, p.num_elements()}, blob, {7, 11}, o));
  }
  bool decompress(const furl::plan& p, const array& blob, array& y, dtype type, bool add,
                  const array& tile_bits) {
    const furl::values out(y.data(), type, p.num_elements());
    return bool(add ? furl::host::decompress_add(p, blob, out, options(tile_bits))
                    : furl::host::decompress(p, blob, out, options(tile_bits)));
  }
  bool pack(const furl::plan& p, const array& codes, array& blob) {
    return bool(furl::host::pack(p, codes, blob));
  }
  bool unpack(const furl::plan& p, const array& blob, array& codes) {
    return bool(furl::host::unpack(p, blob, codes));
  }
  bool allocate(const furl::plan& p, const array& x, dtype type, u64 sum, array& tile_bits) {
    std::vector<double> squared(tile_bits.size());
    const std::vector<float> sensitivity(tile_bits.size(), 1.0f);
    return furl::host::squared_ranges(p, {x.data(), type, p.num_elements()}, squared, &pool) &&
           furl::host::allocate_bits(sum, sensitivity, squared, tile_bits);
  }
  bool measure(const furl::plan& p, const array& x, dtype type, const array& blob,
               const array& tile_bits, array& sums) {
    std::vector<furl::quality> all(sums.size() / sizeof(furl::quality));
    const bool done =
        bool(furl::host::measure(p, {x.data(), type, p.num_elements()}, blob,
                                 {all.data(), p.num_groups()}, &all.back(), options(tile_bits)));
    std::memcpy(sums.data(), all.data(), sums.size());
    return done;
  }
};

}  // namespace
