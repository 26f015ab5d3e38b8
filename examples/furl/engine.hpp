// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "furl/detail/quantize.hpp"
#include "furl/plan.hpp"
#include "furl/types.hpp"

namespace furl::cli {

/// Seconds for one call each, with all data where the engine works, the best of several.
struct timings {
  double compress = 0;
  double decompress = 0;  // to the type of the input
  double copy = 0;        // of the bytes of the input
};

/// What does the work. All pointers are to host memory, whatever the device.
class engine {
 public:
  engine() = default;
  virtual ~engine() = default;
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;

  virtual status compress(const plan& p, const_values x, bytes blob, random_key key,
                          const_bytes widths) = 0;
  /// The key is that of the compression; plans that do not need it take any.
  virtual status decompress(const plan& p, const_bytes blob, values y, random_key key,
                            const_bytes widths) = 0;
  virtual status decompress_add(const plan& p, const_bytes blob, values y, random_key key,
                                const_bytes widths) = 0;
  virtual status pack(const plan& p, const_bytes codes, bytes blob) = 0;
  virtual status unpack(const plan& p, const_bytes blob, bytes codes) = 0;

  /// May overwrite blob and y; y is of x's type. Without widths.
  virtual result<timings> measure(const plan& p, const_values x, bytes blob, values y,
                                  random_key key) = 0;
};

std::unique_ptr<engine> make_host_engine(int num_threads);

/// Of the current CUDA device; a failure if there is none, or no CUDA in this build.
std::unique_ptr<engine> make_cuda_engine();

/// The engine of a device: "host" or "cuda", or a failure that says why there is none.
std::unique_ptr<engine> make_engine(const std::string& device, int num_threads);

}  // namespace furl::cli
