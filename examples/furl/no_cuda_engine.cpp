// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// In place of cuda_engine.cu where the build has no CUDA.

#include "engine.hpp"
#include "failure.hpp"

namespace furl::cli {

std::unique_ptr<engine> make_cuda_engine() {
  throw bad_usage("--device cuda: this build has no CUDA support");
}

}  // namespace furl::cli
