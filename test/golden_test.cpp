// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// The contract, byte by byte: data/golden.json was made by an independent implementation of it,
// data/rotated.json by the reference, to be kept when that changes.

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "support/backend.hpp"
#include "support/buffer.hpp"

namespace furl::test {
namespace {

using json = nlohmann::json;

const json& golden() {
  static const json data = json::parse(std::ifstream(FURL_TEST_DATA "/golden.json"));
  return data;
}

const json& rotated_vectors() {
  static const json data = json::parse(std::ifstream(FURL_TEST_DATA "/rotated.json"));
  return data;
}

std::vector<u8> bytes_from(const json& hex) {
  const auto text = hex.get<std::string>();
  std::vector<u8> out(text.size() / 2);
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<u8>(std::stoul(text.substr(2 * i, 2), nullptr, 16));
  return out;
}

u32 word_from(const std::string& hex) {
  return static_cast<u32>(std::stoul(hex, nullptr, 16));
}

std::vector<u32> words_from(const json& list) {
  std::istringstream text(list.get<std::string>());
  std::vector<u32> out;
  for (std::string word; text >> word;) out.push_back(word_from(word));
  return out;
}

u64 number_from(const json& decimal) {
  return std::stoull(decimal.get<std::string>());
}

dtype type_from(const std::string& text) {
  return text == "f32" ? dtype::f32 : text == "f16" ? dtype::f16 : dtype::bf16;
}

extents extents_from(const json& list) {
  const auto sizes = list.get<std::vector<i64>>();
  return {sizes.data(), static_cast<int>(sizes.size())};
}

codec codec_from(const json& c) {
  codec out;
  out.bits = c.value("bits", 0);
  out.group = c.at("group").get<int>();
  out.meta = type_from(c.at("meta").get<std::string>());
  if (c.value("rounding", "stochastic") == "nearest") out.rounding = rounding::nearest;
  if (c.value("rounding", "stochastic") == "dithered") out.rounding = rounding::dithered;
  if (c.value("coding", "min_max") == "rotated") out.coding = coding::rotated;
  if (c.value("coding", "min_max") == "positives") out.coding = coding::positives;
  out.by_lines = c.value("by_lines", false);
  out.window = extents_from(c.at("window"));
  return out;
}

std::vector<u8> widths_from(const json& c) {
  return c.contains("widths") ? c.at("widths").get<std::vector<u8>>() : std::vector<u8>{};
}

result<plan> plan_from(const json& c) {
  if (c.value("kind", "compress") == "codes")
    return plan::make_codes(c.at("bits").get<int>(), extents_from(c.at("shape")));
  if (!c.contains("widths")) return plan::make(codec_from(c), extents_from(c.at("shape")));
  u64 sum = 0;
  for (const u8 width : widths_from(c)) sum += width;
  return plan::make_mixed(codec_from(c), extents_from(c.at("shape")), sum);
}

TEST(Golden, FileIsWhole) {
  EXPECT_EQ(golden().at("format"), "furl golden vectors 1");
  EXPECT_EQ(golden().at("philox").size(), 6u);
  EXPECT_EQ(golden().at("random").size(), 24u);
  EXPECT_EQ(golden().at("convert").size(), 29u);
  EXPECT_EQ(golden().at("rejects").size(), 20u);
  EXPECT_EQ(golden().at("cases").size(), 97u);
}

TEST(Golden, Philox) {
  for (const json& c : golden().at("philox")) {
    const auto counter = words_from(c.at("counter"));
    const auto key = words_from(c.at("key"));
    const philox_block in{{counter[0], counter[1], counter[2], counter[3]}};
    const philox_block out = c.at("rounds") == 7 ? philox4x32<7>(in, key[0], key[1])
                                                 : philox4x32<10>(in, key[0], key[1]);
    const auto expected = words_from(c.at("output"));
    for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(out.word[i], expected[i]) << c;
  }
}

TEST(Golden, RandomBits) {
  for (const json& c : golden().at("random")) {
    const random_key key{number_from(c.at("seed")), number_from(c.at("offset"))};
    EXPECT_EQ(random_bits(number_from(c.at("index")), key), c.at("u").get<u32>()) << c;
  }
}

TEST(Golden, Conversions) {
  for (const json& c : golden().at("convert")) {
    const float x = float_of(word_from(c.at("f32")));
    const auto expected = [&](const char* field) { return word_from(c.at(field)); };
    EXPECT_EQ(bf16_nearest(x), expected("bf16_nearest")) << c;
    EXPECT_EQ(bf16_down(x), expected("bf16_down")) << c;
    EXPECT_EQ(bf16_up(x), expected("bf16_up")) << c;
    EXPECT_EQ(bf16_saturated(x), expected("bf16_saturated")) << c;
    EXPECT_EQ(f16_nearest(x), expected("f16_nearest")) << c;
    EXPECT_EQ(f16_saturated(x), expected("f16_saturated")) << c;
    EXPECT_EQ(bits_of(saturate_to<float>(x)), expected("f32_out")) << c;
  }
}

TEST(Golden, RejectsNameTheArgument) {
  for (const json& c : golden().at("rejects")) {
    if (c.at("kind") == "compress" && c.at("meta") == "f16") {
      codec wrong;
      wrong.meta = dtype::f16;
      EXPECT_STREQ(plan::make(wrong, {8}).status().argument, "codec.meta");
      continue;
    }
    const result<plan> made = plan_from(c);
    EXPECT_FALSE(made) << c;
    EXPECT_EQ(made.status().code, error::out_of_range) << c;
    EXPECT_STRNE(made.status().argument, "") << c;
  }
}

TEST(Golden, Sizes) {
  for (const json& c : golden().at("sizes")) {
    const result<plan> made = plan_from(c);
    ASSERT_TRUE(made) << c << to_string(made.status());
    EXPECT_EQ(made->meta_offset(), c.at("meta_at").get<u64>()) << c;
    EXPECT_EQ(made->lfc_offset(), c.at("lfc_at").get<u64>()) << c;
    EXPECT_EQ(made->size_bytes(), c.at("bytes").get<u64>()) << c;
  }
}

void check_compress_case(backend& engine, const json& c) {
  const result<plan> made = plan_from(c);
  ASSERT_TRUE(made) << to_string(made.status());
  const plan& p = *made;
  EXPECT_EQ(p.meta_offset(), c.at("meta_at").get<u64>());
  EXPECT_EQ(p.lfc_offset(), c.at("lfc_at").get<u64>());
  ASSERT_EQ(p.size_bytes(), c.at("bytes").get<u64>());
  const auto widths = widths_from(c);
  const auto expected = bytes_from(c.at("blob"));

  const guarded_buffer input(bytes_from(c.at("input")));
  const dtype type = type_from(c.at("dtype").get<std::string>());
  guarded_buffer blob(p.size_bytes());
  const random_key key{number_from(c.at("seed")), number_from(c.at("offset"))};
  const status compressed = engine.compress(p, {input.data(), type, p.num_elements()},
                                            {blob.data(), blob.size()}, key, widths);
  ASSERT_TRUE(compressed) << to_string(compressed);
  EXPECT_TRUE(blob.intact());
  EXPECT_EQ(blob.bytes(), expected);

  const maybe_key to_decode = p.needs_key() ? maybe_key(key) : maybe_key();
  const guarded_buffer given(expected);
  for (const auto& [name, hex] : c.at("decoded").items()) {
    const auto values_expected = bytes_from(hex);
    guarded_buffer y(values_expected.size());
    const status s =
        engine.decompress(p, {given.data(), given.size()},
                          {y.data(), type_from(name), p.num_elements()}, widths, to_decode);
    ASSERT_TRUE(s) << to_string(s);
    EXPECT_TRUE(y.intact());
    EXPECT_EQ(y.bytes(), values_expected) << name;
  }
  for (const json& a : c.value("add", json::array())) {
    guarded_buffer y(bytes_from(a.at("before")));
    const dtype out = type_from(a.at("dtype").get<std::string>());
    const status s = engine.decompress_add(p, {given.data(), given.size()},
                                           {y.data(), out, p.num_elements()}, widths, to_decode);
    ASSERT_TRUE(s) << to_string(s);
    EXPECT_TRUE(y.intact());
    EXPECT_EQ(y.bytes(), bytes_from(a.at("after"))) << a.at("dtype");
  }
}

void check_codes_case(backend& engine, const json& c) {
  const result<plan> made = plan_from(c);
  ASSERT_TRUE(made) << to_string(made.status());
  const auto expected = bytes_from(c.at("blob"));
  ASSERT_EQ(made->size_bytes(), expected.size());
  const guarded_buffer codes(bytes_from(c.at("input")));
  guarded_buffer blob(expected.size());
  ASSERT_TRUE(engine.pack(*made, {codes.data(), codes.size()}, {blob.data(), blob.size()}));
  EXPECT_TRUE(blob.intact());
  EXPECT_EQ(blob.bytes(), expected);
  const guarded_buffer given(expected);
  guarded_buffer back(codes.size());
  ASSERT_TRUE(engine.unpack(*made, {given.data(), given.size()}, {back.data(), back.size()}));
  EXPECT_TRUE(back.intact());
  EXPECT_EQ(back.bytes(), bytes_from(c.at("unpacked")));
}

TEST(Golden, Cases) {
  for (const auto& engine : backends()) {
    for (const json& c : golden().at("cases")) {
      SCOPED_TRACE(std::string(engine->name()) + " " + c.at("name").get<std::string>());
      if (c.at("kind").get<std::string>() == "codes") {
        check_codes_case(*engine, c);
      } else {
        check_compress_case(*engine, c);
      }
    }
  }
}

TEST(Golden, FormatVersionTwo) {
  EXPECT_EQ(rotated_vectors().at("cases").size(), 17u);
  for (const auto& engine : backends()) {
    for (const json& c : rotated_vectors().at("cases")) {
      SCOPED_TRACE(std::string(engine->name()) + " " + c.at("name").get<std::string>());
      check_compress_case(*engine, c);
    }
  }
}

}  // namespace
}  // namespace furl::test
