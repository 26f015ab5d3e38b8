// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#include "idx.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <memory>

namespace trainer {
namespace {

/// A gzipped file, read from front to back.
class gzip_file {
 public:
  explicit gzip_file(const std::string& name) : name_(name) {
    errno = 0;
    file_ = gzopen(name.c_str(), "rb");
    if (file_ == nullptr) fail(errno != 0 ? std::strerror(errno) : "out of memory");
  }
  ~gzip_file() { gzclose(file_); }
  gzip_file(const gzip_file&) = delete;
  gzip_file& operator=(const gzip_file&) = delete;

  [[noreturn]] void fail(const std::string& problem) const { throw data_error(name_, problem); }

  void read(u8* data, std::size_t size) {
    if (read_some(data, size) != size) fail("is cut short");
  }

  /// Reaching the end is what makes zlib compare the checksum.
  void expect_end() {
    u8 byte = 0;
    if (read_some(&byte, 1) != 0) fail("is longer than its header says");
  }

  u64 read_big_endian() {
    std::array<u8, 4> bytes{};
    read(bytes.data(), bytes.size());
    u64 value = 0;
    for (const u8 byte : bytes) value = value << 8 | byte;
    return value;
  }

 private:
  std::size_t read_some(u8* data, std::size_t size) {
    std::size_t done = 0;
    while (done < size) {
      const std::size_t part = std::min<std::size_t>(size - done, std::numeric_limits<int>::max());
      const int got = gzread(file_, data + done, static_cast<unsigned>(part));
      if (got <= 0) break;
      done += static_cast<std::size_t>(got);
    }
    int code = Z_OK;
    const char* const message = gzerror(file_, &code);
    if (code == Z_BUF_ERROR) fail("is cut short");
    if (code == Z_ERRNO) fail(std::strerror(errno));
    if (code != Z_OK && code != Z_STREAM_END) fail(std::string("is damaged: ") + message);
    return done;
  }

  const std::string name_;
  gzFile file_ = nullptr;
};

/// An IDX file is a magic number (two zero bytes, the element type, the number of dimensions), the
/// dimensions, then the elements. Returns the elements; the first dimension is the number of
/// items, and the others must be as given.
std::vector<u8> read_idx(const std::string& name, const std::vector<u64>& item_dimensions) {
  constexpr u64 type_u8 = 0x08;
  constexpr u64 most_items = 1'000'000;  // a damaged header must not claim all memory
  gzip_file file(name);
  if (file.read_big_endian() != (type_u8 << 8 | (item_dimensions.size() + 1)))
    file.fail("is not an IDX file of bytes with " + std::to_string(item_dimensions.size() + 1) +
              " dimensions");
  const u64 num_items = file.read_big_endian();
  if (num_items == 0 || num_items > most_items)
    file.fail("has an impossible number of items: " + std::to_string(num_items));
  u64 size = num_items;
  for (const u64 expected : item_dimensions) {
    const u64 dimension = file.read_big_endian();
    if (dimension != expected)
      file.fail("has items of width " + std::to_string(dimension) + ", not " +
                std::to_string(expected));
    size *= dimension;
  }
  std::vector<u8> elements(size);
  file.read(elements.data(), elements.size());
  file.expect_end();
  return elements;
}

}  // namespace

data_error::data_error(const std::string& file, const std::string& problem)
    : std::runtime_error(file + ": " + problem +
                         " (Fashion-MNIST comes with the Debian package dataset-fashion-mnist; "
                         "--data names its folder)") {}

image_set read_images(const std::string& images_file, const std::string& labels_file) {
  image_set set;
  set.pixels = read_idx(images_file, {image_width, image_width});
  set.labels = read_idx(labels_file, {});
  if (set.pixels.size() != set.labels.size() * image_pixels)
    throw data_error(labels_file, "has " + std::to_string(set.labels.size()) + " labels for " +
                                      std::to_string(set.pixels.size() / image_pixels) + " images");
  for (const u8 label : set.labels)
    if (label >= num_classes)
      throw data_error(labels_file, "has a label of " + std::to_string(label));
  return set;
}

dataset read_dataset(const std::string& directory) {
  const auto read = [&](const char* set) {
    const std::string prefix = directory + "/" + set;
    return read_images(prefix + "-images-idx3-ubyte.gz", prefix + "-labels-idx1-ubyte.gz");
  };
  return {read("train"), read("t10k")};
}

}  // namespace trainer
