// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests: runs the tool in a directory of its own.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace furl::test {

namespace fs = std::filesystem;

struct outcome {
  int status = -1;  // -1: did not exit by itself
  std::string out;
  std::string err;

  bool one_line() const {
    return std::count(err.begin(), err.end(), '\n') == 1 && err.back() == '\n';
  }
};

/// An empty directory that is gone, with all that is in it, afterwards.
class cli_test : public ::testing::Test {
 public:
  cli_test() {
    std::string name = (fs::temp_directory_path() / "furl-cli-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    base_ = name;
    fs::create_directory(base_ / "work");
  }
  ~cli_test() override {
    std::error_code ignored;
    fs::remove_all(base_, ignored);
  }
  cli_test(const cli_test&) = delete;
  cli_test& operator=(const cli_test&) = delete;

 protected:
  std::string path(const std::string& name) const { return (base_ / "work" / name).string(); }

  void write(const std::string& name, const std::string& content) const {
    std::ofstream(path(name), std::ios::binary) << content;
  }

  static std::string content_of(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::string read(const std::string& name) const { return content_of(path(name)); }

  bool exists(const std::string& name) const { return fs::exists(path(name)); }

  /// Names of all files that are there.
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(base_ / "work"))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }

  /// In the directory, so that arguments can be mere names.
  outcome run(std::vector<std::string> texts, const std::string& input = "/dev/null") const {
    texts.insert(texts.begin(), FURL_CLI);
    texts.insert(texts.begin(), launcher_.begin(), launcher_.end());
    std::vector<char*> argv = pointers_to(texts);
    const std::string out = (base_ / "out").string();
    const std::string err = (base_ / "err").string();
    const int flags = O_WRONLY | O_CREAT | O_TRUNC;

    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, input.c_str(), O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), flags, 0600);
    posix_spawn_file_actions_addopen(&actions, 2, err.c_str(), flags, 0600);
    // Where sanitizers are in the tool, memory that cannot be had must not end it.
    std::vector<std::string> variables = {"ASAN_OPTIONS=allocator_may_return_null=1",
                                          "TSAN_OPTIONS=allocator_may_return_null=1"};
    for (char** inherited = environ; *inherited != nullptr; ++inherited)
      variables.emplace_back(*inherited);  // of two with the same name, the first counts
    std::vector<char*> environment = pointers_to(variables);
    const fs::path before = fs::current_path();
    fs::current_path(base_ / "work");
    pid_t child = 0;
    const int failed =
        posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environment.data());
    fs::current_path(before);
    posix_spawn_file_actions_destroy(&actions);

    int status = 0;
    outcome done;
    if (failed == 0 && ::waitpid(child, &status, 0) == child && WIFEXITED(status))
      done.status = WEXITSTATUS(status);
    done.out = content_of(out);
    done.err = content_of(err);
    return done;
  }

  /// Ends with this status and one line that holds all these words.
  void expect_failure(const std::vector<std::string>& texts, int status,
                      const std::vector<std::string>& words) const {
    std::string call;
    for (const std::string& text : texts) call += text + " ";
    SCOPED_TRACE(call);
    const outcome done = run(texts);
    EXPECT_EQ(done.status, status) << done.err;
    EXPECT_TRUE(done.one_line()) << done.err;
    EXPECT_EQ(done.out, "");
    for (const std::string& word : words)
      EXPECT_NE(done.err.find(word), std::string::npos) << done.err << " without " << word;
  }

  /// What is put before the program from now on.
  void set_launcher(const std::vector<std::string>& command) { launcher_ = command; }

 private:
  /// As programs take their arguments.
  static std::vector<char*> pointers_to(std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    pointers.reserve(texts.size() + 1);
    for (std::string& text : texts) pointers.push_back(text.data());
    pointers.push_back(nullptr);
    return pointers;
  }

  fs::path base_;
  std::vector<std::string> launcher_;
};

}  // namespace furl::test
