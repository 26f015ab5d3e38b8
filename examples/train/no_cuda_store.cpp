// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// In place of cuda_store.cu where the build has no CUDA.

#include "fold_store.hpp"

namespace trainer {

std::unique_ptr<fold_store> make_cuda_store() {
  throw no_cuda("--device cuda: this build has no CUDA support");
}

}  // namespace trainer
