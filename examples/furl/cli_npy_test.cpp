// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// inspect: .npy files as numpy and others write them, and damaged ones.

#include <string>
#include <utility>
#include <vector>

#include "cli_inspect_runner.hpp"

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

/// The same values as grid(), as bits of a 16-bit type.
std::string half_grid(const std::string& type, std::size_t count) {
  const unsigned f16_bits[] = {0, 0x3c00, 0x4000, 0x4200};
  const unsigned bf16_bits[] = {0, 0x3f80, 0x4000, 0x4040};
  std::string out;
  for (std::size_t i = 0; i < count; ++i) {
    const unsigned bits = (type == "f16" ? f16_bits : bf16_bits)[i % 4];
    out += static_cast<char>(bits & 0xff);
    out += static_cast<char>(bits >> 8);
  }
  return out;
}

std::string quoted(const std::string& descr) {
  return "'" + descr + "'";
}

class cli_npy : public cli_inspect {
 protected:
  /// That x.npy is read as the 1024 values of a grid: any other values have errors in 2 bits.
  void expect_grid(const std::vector<std::string>& options, const std::string& type,
                   const std::string& shape = "1024") const {
    std::vector<std::string> arguments = {"x.npy"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const std::string table = inspect(arguments);
    EXPECT_EQ(table.rfind(type + ", shape " + shape + ", elements 1024,", 0), 0u) << table;
    const auto exact = row(table, "--bits 2");
    ASSERT_EQ(exact.size(), 10u) << table;
    EXPECT_EQ(std::vector<std::string>(exact.begin() + 3, exact.begin() + 8),
              (std::vector<std::string>{"0", "0", "0", "0%", "1.000000"}));
  }
};

TEST_F(cli_npy, ReadsEveryVersionOfTheFormat) {
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

TEST_F(cli_npy, ReadsEverySpellingOfAType) {
  const auto expect_exact = [&](const std::string& descr, const std::string& type,
                                const std::string& values) {
    SCOPED_TRACE(descr + " as " + type);
    write("x.npy", npy(header_of(descr, "False", "(1024,)"), values));
    expect_grid({}, type);
    expect_grid({"--dtype", type}, type);
    const std::string other = type == "f16" ? "bf16" : "f16";
    expect_failure({"inspect", "x.npy", "--dtype", other}, 2,
                   {"--dtype " + other, "x.npy", quoted(descr), "which is " + type});
  };
  for (const char* descr : {"<f4", "=f4", "|f4", "f4", "float32"})
    expect_exact(descr, "f32", grid(1024));
  for (const char* descr : {"<f2", "=f2", "|f2", "f2", "float16"})
    expect_exact(descr, "f16", half_grid("f16", 1024));
  for (const char* descr : {"bfloat16", "<bfloat16"})
    expect_exact(descr, "bf16", half_grid("bf16", 1024));
}

TEST_F(cli_npy, ReadsTwoBytesAsWhatTheyAreSaidToBe) {
  for (const char* descr : {"<i2", "=i2", "|i2", "i2", "int16", "<u2", "=u2", "u2", "uint16", "<V2",
                            "|V2", "=V2", "V2"}) {
    SCOPED_TRACE(descr);
    for (const char* type : {"bf16", "f16"}) {
      write("x.npy", npy(header_of(descr, "False", "(1024,)"), half_grid(type, 1024)));
      expect_grid({"--dtype", type}, type);
    }
    expect_failure({"inspect", "x.npy"}, 2, {"x.npy", quoted(descr), "--dtype bf16 or f16"});
    expect_failure({"inspect", "x.npy", "--dtype=f32"}, 2,
                   {"--dtype f32", "x.npy", quoted(descr), "bf16 or f16"});
  }
}

TEST_F(cli_npy, RefusesTypesByTheirNames) {
  for (const char* descr :
       {"<f8", "|u1", "<i4", "<V4", "<V20", "|O", "f", "", "<", "<<f4", "bf16"}) {
    write("x.npy", npy(header_of(descr, "False", "(2,)"), grid(2)));
    expect_failure({"inspect", "x.npy"}, 1, {"x.npy", quoted(descr), "only f4, f2 and bfloat16"});
    for (const char* type : {"f32", "bf16"})
      expect_failure({"inspect", "x.npy", "--dtype", type}, 2,
                     {std::string("--dtype ") + type, "x.npy", quoted(descr)});
  }
  for (const auto& [descr, type] :
       std::vector<std::pair<std::string, std::string>>{{">f4", "f32"},
                                                        {">f2", "f16"},
                                                        {">bfloat16", "bf16"},
                                                        {">i2", "bf16"},
                                                        {">u2", "f16"}}) {
    write("x.npy", npy(header_of(descr, "False", "(2,)"), grid(2)));
    expect_failure({"inspect", "x.npy"}, 1, {"x.npy", quoted(descr), "big-endian"});
    expect_failure({"inspect", "x.npy", "--dtype", type}, 1,
                   {"x.npy", quoted(descr), "big-endian"});
  }
  write("x.npy", npy(header_of(">f4", "False", "(2,)"), grid(2)));
  expect_failure({"inspect", "x.npy", "--dtype=f16"}, 2, {"--dtype f16", "'>f4'"});
}

TEST_F(cli_npy, ReadsFortranOrderWhereItIsCOrder) {
  for (const char* shape : {"(1024,)", "(1, 1024)", "(1024, 1)", "(1, 1024, 1)"}) {
    write("x.npy", npy(header_of("<f4", "True", shape), grid(1024)));
    const std::string text = inspect({"x.npy"});
    EXPECT_NE(text.find("elements 1024,"), std::string::npos) << shape << "\n" << text;
  }
  for (const char* shape : {"()", "(1,)", "(1, 1)"}) {
    write("x.npy", npy(header_of("<f4", "True", shape), grid(1)));
    EXPECT_NE(inspect({"--in=x.npy"}).find("elements 1,"), std::string::npos) << shape;
  }
  for (const char* shape : {"(0,)", "(0, 5)", "(7, 0, 5)"}) {
    write("x.npy", npy(header_of("<f4", "True", shape), ""));
    EXPECT_NE(inspect({"x.npy"}).find("elements 0,"), std::string::npos) << shape;
  }
  for (const char* shape : {"(2, 2)", "(1, 2, 2)", "(2, 1, 2)"}) {
    write("x.npy", npy(header_of("<f4", "True", shape), grid(4)));
    expect_failure({"inspect", "x.npy"}, 1, {"x.npy", "Fortran order", "ascontiguousarray"});
  }
}

TEST_F(cli_npy, ReadsHeadersOfOtherWriters) {
  for (const char* header : {
           R"({"descr": "<f4", "fortran_order": False, "shape": (2, 512)})",
           "{'shape':(2,512),'fortran_order':False,'descr':'<f4'}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (2L, 512L), }",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 512,)}",
           " {\n 'descr' : '<f4' ,\n 'fortran_order' :\tFalse ,\r\n 'shape' : (\n2,\n512\n) ,\n} ",
       }) {
    SCOPED_TRACE(header);
    for (const int version : {1, 2, 3}) {
      write("x.npy", npy(header, grid(1024), version));
      expect_grid({}, "f32", "2,512");
    }
  }
}

TEST_F(cli_npy, ReadsValuesAtAnOddAddress) {
  std::string header = header_of("<f4", "False", "(1024,)");
  if (header.size() % 2 == 0) header += ' ';
  const std::string start("\x93NUMPY\1\0", 8);
  write("x.npy", start + static_cast<char>(header.size()) + '\0' + header + grid(1024));
  expect_grid({}, "f32");
}

TEST_F(cli_npy, RefusesDamagedHeaders) {
  const auto refused = [&](const std::string& content, const std::string& word) {
    SCOPED_TRACE(content);
    write("x.npy", content);
    expect_failure({"inspect", "x.npy"}, 1, {"x.npy", word});
  };
  for (const char* shape :
       {"(-2,)", "(99999999999999999999,)", "(2 2)", "(,)", "(2,,)", "(L)", "(2LL)", "(1L2,)",
        "(2.,)", "(0x2,)", "[2]", "2", "None", "(2", "((2,))"})
    refused(npy(header_of("<f4", "False", shape), grid(2)), "damaged");
  for (const char* order : {"0", "false", "Falsely", "'False'", ""})
    refused(npy(header_of("<f4", order, "(2,)"), grid(2)), "damaged");
  for (const char* header : {"", "{}", "{'descr': '<f4', 'shape': (2,)}",
                             "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)",
                             "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} {}",
                             "{'descr': '<f4' 'fortran_order': False, 'shape': (2,)}",
                             "{'descr': '<f4',, 'fortran_order': False, 'shape': (2,)}",
                             R"({'descr": '<f4', 'fortran_order': False, 'shape': (2,)})",
                             "{'descr': None, 'fortran_order': False, 'shape': (2,)}",
                             "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'more': 1}"})
    refused(npy(header, grid(2)), "damaged");
  for (const char* descr : {"[('a', '<f4')]", "('<f4', (2,))"})
    refused(npy(std::string("{'descr': ") + descr + ", 'fortran_order': False, 'shape': (1,)}",
                grid(2)),
            "records");
  for (const int version : {0, 4, 255})
    refused(npy(header_of("<f4", "False", "(2,)"), grid(2), version),
            "format " + std::to_string(version));
  std::string minor = npy(header_of("<f4", "False", "(2,)"), grid(2));
  minor[7] = 1;
  refused(minor, "format 1.1");
}

TEST_F(cli_npy, RefusesSizesThatDoNotMatch) {
  const auto refused = [&](const std::string& content, const std::string& word) {
    SCOPED_TRACE(content.size());
    write("x.npy", content);
    expect_failure({"inspect", "x.npy"}, 1, {"x.npy", word});
  };
  for (const int version : {1, 2, 3}) {
    const std::string whole = npy(header_of("<f4", "False", "(2,)"), grid(2), version);
    for (const std::size_t size : {6u, 7u, 8u, 9u, 10u, 11u, 12u, 40u, 127u})
      refused(whole.substr(0, size), "cut off");
    for (std::size_t i = 8; i < (version == 1 ? 10u : 12u); ++i) {
      std::string longer = whole;
      longer[i] = '\xff';
      refused(longer, "cut off");
    }
    refused(whole.substr(0, whole.size() - 1), "7 bytes");
    refused(whole + "x", "9 bytes");
  }
  refused(npy(header_of("<f4", "False", "(4611686018427387904,)"), ""), "2^63");
}

}  // namespace
}  // namespace furl::test
