// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

#include "engine.hpp"

#include "failure.hpp"

namespace furl::cli {

std::unique_ptr<engine> make_engine(const std::string& device, int num_threads) {
  if (device == "host") return make_host_engine(num_threads);
  if (device == "cuda") return make_cuda_engine();
  throw bad_usage("--device " + device + ": must be host or cuda");
}

}  // namespace furl::cli
