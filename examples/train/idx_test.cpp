// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
// Every way a data file can be wrong.

#include "idx.hpp"

#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>

namespace trainer {
namespace {

namespace fs = std::filesystem;

using file_bytes = std::vector<u8>;

file_bytes header(u8 dimensions, std::initializer_list<u8> sizes) {
  file_bytes h{0, 0, 8, dimensions};
  for (const u8 size : sizes) h.insert(h.end(), {0, 0, 0, size});
  return h;
}

class idx_test : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "furl_idx_XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder = name;
    good_images = header(3, {2, 28, 28});
    good_images.resize(good_images.size() + 2 * 28 * 28, 5);
    good_labels = header(1, {2});
    good_labels.insert(good_labels.end(), {3, 9});
  }
  void TearDown() override { fs::remove_all(folder); }

  std::string path(const char* name) const { return (folder / name).string(); }

  void write(const char* name, const file_bytes& content) const {
    gzFile file = gzopen(path(name).c_str(), "wb");
    ASSERT_NE(file, nullptr);
    EXPECT_EQ(gzwrite(file, content.data(), unsigned(content.size())), int(content.size()));
    EXPECT_EQ(gzclose(file), Z_OK);
  }

  image_set read() const { return read_images(path("images"), path("labels")); }

  /// Reads what has been set up; it must be refused, with a message of one line.
  void expect_refusal(const std::string& file, const std::string& problem) const {
    try {
      read();
      FAIL() << "not refused: " << problem;
    } catch (const data_error& e) {
      const std::string message = e.what();
      EXPECT_EQ(message.find(path(file.c_str()) + ": "), 0U) << message;
      EXPECT_NE(message.find(problem), std::string::npos) << message;
      EXPECT_NE(message.find("dataset-fashion-mnist"), std::string::npos) << message;
      EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    }
  }
  void expect_refusal_of_images(const file_bytes& images, const std::string& problem) const {
    write("images", images);
    write("labels", good_labels);
    expect_refusal("images", problem);
  }

  fs::path folder;
  file_bytes good_images;
  file_bytes good_labels;
};

TEST_F(idx_test, reads_good_files) {
  write("images", good_images);
  write("labels", good_labels);
  const image_set set = read();
  EXPECT_EQ(set.labels, (file_bytes{3, 9}));
  EXPECT_EQ(set.pixels, file_bytes(2 * 28 * 28, 5));
}

TEST_F(idx_test, refuses_missing_files) {
  expect_refusal("images", "No such file");
  write("images", good_images);
  expect_refusal("labels", "No such file");
}

TEST_F(idx_test, refuses_wrong_headers) {
  expect_refusal_of_images({}, "is cut short");
  expect_refusal_of_images(good_labels, "is not an IDX file");
  expect_refusal_of_images(file_bytes(100, 7), "is not an IDX file");
  expect_refusal_of_images(header(3, {2, 28}), "is cut short");
  expect_refusal_of_images(header(3, {0, 28, 28}), "number of items");
  expect_refusal_of_images(header(3, {2, 27, 28}), "27");
  expect_refusal_of_images({0, 0, 8, 3, 255, 255, 255, 255}, "number of items");
}

TEST_F(idx_test, refuses_wrong_sizes) {
  file_bytes images = good_images;
  images.pop_back();
  expect_refusal_of_images(images, "is cut short");
  images.resize(good_images.size() + 1);
  expect_refusal_of_images(images, "is longer");
}

TEST_F(idx_test, refuses_wrong_labels) {
  write("images", good_images);
  good_labels.back() = 10;
  write("labels", good_labels);
  expect_refusal("labels", "label of 10");
  good_labels = header(1, {1});
  good_labels.push_back(0);
  write("labels", good_labels);
  expect_refusal("labels", "1 labels for 2 images");
}

TEST_F(idx_test, refuses_damaged_compression) {
  write("images", good_images);
  write("labels", good_labels);
  const auto size = fs::file_size(path("images"));
  {
    std::fstream file(path("images"), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(size) - 8);  // the checksum
    file.put('\x55');
  }
  expect_refusal("images", "is damaged");
  fs::resize_file(path("images"), size - 9);
  expect_refusal("images", "is cut short");
  fs::resize_file(path("images"), 0);
  expect_refusal("images", "is cut short");
}

}  // namespace
}  // namespace trainer
