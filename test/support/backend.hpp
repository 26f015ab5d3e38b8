// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "furl/furl.hpp"

namespace furl::test {

using maybe_key = std::optional<random_key>;

/// One implementation of the format, called with host memory: the same tests run over all.
class backend {
 public:
  // Tests hand over host memory, often in containers.
  using bytes = host::bytes;
  using const_bytes = host::const_bytes;
  using const_values = host::const_values;
  template <class T>
  using span = host::span<T>;
  using values = host::values;

  virtual ~backend() = default;
  virtual const char* name() const = 0;
  virtual status compress(const plan& p, const_values x, bytes blob, random_key key,
                          const_bytes widths = {}, const given_ranges& ranges = {},
                          const statistics& given = {}) = 0;
  /// By the call without a key if there is none.
  virtual status decompress(const plan& p, const_bytes blob, values y, const_bytes widths = {},
                            const maybe_key& key = {}, const statistics& given = {}) = 0;
  virtual status decompress_add(const plan& p, const_bytes blob, values y, const_bytes widths = {},
                                const maybe_key& key = {}, const statistics& given = {}) = 0;
  virtual batch_status compress_batch(span<const compress_entry> batch, random_key key) = 0;
  virtual batch_status decompress_batch(span<const decompress_entry> batch, random_key key) = 0;
  virtual status pack(const plan& p, const_bytes codes, bytes blob) = 0;
  virtual status unpack(const plan& p, const_bytes blob, bytes codes) = 0;

  virtual status squared_ranges(const plan& p, const_values x, span<double> squared) = 0;
  virtual status squared_ranges(const plan& p, const_bytes blob, span<double> squared,
                                const_bytes widths = {}) = 0;
  virtual status expand_sensitivity(const plan& p, span<const float> of_parts,
                                    span<float> of_tiles) = 0;
  virtual status allocate_bits(u64 sum_of_bits, span<const float> sensitivity,
                               span<const double> squared_range, bytes tile_bits) = 0;
  virtual status pack(const plan& p, const_values x, const codebook& book, bytes blob,
                      random_key key) = 0;
  virtual status pack(const plan& p, const_values x, const codebook& book, span<const float> scales,
                      bytes blob, random_key key) = 0;
  virtual status unpack(const plan& p, const_bytes blob, const codebook& book, values y) = 0;
  virtual status unpack_multiply(const plan& p, const_bytes blob, const codebook& book,
                                 const_values g, values out) = 0;
  virtual status relu(const plan& p, const_values x, values y, bytes blob) = 0;
  virtual status relu(const plan& p, const_values x, values y, bytes blob, random_key key) = 0;
  virtual status dropout(const_values x, double p, values y, random_key key) = 0;
  virtual status max_pool(const max_pool_plan& p, const_values x, values y, bytes blob) = 0;
  virtual status max_pool_backward(const max_pool_plan& p, const_bytes blob, const_values g,
                                   values out) = 0;
  virtual status dropout(const plan& codes, const_values x, double p, values y, bytes blob,
                         random_key key) = 0;
  virtual status measure(const plan& p, const_values x, const_bytes blob, span<quality> groups,
                         quality* total, const_bytes widths = {}) = 0;
};

/// The host engine with a number of threads. Defined in a file of its own: tests that name it here
/// need not compile the engine.
std::unique_ptr<backend> make_host_backend(int num_threads);

/// Every implementation that this program holds and this machine can run.
const std::vector<std::unique_ptr<backend>>& backends();

}  // namespace furl::test
