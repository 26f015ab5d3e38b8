// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// inspect: raw files, and what the table says.

#include <cmath>
#include <string>
#include <vector>

#include "cli_device_test.hpp"
#include "cli_inspect_runner.hpp"

namespace furl::test {
namespace {

class cli_inspect_device : public cli_device_test {
 protected:
  /// The table as far as it does not depend on time: without its last two columns, the speeds.
  std::string figures(const std::string& device) const {
    const outcome done =
        run({"inspect", "x", "--shape", "4,33,20", "--seed", "3", "--device", device});
    EXPECT_EQ(done.status, 0) << done.err;
    std::istringstream lines(done.out.substr(0, done.out.find("memcpy")));
    std::string text;
    for (std::string line; std::getline(lines, line);)
      text += without_last_column(without_last_column(line)) + '\n';
    return text;
  }

 private:
  static std::string without_last_column(const std::string& line) {
    return line.substr(0, line.find_last_not_of(' ', line.rfind("  ")) + 1);
  }
};

TEST_P(cli_inspect_device, ShowsTheFiguresOfTheHost) {
  std::vector<float> waves(4 * 33 * 20);
  for (std::size_t i = 0; i < waves.size(); ++i) waves[i] = std::sin(static_cast<float>(i * i));
  write("x", floats(waves));
  const std::string table = figures(GetParam());
  for (const char* codec : {"--bits 2 --window 1,8,1", "--bits 2 --rounding dithered",
                            "--bits 4 --coding rotated  ", "--bits 1 --coding rotated: 12 blocks"})
    EXPECT_NE(table.find(codec), std::string::npos) << table;
  EXPECT_EQ(table, figures("host"));
}

FURL_ON_EVERY_DEVICE(cli_inspect_device);

TEST_F(cli_inspect, ReadsRawFilesAndPipes) {
  write("raw", grid(64));
  EXPECT_EQ(row(inspect({"raw", "--shape", "[8, 8]", "--window", "1,8", "--bits", "2"}),
                "--bits 2 --window 1,8")
                .size(),
            10u);
  expect_failure({"inspect", "raw"}, 1, {"raw", "--shape"});
  expect_failure({"inspect", "raw", "--shape", "65"}, 1, {"raw", "256", "260"});
  expect_failure({"inspect", "raw", "--shape", "64", "--group", "16"}, 2, {"codec.group is 16"});
}

// Two tiles, of which the second has elements in its first two blocks.
TEST_F(cli_inspect, ShowsTheScalesOfRotatedCodes) {
  std::vector<float> x(1024 + 40, 1.0f);
  for (std::size_t i = 32; i < 1024; i += 128)
    for (std::size_t c = 0; c < 32; ++c) x[i + c] = 0.0f;  // the second block
  x[1024 - 1] = INFINITY;                                  // the fourth
  write("raw", floats(x));
  const std::string codec = "--bits 3 --coding rotated";
  const std::string out = inspect({"raw", "--shape", "1064", "--coding", "rotated", "--bits=3"});
  EXPECT_NE(out.find("\n" + codec + ": 6 blocks, 1 of zeros, 1 poisoned; scales 0.00"),
            std::string::npos)
      << out;
  EXPECT_EQ(row(out, codec)[6], "16.67%");
  write("zeros", std::string(400, '\0'));
  const std::string zeros = inspect({"zeros", "--shape", "100", "--coding", "rotated"});
  EXPECT_NE(zeros.find("\n--bits 2 --coding rotated: 4 blocks, 4 of zeros, 0 poisoned\n"),
            std::string::npos)
      << zeros;
  EXPECT_EQ(row(zeros, "--bits 2 --coding rotated")[7], "1.000000");
}

TEST_F(cli_inspect, TakesOneFile) {
  write("raw", "");
  expect_failure({"inspect", "raw"}, 1, {"raw", ".npy"});
  expect_failure({"inspect", "absent"}, 1, {"absent", "No such file"});
  expect_failure({"inspect", "."}, 1, {"directory"});
  expect_failure({"inspect"}, 2, {"one file"});
  expect_failure({"inspect", "x.npy", "--in", "x.npy"}, 2, {"one file"});
  expect_failure({"inspect", "x.npy", "y.npy"}, 2, {"y.npy"});
}

TEST_F(cli_inspect, HasAFigureOrADashForEveryTensor) {
  write("empty", "");
  EXPECT_EQ(row(inspect({"empty", "--shape", "0,5"}), "--bits 2")[3], "-");
  write("zeros", std::string(400, '\0'));
  EXPECT_EQ(row(inspect({"zeros", "--shape", "100"}), "--bits 2")[7], "1.000000");

  const std::string nan("\0\0\xc0\x7f", 4);
  write("nan", nan);
  EXPECT_EQ(row(inspect({"nan", "--shape", ""}), "--bits 2")[6], "100%");
  write("some", nan + grid(127));  // four groups of 32, the first poisoned
  const auto some =
      row(inspect({"some", "--shape", "128", "--group", "32"}), "--bits 2 --group 32");
  ASSERT_EQ(some.size(), 10u);
  EXPECT_EQ(some[3], "0");
  EXPECT_EQ(some[6], "25%");
  EXPECT_EQ(some[7], "1.000000");
}

}  // namespace
}  // namespace furl::test
