// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// inspect: .npy files as numpy writes them, damaged ones, and what the table says.

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "cli_device_test.hpp"

namespace furl::test {
namespace {

std::string header_of(const std::string& descr, const std::string& order,
                      const std::string& shape) {
  return "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }";
}

/// A file as numpy.save writes it: the header ends at a multiple of 64 bytes.
std::string npy(std::string header, const std::string& values, int version = 1) {
  const std::size_t start = version == 1 ? 10 : 12;
  while ((start + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::string file = "\x93NUMPY";
  file += static_cast<char>(version);
  file += '\0';
  for (std::size_t i = 0; i < start - 8; ++i)
    file += static_cast<char>((header.size() >> (8 * i)) & 0xff);
  return file + header + values;
}

std::string floats(const std::vector<float>& values) {
  std::string out(values.size() * sizeof(float), '\0');
  if (!values.empty()) std::memcpy(out.data(), values.data(), out.size());
  return out;
}

/// 0, 1, 2, 3, 0, ...: exact in 2 bits.
std::string grid(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 4);
  return floats(values);
}

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
  EXPECT_NE(table.find("--bits 2 --window 1,8,1"), std::string::npos) << table;
  EXPECT_EQ(table, figures("host"));
}

FURL_ON_EVERY_DEVICE(cli_inspect_device);

class cli_inspect : public cli_test {
 protected:
  std::string inspect(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "inspect");
    const outcome done = run(arguments);
    EXPECT_EQ(done.status, 0) << done.err;
    EXPECT_EQ(done.err, "");
    EXPECT_EQ(done.out.find("nan"), std::string::npos) << done.out;
    return done.out;
  }

  /// The words of the table's row for a codec.
  static std::vector<std::string> row(const std::string& table, const std::string& codec) {
    const auto at = table.find("\n" + codec + "  ");
    if (at == std::string::npos) return {};
    std::istringstream line(
        table.substr(at + 1 + codec.size(), table.find('\n', at + 1) - at - 1 - codec.size()));
    return {std::istream_iterator<std::string>(line), {}};
  }
};

TEST_F(cli_inspect, ReadsEveryVersionOfTheFormat) {
  for (const int version : {1, 2, 3}) {
    write("x.npy", npy(header_of("<f4", "False", "(2, 512)"), grid(1024), version));
    const std::string table = inspect({"x.npy"});
    EXPECT_EQ(table.rfind("f32, shape 2,512, elements 1024, bytes 4096\n", 0), 0u) << table;
    for (const char* codec : {"--bits 8", "--bits 4", "--bits 3", "--bits 2", "--bits 1",
                              "--bits 2 --meta f32", "--bits 2 --window 1,8"})
      EXPECT_EQ(row(table, codec).size(), 10u) << codec << "\n" << table;
    EXPECT_NE(table.find("memcpy"), std::string::npos);
    const auto exact = row(table, "--bits 2");
    ASSERT_EQ(exact.size(), 10u);
    EXPECT_EQ(std::vector<std::string>(exact.begin(), exact.begin() + 8),
              (std::vector<std::string>{"272", "15.06", "2.125", "0", "0", "0", "0%", "1.000000"}));
  }
}

TEST_F(cli_inspect, ReadsEveryType) {
  write("h.npy", npy(header_of("<f2", "False", "(3,)"), std::string(6, '\0')));
  EXPECT_NE(inspect({"h.npy"}).find("f16, shape 3,"), std::string::npos);
  for (const char* descr : {"<V2", "|V2", "<u2"}) {
    write("b.npy", npy(header_of(descr, "False", "(3,)"), std::string(6, '\0')));
    EXPECT_NE(inspect({"--dtype", "bf16", "b.npy"}).find("bf16, shape 3,"), std::string::npos);
    expect_failure({"inspect", "b.npy"}, 2, {"b.npy", descr, "--dtype bf16"});
    expect_failure({"inspect", "b.npy", "--dtype=f32"}, 2, {"b.npy", "--dtype"});
  }
  write("s.npy", npy(header_of("<f4", "True", "()"), grid(1)));
  EXPECT_NE(inspect({"--in=s.npy"}).find("shape scalar, elements 1,"), std::string::npos);
  expect_failure({"inspect", "s.npy", "--dtype", "f16"}, 2, {"--dtype f16", "f32"});
}

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

TEST_F(cli_inspect, RefusesWhatItCannotRead) {
  const auto refused = [&](const std::string& content, const std::string& word) {
    write("x.npy", content);
    expect_failure({"inspect", "x.npy"}, 1, {"x.npy", word});
  };
  refused(npy(header_of(">f4", "False", "(2,)"), grid(2)), "big-endian");
  refused(npy(header_of("<f8", "False", "(1,)"), grid(2)), "<f8");
  refused(npy(header_of("<f4", "True", "(2, 2)"), grid(4)), "Fortran");
  refused(npy(header_of("<f4", "False", "(-2,)"), grid(2)), "damaged");
  refused(npy(header_of("<f4", "False", "(99999999999999999999,)"), grid(2)), "damaged");
  refused(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", grid(1)),
          "records");
  refused(npy("{'descr': '<f4', 'shape': (1,)}", grid(1)), "damaged");
  refused(npy(header_of("<f4", "False", "(2,)"), grid(2), 4), "format 4");
  refused(npy(header_of("<f4", "False", "(4611686018427387904,)"), ""), "2^63");
  refused("", ".npy");

  const std::string whole = npy(header_of("<f4", "False", "(2,)"), grid(2));
  for (const std::size_t size : {6u, 7u, 9u, 10u, 40u, 127u}) refused(whole.substr(0, size), "cut");
  refused(whole.substr(0, whole.size() - 1), "7 bytes");
  refused(whole + "x", "9 bytes");
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
