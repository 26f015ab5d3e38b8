// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace trainer {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& file, const std::string& problem) {
  throw std::runtime_error(file + ": " + problem);
}

[[noreturn]] void fail_with_errno(const std::string& file) {
  fail(file, std::generic_category().message(errno));
}

fs::path folder_of(const fs::path& file) {
  return file.has_parent_path() ? file.parent_path() : fs::path(".");
}

}  // namespace

progress_bar::progress_bar(std::string title)
    : title_(std::move(title)), moves_(isatty(STDERR_FILENO) == 1) {}

void progress_bar::show(int done, int all, float loss) {
  constexpr int width = 20;
  const clock::time_point now = clock::now();
  const bool is_last = done == all;
  if (!is_last && (!moves_ || now - shown_ < std::chrono::milliseconds(100))) return;
  shown_ = now;
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  const double left = elapsed * double(all - done) / double(done);
  const auto filled = static_cast<std::size_t>(width * double(done) / double(all));
  const auto digits = static_cast<int>(std::to_string(all).size());
  std::ostringstream line;
  line << (moves_ ? "\r" : "") << std::left << std::setw(22) << title_ << '['
       << std::string(filled, '#') << std::string(width - filled, '.') << "] " << std::right
       << std::setw(digits) << done << '/' << all << std::fixed << std::setprecision(3) << "  loss "
       << loss << std::setprecision(0) << std::setw(6) << (is_last ? elapsed : left)
       << (is_last ? " s     \n" : " s left");
  std::cerr << line.str() << std::flush;
}

std::string to_table(const std::vector<run_result>& results) {
  std::ostringstream out;
  out << "activations kept as     test accuracy   saved per step      ratio   seconds per step\n";
  for (const run_result& r : results)
    out << std::left << std::setw(22) << r.kept_as.title << std::right << std::fixed
        << std::setprecision(2) << std::setw(13) << 100.0 * r.accuracy << " %" << std::setw(13)
        << double(r.saved_bytes) / 1e6 << " MB" << std::setw(10) << r.ratio() << 'x'
        << std::setprecision(4) << std::setw(19) << r.seconds_per_step << '\n';
  out << "saved: all that a step keeps for its backward pass\n"
         "ratio: to keeping it as floats, and as bytes where a mask or a window index will do\n";
  return out.str();
}

std::string to_csv(const std::vector<run_result>& results, const run_settings& settings) {
  std::ostringstream out;
  out << "codec,epochs,batch,seed,last_loss,test_accuracy,saved_bytes,plain_bytes,ratio,"
         "seconds_per_step\n";
  for (const run_result& r : results) {
    out << r.kept_as.name << ',' << settings.epochs << ',' << settings.batch << ',' << settings.seed
        << ',';
    out << std::scientific << std::setprecision(8) << r.last_loss << ',';  // every bit of it
    out << std::fixed << std::setprecision(4) << r.accuracy << ',' << r.saved_bytes << ','
        << r.plain_bytes << ',' << r.ratio() << ',' << std::setprecision(6) << r.seconds_per_step
        << '\n';
  }
  return out.str();
}

std::string to_csv(const std::vector<gradient_error>& errors) {
  std::ostringstream out;
  out << "codec,bits,error,saved_bytes\n";
  for (const gradient_error& e : errors)
    out << e.kept_as.name << ',' << e.kept_as.codec.bits << ',' << std::setprecision(4) << e.error
        << ',' << e.saved_bytes << '\n';
  return out.str();
}

void check_writable(const std::string& file) {
  std::error_code ignored;
  const fs::path folder = folder_of(file);
  if (!fs::is_directory(folder, ignored)) fail(file, "there is no folder " + folder.string());
  if (access(folder.c_str(), W_OK | X_OK) != 0) fail_with_errno(folder.string());
  // The file is replaced by another one: nothing to do to a device, a pipe or a link.
  const fs::file_status existing = fs::symlink_status(file, ignored);
  if (fs::exists(existing) && !fs::is_regular_file(existing)) fail(file, "is no regular file");
}

void write_file(const std::string& file, const std::string& text) {
  std::string draft = file + ".XXXXXX";
  const int descriptor = mkstemp(draft.data());
  if (descriptor < 0) fail_with_errno(draft);
  const char* data = text.data();
  std::size_t left = text.size();
  bool good = fchmod(descriptor, S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH) == 0;
  while (good && left > 0) {
    const ssize_t written = write(descriptor, data, left);
    good = written > 0 || (written < 0 && errno == EINTR);
    if (written > 0) {
      data += written;
      left -= static_cast<std::size_t>(written);
    }
  }
  good = good && fsync(descriptor) == 0;
  good = close(descriptor) == 0 && good;
  good = good && std::rename(draft.c_str(), file.c_str()) == 0;
  if (good) return;
  const int reason = errno;
  unlink(draft.c_str());
  errno = reason;
  fail_with_errno(file);
}

}  // namespace trainer
