// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Calls in a floating-point mode of the caller's.

#include <cfenv>

#include "furl/detail/host/work.hpp"
#include "support/backend.hpp"

namespace furl::test {

inline constexpr unsigned flush_bits = 0x8040;  // FTZ and DAZ of x86
inline constexpr unsigned default_mode = 0x1f80;

/// Sets a mode of the thread for its lifetime.
class mode {
 public:
  explicit mode(int rounding_direction, bool flush = false) {
    std::fegetenv(&saved_);
    std::fesetround(rounding_direction);
#if defined(__SSE__)
    if (flush) _mm_setcsr(_mm_getcsr() | flush_bits);
#else
    (void)flush;
#endif
  }
  ~mode() {
    std::fesetenv(&saved_);
  }
  mode(const mode&) = delete;
  mode& operator=(const mode&) = delete;

 private:
  std::fenv_t saved_;
};

/// A back end that is called in a mode; inputs and expectations are made outside of it.
class in_mode final : public backend {
 public:
  in_mode(backend& inner, int rounding_direction, bool flush)
      : inner_(inner), direction_(rounding_direction), flush_(flush) {}
  const char* name() const override { return inner_.name(); }
  status compress(const plan& p, const_values x, bytes blob, random_key key, const_bytes widths,
                  const given_ranges& ranges, const statistics& given) override {
    const mode callers(direction_, flush_);
    return inner_.compress(p, x, blob, key, widths, ranges, given);
  }
  status decompress(const plan& p, const_bytes blob, values y, const_bytes widths,
                    const maybe_key& key, const statistics& given) override {
    const mode callers(direction_, flush_);
    return inner_.decompress(p, blob, y, widths, key, given);
  }
  status decompress_add(const plan& p, const_bytes blob, values y, const_bytes widths,
                        const maybe_key& key, const statistics& given) override {
    const mode callers(direction_, flush_);
    return inner_.decompress_add(p, blob, y, widths, key, given);
  }
  batch_status compress_batch(span<const compress_entry> batch, random_key key) override {
    const mode callers(direction_, flush_);
    return inner_.compress_batch(batch, key);
  }
  batch_status decompress_batch(span<const decompress_entry> batch, random_key key) override {
    const mode callers(direction_, flush_);
    return inner_.decompress_batch(batch, key);
  }
  status pack(const plan& p, const_bytes codes, bytes blob) override {
    return inner_.pack(p, codes, blob);
  }
  status unpack(const plan& p, const_bytes blob, bytes codes) override {
    return inner_.unpack(p, blob, codes);
  }
  status squared_ranges(const plan& p, const_values x, span<double> squared) override {
    const mode callers(direction_, flush_);
    return inner_.squared_ranges(p, x, squared);
  }
  status squared_ranges(const plan& p, const_bytes blob, span<double> squared,
                        const_bytes widths) override {
    const mode callers(direction_, flush_);
    return inner_.squared_ranges(p, blob, squared, widths);
  }
  status expand_sensitivity(const plan& p, span<const float> of_parts,
                            span<float> of_tiles) override {
    return inner_.expand_sensitivity(p, of_parts, of_tiles);
  }
  status allocate_bits(u64 sum_of_bits, span<const float> sensitivity,
                       span<const double> squared_range, bytes widths) override {
    const mode callers(direction_, flush_);
    return inner_.allocate_bits(sum_of_bits, sensitivity, squared_range, widths);
  }
  status pack(const plan& p, const_values x, const codebook& book, bytes blob,
              random_key key) override {
    const mode callers(direction_, flush_);
    return inner_.pack(p, x, book, blob, key);
  }
  status pack(const plan& p, const_values x, const codebook& book, span<const float> scales,
              bytes blob, random_key key) override {
    const mode callers(direction_, flush_);
    return inner_.pack(p, x, book, scales, blob, key);
  }
  status unpack(const plan& p, const_bytes blob, const codebook& book, values y) override {
    const mode callers(direction_, flush_);
    return inner_.unpack(p, blob, book, y);
  }
  status unpack_multiply(const plan& p, const_bytes blob, const codebook& book, const_values g,
                         values out) override {
    const mode callers(direction_, flush_);
    return inner_.unpack_multiply(p, blob, book, g, out);
  }
  status relu(const plan& p, const_values x, values y, bytes blob) override {
    const mode callers(direction_, flush_);
    return inner_.relu(p, x, y, blob);
  }
  status relu(const plan& p, const_values x, values y, bytes blob, random_key key) override {
    const mode callers(direction_, flush_);
    return inner_.relu(p, x, y, blob, key);
  }
  status dropout(const_values x, double p, values y, random_key key) override {
    const mode callers(direction_, flush_);
    return inner_.dropout(x, p, y, key);
  }
  status max_pool(const max_pool_plan& p, const_values x, values y, bytes blob) override {
    const mode callers(direction_, flush_);
    return inner_.max_pool(p, x, y, blob);
  }
  status max_pool_backward(const max_pool_plan& p, const_bytes blob, const_values g,
                           values out) override {
    const mode callers(direction_, flush_);
    return inner_.max_pool_backward(p, blob, g, out);
  }
  status dropout(const plan& codes, const_values x, double p, values y, bytes blob,
                 random_key key) override {
    const mode callers(direction_, flush_);
    return inner_.dropout(codes, x, p, y, blob, key);
  }
  status measure(const plan& p, const_values x, const_bytes blob, span<quality> groups,
                 quality* total, const_bytes widths) override {
    const mode callers(direction_, flush_);
    return inner_.measure(p, x, blob, groups, total, widths);
  }

 private:
  backend& inner_;
  const int direction_;
  const bool flush_;
};

}  // namespace furl::test
