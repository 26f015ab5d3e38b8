// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// The golden vectors through files: what the tool writes is the blob of the contract, no more, on
// every device that is in the build.

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli_device_test.hpp"

namespace furl::test {
namespace {

using json = nlohmann::json;
using texts = std::vector<std::string>;

const json& golden() {
  static const json data = json::parse(std::ifstream(FURL_TEST_DATA "/golden.json"));
  return data;
}

const json& keyed_golden() {
  static const json data = json::parse(std::ifstream(FURL_TEST_DATA "/rotated.json"));
  return data;
}

std::string bytes_from(const json& hex) {
  const auto text = hex.get<std::string>();
  std::string out(text.size() / 2, '\0');
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<char>(std::stoul(text.substr(2 * i, 2), nullptr, 16));
  return out;
}

std::string sizes_from(const json& list) {
  std::string text;
  for (const json& size : list) text += (text.empty() ? "" : ",") + size.dump();
  return text;
}

texts operator+(texts a, const texts& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

class cli_golden : public cli_device_test {
 protected:
  /// The options that say what a case's blob is, and where it is made.
  texts codec_of(const json& c) const {
    texts list = {"--shape=" + sizes_from(c.at("shape")), "--device", GetParam()};
    if (c.contains("bits")) list = list + texts{"--bits", c.at("bits").dump()};
    if (c.at("kind") == "codes") return list;
    if (c.contains("widths")) {
      std::string widths;
      for (const json& width : c.at("widths")) widths += static_cast<char>(width.get<int>());
      write("widths", widths);
      list = list + texts{"--widths", "widths"};
    }
    const std::string window = sizes_from(c.at("window"));
    if (c.value("coding", "min_max") == "rotated") list = list + texts{"--coding", "rotated"};
    return list + texts{"--group",  c.at("group").dump(),
                        "--meta",   c.at("meta").get<std::string>(),
                        "--window", window.empty() ? "none" : window};
  }

  void succeed(const texts& command) const {
    const outcome done = run(command);
    EXPECT_EQ(done.status, 0) << done.err;
    EXPECT_EQ(done.out + done.err, "");
  }

  /// The options with which a blob is decompressed that needs its key.
  static texts key_of(const json& c) {
    return {"--rounding", c.at("rounding"), "--seed", c.at("seed"), "--offset", c.at("offset")};
  }

  /// restoring : options of decompress and decompress-add alone.
  void check_compress(const json& c, const texts& restoring = {}) const {
    const texts codec = codec_of(c);
    write("x", bytes_from(c.at("input")));
    succeed(texts{"compress", "--in", "x", "--out", "blob", "--dtype", c.at("dtype")} + key_of(c) +
            codec);
    EXPECT_EQ(read("blob"), bytes_from(c.at("blob")));
    write("given", bytes_from(c.at("blob")));
    for (const auto& [type, hex] : c.at("decoded").items()) {
      succeed(texts{"decompress", "--threads", "2"} + codec + restoring +
              texts{"--in", "given", "--out", "y", "--out-dtype", type});
      EXPECT_EQ(read("y"), bytes_from(hex)) << type;
    }
    for (const json& a : c.value("add", json::array())) {
      write("y", bytes_from(a.at("before")));
      succeed(
          texts{"decompress-add", "--in", "given", "--inout", "y", "--out-dtype", a.at("dtype")} +
          codec + restoring);
      EXPECT_EQ(read("y"), bytes_from(a.at("after"))) << a.at("dtype");
    }
  }

  void check_codes(const json& c) const {
    write("codes", bytes_from(c.at("input")));
    write("given", bytes_from(c.at("blob")));
    succeed(texts{"pack", "--in", "codes", "--out", "blob"} + codec_of(c));
    EXPECT_EQ(read("blob"), bytes_from(c.at("blob")));
    succeed(texts{"unpack", "--in", "given", "--out", "back"} + codec_of(c));
    EXPECT_EQ(read("back"), bytes_from(c.at("unpacked")));
  }
};

TEST_P(cli_golden, Cases) {
  for (const json& c : golden().at("cases")) {
    SCOPED_TRACE(c.at("name").get<std::string>());
    c.at("kind") == "codes" ? check_codes(c) : check_compress(c);
  }
}

TEST_P(cli_golden, CasesThatNeedTheirKey) {
  for (const json& c : keyed_golden().at("cases")) {
    SCOPED_TRACE(c.at("name").get<std::string>());
    // The program has no options for these.
    if (c.at("coding") == "positives" || c.value("by_lines", false)) continue;
    check_compress(c, key_of(c));
  }
}

TEST_P(cli_golden, RejectsLeaveNoFile) {
  write("x", std::string(64, '\0'));
  for (const json& c : golden().at("rejects")) {
    const bool codes = c.at("kind") == "codes";
    for (const std::string command : {codes ? "pack" : "compress", codes ? "unpack" : "decompress"})
      expect_failure(texts{command, "--in", "x", "--out", "y"} + codec_of(c), 2, {" is "});
    EXPECT_EQ(files(), texts{"x"});
  }
}

TEST_P(cli_golden, SizesTooLargeForMemoryAreFilesOfTheWrongSize) {
  write("x", "");
  for (const json& c : golden().at("sizes")) {
    if (c.at("bytes") == 0) continue;
    json described = c;
    described["kind"] = "compress";
    expect_failure(texts{"decompress", "--in", "x", "--out", "y"} + codec_of(described), 1,
                   {"x: has 0 bytes", "needs " + c.at("bytes").dump() + " bytes"});
    EXPECT_EQ(files(), texts{"x"});
  }
}

FURL_ON_EVERY_DEVICE(cli_golden);

}  // namespace
}  // namespace furl::test
