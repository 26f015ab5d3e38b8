// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Options, exit statuses, and what becomes of files when something goes wrong.

#include <cstdlib>
#include <string>
#include <vector>

#include "cli_runner.hpp"

namespace furl::test {
namespace {

using texts = std::vector<std::string>;

class cli : public cli_test {
 protected:
  cli() { write("x", std::string(40, '\0')); }

  /// compress of ten zeros, and these options.
  static texts compress(const texts& more) {
    texts all = {"compress", "--in", "x", "--out", "y", "--shape", "10"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  void refuse(const texts& more, const texts& words) const {
    expect_failure(compress(more), 2, words);
    EXPECT_EQ(files(), texts{"x"});
  }
  void accept(const texts& command) const {
    const outcome done = run(command);
    EXPECT_EQ(done.status, 0) << done.err;
    EXPECT_EQ(done.out + done.err, "");
  }
};

TEST_F(cli, Help) {
  for (const texts& call : {texts{"help"}, texts{"--help"}, texts{"compress", "-h"}}) {
    const outcome done = run(call);
    EXPECT_EQ(done.status, 0);
    EXPECT_NE(done.out.find("usage"), std::string::npos);
    EXPECT_EQ(done.err, "");
  }
  const outcome nothing = run({});
  EXPECT_EQ(nothing.status, 2);
  EXPECT_TRUE(nothing.one_line());
  EXPECT_NE(nothing.out.find("usage"), std::string::npos);
}

TEST_F(cli, RefusesBadUsage) {
  expect_failure({"fold"}, 2, {"fold", "unknown command"});
  expect_failure({"--in", "x"}, 2, {"no command"});
  expect_failure({"compress", "--in", "x", "--out", "y"}, 2, {"needs --shape"});
  expect_failure({"decompress-add", "--in", "x", "--shape", "1"}, 2, {"needs --inout"});
  expect_failure({"pack", "--in", "x", "--out", "y", "--shape", "40"}, 2, {"needs --bits"});
  expect_failure({"pack", "--in", "x", "--out", "y", "--shape", "40", "--bits", "2", "--group=32"},
                 2, {"--group", "pack"});
  refuse({"--colour", "red"}, {"--colour", "unknown option"});
  refuse({"--bits", "2", "--bits=3"}, {"--bits", "more than once"});
  refuse({"--bits"}, {"--bits", "needs a value"});
  refuse({"--bits", "--group", "32"}, {"--bits", "needs a value"});
  refuse({"z"}, {"z", "unexpected"});
  refuse({"a\nb"}, {"a?b"});
}

TEST_F(cli, RefusesBadValuesAndNamesThem) {
  for (const std::string value : {"two", "", "2x", "99999999999", "2.0", " 2"})
    refuse({"--bits", value}, {"--bits '" + value + "'"});
  for (const std::string value : {"-1", "18446744073709551616", "0x10000000000000000", "0x", "1e3"})
    for (const std::string option : {"--seed", "--offset"})
      refuse({option, value}, {option, "'" + value + "'"});
  for (const std::string value : {"1,,1", ",", "1,", "(,)", "[1", "9223372036854775808", "a"})
    refuse({"--window", value}, {"--window '" + value + "'"});
  refuse({"--threads", "0"}, {"--threads '0'"});
  refuse({"--dtype", "f64"}, {"--dtype 'f64'", "f32, f16, bf16"});
  refuse({"--rounding", "up"}, {"--rounding 'up'", "stochastic, nearest, dithered"});
  refuse({"--coding", "turned"}, {"--coding 'turned'", "min-max, rotated"});
  refuse({"--coding", "rotated", "--bits", "5"}, {"codec.bits is 5: must be 1..4"});
  refuse({"--coding", "rotated", "--group", "64"}, {"codec.group is 64", "256"});
  refuse({"--coding", "rotated", "--rounding", "nearest"}, {"codec.rounding"});
  refuse({"--meta", "f16"}, {"codec.meta"});
  refuse({"--bits", "9"}, {"codec.bits is 9: must be 1..8"});
  refuse({"--bits", "-1"}, {"codec.bits is -1"});
  refuse({"--device", "tpu"}, {"--device tpu", "host"});
  refuse({"--bits", "2", "--widths", "x"}, {"--bits", "--widths"});
}

TEST_F(cli, TakesOptionsInAnyFormAndOrder) {
  accept(compress({}));
  const std::string expected = read("y");
  EXPECT_EQ(expected.size(), 272u);
  for (const texts& same :
       {texts{"--shape=(10,)", "--in=x", "--bits=2", "compress", "--out=y"},
        texts{"compress", "--group", "256", "--out", "y", "--in", "x", "--shape", " [10] ",
              "--meta=bf16", "--window", "none", "--seed", "0x0", "--device=host"}}) {
    fs::remove(path("y"));
    accept(same);
    EXPECT_EQ(read("y"), expected);
  }
}

// Without it, or with another, what comes out means little.
TEST_F(cli, RotatedAndDitheredCodesNeedTheirKey) {
  std::string ramp;
  for (char c = 1; c <= 40; ++c) ramp += c;  // as f32, ten numbers of 32 binades
  write("x", ramp);
  write("widths", "\2");
  expect_failure(compress({"--coding", "rotated", "--widths", "widths"}), 2, {"codec.coding"});
  for (const texts& codec :
       {texts{"--coding", "rotated", "--bits", "3"}, texts{"--rounding", "dithered"}}) {
    const auto with = [&](texts command, const texts& more) {
      command.insert(command.end(), codec.begin(), codec.end());
      command.insert(command.end(), more.begin(), more.end());
      return command;
    };
    const texts decompress = {"decompress", "--in", "y", "--out", "z", "--shape", "10"};
    const texts add = {"decompress-add", "--in", "y", "--inout", "z", "--shape", "10"};
    accept(with(compress({}), {"--offset", "7"}));
    expect_failure(with(decompress, {}), 2, {"decompress", "--seed", "--offset"});
    EXPECT_FALSE(exists("z"));
    accept(with(decompress, {"--offset", "7"}));
    const std::string right = read("z");
    accept(with(decompress, {"--seed", "0", "--offset", "7"}));
    EXPECT_EQ(read("z"), right);
    accept(with(decompress, {"--seed", "7"}));
    EXPECT_NE(read("z"), right);
    write("z", std::string(40, '\0'));
    expect_failure(with(add, {}), 2, {"decompress-add", "--seed", "--offset"});
    EXPECT_EQ(read("z"), std::string(40, '\0'));
    accept(with(add, {"--offset", "7"}));
    EXPECT_EQ(read("z"), right);
    fs::remove(path("z"));
  }
}

TEST_F(cli, RankZeroAndDimensionZero) {
  write("one", std::string(4, '\0'));
  for (const std::string shape : {"", "scalar", "[]", "()"}) {
    accept({"compress", "--in", "one", "--out", "y", "--shape", shape});
    EXPECT_EQ(read("y").size(), 272u);
    fs::remove(path("y"));
  }
  write("none", "");
  write("widths", "");
  for (const texts& codec : {texts{"--window", "8,8"}, texts{"--widths", "widths"}}) {
    texts call = {"compress", "--in", "none", "--out", "y", "--shape", "0,9223372036854775807"};
    call.insert(call.end(), codec.begin(), codec.end());
    accept(call);
    EXPECT_TRUE(exists("y"));
    EXPECT_EQ(read("y"), "");
    fs::remove(path("y"));
  }
}

TEST_F(cli, FilesOfTheWrongSize) {
  expect_failure({"compress", "--in", "x", "--out", "y", "--shape", "11"}, 1,
                 {"x: has 40 bytes", "11", "44 bytes"});
  expect_failure({"compress", "--in", "x", "--out", "y", "--shape", "10", "--dtype", "f16"}, 1,
                 {"20 bytes"});
  // The bytes of 2^62 elements are 0 modulo 2^64.
  write("none", "");
  expect_failure({"compress", "--in", "none", "--out", "y", "--shape", "4611686018427387904"}, 1,
                 {"none: has 0 bytes", "2^63"});
  expect_failure(compress({"--widths", "x"}), 1, {"x: has 40 bytes", "1 bytes"});
  write("wide", "\x09");
  expect_failure(compress({"--widths", "wide"}), 2, {"--widths", "tile 0 is 9", "1..8"});
  expect_failure({"decompress-add", "--in", "x", "--inout", "x", "--shape", "10"}, 1, {"272"});
  expect_failure({"compress", "--in", "absent", "--out", "y", "--shape", "1"}, 1,
                 {"absent", "No such file"});
  expect_failure({"compress", "--in", "/dev/zero", "--out", "y", "--shape", "10"}, 1,
                 {"/dev/zero: has more bytes", "40 bytes"});
  expect_failure({"compress", "--in", "/dev/null", "--out", "y", "--shape", "10"}, 1,
                 {"/dev/null: has 0 bytes", "40 bytes"});
  expect_failure({"compress", "--in", ".", "--out", "y", "--shape", "1"}, 1, {"directory"});
  EXPECT_EQ(files(), (texts{"none", "wide", "x"}));
}

TEST_F(cli, MemoryThatCannotBeHad) {
  // A file without blocks, larger than an address space: few file systems have it.
  const std::string huge = "/dev/shm/furl-cli-test-" + std::to_string(::getpid());
  std::ofstream(huge, std::ios::binary) << "x";
  std::error_code error;
  fs::resize_file(huge, std::uintmax_t(1) << 50, error);
  const outcome done =
      error ? outcome{}
            : run({"compress", "--in", huge, "--out", "y", "--shape", "281474976710656"});
  fs::remove(huge);
  if (error) GTEST_SKIP() << "no file of 2^50 bytes in /dev/shm";
  EXPECT_EQ(done.status, 1);  // not one line: sanitizers have a word to say, too
  EXPECT_NE(done.err.find("furl: not enough memory for 1125899906842624 bytes\n"),
            std::string::npos)
      << done.err;
  EXPECT_EQ(files(), texts{"x"});
}

TEST_F(cli, OutputsThatCannotBeWritten) {
  texts call = compress({});
  for (const std::string out : {"/dev/full", "absent/y", "."}) {
    call[4] = out;
    expect_failure(call, 1, {out, "cannot be written"});
    EXPECT_EQ(files(), texts{"x"});
  }
  call[4] = "/dev/null";
  accept(call);
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  call[4] = "/dev/stdout";
  EXPECT_EQ(run(call).out.size(), 272u);
  call[4] = "-";
  call[2] = "-";
  EXPECT_EQ(run(call, path("x")).out.size(), 272u);
  EXPECT_EQ(files(), texts{"x"});
}

TEST_F(cli, AFailureKeepsWhatWasThere) {
  write("y", "precious");
  expect_failure({"compress", "--in", "x", "--out", "y", "--shape", "11"}, 1, {"44"});
  expect_failure({"decompress", "--in", "x", "--out", "y", "--shape", "11"}, 1, {"272"});
  expect_failure({"decompress-add", "--in", "x", "--inout", "y", "--shape", "11"}, 1, {"272"});
  expect_failure(compress({"--bits", "0"}), 2, {"codec.bits is 0"});
  EXPECT_EQ(read("y"), "precious");
  EXPECT_EQ(files(), (texts{"x", "y"}));

  accept(compress({}));
  write("sum", "short");
  expect_failure({"decompress-add", "--in", "y", "--inout", "sum", "--shape", "10"}, 1,
                 {"sum: has 5 bytes"});
  EXPECT_EQ(read("sum"), "short");
  EXPECT_EQ(files(), (texts{"sum", "x", "y"}));
}

TEST_F(cli, OutputTakesTheOldOnesPlace) {
  write("real", "old");
  fs::permissions(path("real"), fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("real", path("y"));
  accept(compress({}));
  EXPECT_TRUE(fs::is_symlink(path("y")));
  EXPECT_EQ(read("real").size(), 272u);
  EXPECT_EQ(fs::status(path("real")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  accept({"compress", "--in", "x", "--out", "x", "--shape", "10"});  // onto its own input
  EXPECT_EQ(read("x"), read("real"));
  EXPECT_EQ(files(), (texts{"real", "x", "y"}));
}

#if defined(FURL_TEST_DEVICE)
TEST_F(cli, NoCudaDevice) {
  const char* const variable = "CUDA_VISIBLE_DEVICES";
  const char* const before = std::getenv(variable);
  const std::string value = before != nullptr ? before : "";
  ::setenv(variable, "-1", 1);
  expect_failure(compress({"--device", "cuda"}), 1, {"--device cuda", "no CUDA device"});
  EXPECT_EQ(files(), texts{"x"});
  before != nullptr ? ::setenv(variable, value.c_str(), 1) : ::unsetenv(variable);
}
#else
TEST_F(cli, CudaIsNotInThisBuild) {
  refuse({"--device", "cuda"}, {"--device cuda", "no CUDA support"});
}
#endif

}  // namespace
}  // namespace furl::test
