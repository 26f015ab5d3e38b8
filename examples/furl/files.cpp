// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

#include "files.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <random>
#include <system_error>
#include <vector>

#include "failure.hpp"

namespace furl::cli {
namespace {

namespace fs = std::filesystem;

struct closer {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using file_handle = std::unique_ptr<std::FILE, closer>;

std::string last_error() {
  return std::generic_category().message(errno);
}

bool is_regular(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

file_handle open_to_read(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) throw bad_file(path, "cannot be read: is a directory");
  file_handle file(std::fopen(path.c_str(), "rb"));
  if (!file) throw bad_file(path, "cannot be read: " + last_error());
  return file;
}

std::string size_text(u64 size) {
  return size < u64(1) << 63 ? std::to_string(size) + " bytes" : "2^63 bytes or more";
}

u64 size_of(const std::string& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  if (error) throw bad_file(path, "cannot be read: " + error.message());
  return size;
}

void read_into(std::FILE* file, const std::string& path, buffer& content) {
  const auto size = static_cast<std::size_t>(content.size());
  if (size != 0 && std::fread(content.data(), 1, size, file) != size)
    throw bad_file(path, "cannot be read to its end" +
                             (std::ferror(file) != 0 ? ": " + last_error() : std::string()));
}

/// From a file that does not know its size and may have no end: memory grows with what really
/// comes, up to somewhat more than limit bytes.
buffer read_stream(std::FILE* file, const std::string& path, u64 limit) {
  constexpr std::size_t piece = std::size_t(1) << 20;
  std::vector<u8> bytes;
  std::size_t got = piece;
  while (got == piece && bytes.size() <= limit) {
    const std::size_t before = bytes.size();
    bytes.resize(before + piece);
    got = std::fread(bytes.data() + before, 1, piece, file);
    bytes.resize(before + got);
  }
  if (std::ferror(file) != 0) throw bad_file(path, "cannot be read: " + last_error());
  buffer content(bytes.size());
  if (!bytes.empty()) std::memcpy(content.data(), bytes.data(), bytes.size());
  return content;
}

std::string input_path(const std::string& path) {
  return path == "-" ? "/dev/stdin" : path;
}

/// Writes and closes. The data may first meet the disk when the file is closed.
void write_and_close(file_handle file, const std::string& path, const buffer& content) {
  const auto size = static_cast<std::size_t>(content.size());
  const bool written = size == 0 || std::fwrite(content.data(), 1, size, file.get()) == size;
  if (!written || std::fflush(file.get()) != 0 || std::fclose(file.release()) != 0)
    throw bad_file(path, "cannot be written: " + last_error());
}

void write_standard_output(const std::string& path, const buffer& content) {
  const auto size = static_cast<std::size_t>(content.size());
  const bool written = size == 0 || std::fwrite(content.data(), 1, size, stdout) == size;
  if (!written || std::fflush(stdout) != 0)
    throw bad_file(path, "cannot be written: " + last_error());
}

file_handle open_to_write(const std::string& path, const char* mode, const std::string& named) {
  file_handle file(std::fopen(path.c_str(), mode));
  if (!file) throw bad_file(named, "cannot be written: " + last_error());
  return file;
}

/// A file beside the one to be written, gone again unless it takes that one's name.
class temporary_file {
 public:
  explicit temporary_file(const fs::path& target, const std::string& named)
      : target_(target), named_(named) {
    std::random_device random;
    for (int attempt = 0; attempt < 100 && !file_; ++attempt) {
      path_ = target.parent_path() / (".furl-" + std::to_string(random()) + ".tmp");
      file_.reset(std::fopen(path_.c_str(), "wbx"));  // x: never somebody else's file
      if (!file_ && errno != EEXIST) break;
    }
    if (!file_) throw bad_file(named, "cannot be written: " + last_error());
  }
  ~temporary_file() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove(path_, ignored);
  }
  temporary_file(const temporary_file&) = delete;
  temporary_file& operator=(const temporary_file&) = delete;

  void write(const buffer& content) { write_and_close(std::move(file_), named_, content); }

  void rename() {
    std::error_code error;
    const fs::file_status old = fs::status(target_, error);
    if (fs::exists(old)) fs::permissions(path_, old.permissions(), error);
    fs::rename(path_, target_, error);
    if (error) throw bad_file(named_, "cannot be written: " + error.message());
    path_.clear();
  }

 private:
  fs::path target_;
  std::string named_;  // as the user spelt it
  fs::path path_;
  file_handle file_;
};

}  // namespace

void check_size(const std::string& path, u64 found, u64 size, const std::string& what) {
  if (found != size)
    throw bad_file(path, "has " + size_text(found) + ", but " + what + " needs " + size_text(size));
}

buffer read_exactly(const std::string& path, u64 size, const std::string& what) {
  const std::string real = input_path(path);
  const file_handle file = open_to_read(real);
  if (!is_regular(real)) {
    buffer content = read_stream(file.get(), path, size);
    if (content.size() > size)
      throw bad_file(path, "has more bytes than " + what + " needs, " + size_text(size));
    check_size(path, content.size(), size, what);
    return content;
  }
  check_size(path, size_of(real), size, what);
  buffer content(size);
  read_into(file.get(), path, content);
  return content;
}

buffer read_all(const std::string& path) {
  const std::string real = input_path(path);
  const file_handle file = open_to_read(real);
  if (!is_regular(real)) return read_stream(file.get(), path, ~u64(0));
  buffer content(size_of(real));
  read_into(file.get(), path, content);
  return content;
}

void write_file(const std::string& path, const buffer& content) {
  // Not through its name: the shell may have put earlier output of others into that file.
  if (path == "-" || path == "/dev/stdout") return write_standard_output(path, content);
  std::error_code ignored;
  const bool exists = fs::exists(path, ignored);
  if (exists && !is_regular(path))
    return write_and_close(open_to_write(path, "wb", path), path, content);
  // A file that forbids writing is not to be replaced either; a link keeps pointing where it does.
  if (exists) open_to_write(path, "r+b", path);
  temporary_file file(exists ? fs::canonical(path) : fs::path(path), path);
  file.write(content);
  file.rename();
}

}  // namespace furl::cli
