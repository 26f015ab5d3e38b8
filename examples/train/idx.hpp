// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Fashion-MNIST as Debian ships it: gzipped IDX files.

#include <stdexcept>
#include <string>
#include <vector>

#include "tensor.hpp"

namespace trainer {

inline constexpr index image_width = 28;
inline constexpr index image_pixels = image_width * image_width;
inline constexpr int num_classes = 10;

/// A data file that is missing or not as it should be. The message is one line, names the file and
/// says what to install.
class data_error : public std::runtime_error {
 public:
  data_error(const std::string& file, const std::string& problem);
};

struct image_set {
  std::vector<u8> pixels;  // image_pixels per image, row by row; 255 is full ink
  std::vector<u8> labels;  // 0..num_classes - 1

  index size() const { return static_cast<index>(labels.size()); }
};

struct dataset {
  image_set training;
  image_set test;
};

/// Reads the images and labels of one set. Throws data_error.
image_set read_images(const std::string& images_file, const std::string& labels_file);

/// Reads both sets. Throws data_error.
dataset read_dataset(const std::string& directory);

}  // namespace trainer
