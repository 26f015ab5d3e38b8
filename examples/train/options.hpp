// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "saved_tensors.hpp"
#include "training.hpp"

namespace trainer {

enum class device { host, cuda };

struct options {
  run_settings run;
  trainer::activation activation = activation::relu;
  std::string codec = "all";
  std::vector<scheme> schemes;  // that codec and activation name
  std::string data = "/usr/share/datasets/fashion-mnist";
  std::string csv;        // none if empty
  std::string gradients;  // a file for errors of gradients, in place of training; none if empty
  trainer::device device = trainer::device::host;
  int threads = 1;
  int test_images = 0;  // 0: all
  bool help = false;
};

/// A command line that is refused, and why, in one line.
struct usage_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

std::string usage();

/// Throws usage_error.
options parse_options(const std::vector<std::string>& arguments);

}  // namespace trainer
