// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

#include "settings.hpp"

#include <limits>
#include <utility>
#include <vector>

#include "failure.hpp"
#include "numbers.hpp"

namespace furl::cli {
namespace {

failure bad_value(const std::string& option, const std::string& value, const std::string& limit) {
  return bad_usage(option + " '" + value + "': " + limit);
}

int int_from(const arguments& given, const std::string& option, int otherwise) {
  if (!given.has(option)) return otherwise;
  const auto value = parse_i64(given[option]);
  if (!value || *value < std::numeric_limits<int>::min() ||
      *value > std::numeric_limits<int>::max())
    throw bad_value(option, given[option], "must be a whole number in range");
  return static_cast<int>(*value);
}

u64 u64_from(const arguments& given, const std::string& option) {
  if (!given.has(option)) return 0;
  const auto value = parse_u64(given[option]);
  if (!value)
    throw bad_value(option, given[option],
                    "must be a whole number of 0..2^64-1, decimal or hexadecimal after 0x");
  return *value;
}

template <class T>
using words = std::vector<std::pair<std::string, T>>;

template <class T>
T word_from(const arguments& given, const std::string& option, const words<T>& known, T otherwise) {
  if (!given.has(option)) return otherwise;
  std::string all;
  for (const auto& [word, value] : known) {
    if (given[option] == word) return value;
    all += (all.empty() ? "" : ", ") + word;
  }
  throw bad_value(option, given[option], "must be one of " + all);
}

dtype type_from(const arguments& given, const std::string& option, dtype otherwise) {
  return word_from<dtype>(
      given, option, {{"f32", dtype::f32}, {"f16", dtype::f16}, {"bf16", dtype::bf16}}, otherwise);
}

extents extents_from(const arguments& given, const std::string& option, const std::string& none) {
  if (!given.has(option) || given[option] == none) return {};
  const auto sizes = parse_sizes(given[option]);
  if (!sizes)
    throw bad_value(option, given[option],
                    "must be whole numbers below 2^63 with commas between them, or " + none);
  return {sizes->data(), static_cast<int>(sizes->size())};
}

int threads_from(const arguments& given) {
  const int threads = int_from(given, "--threads", 1);
  if (threads < 1 || threads > 1024)
    throw bad_value("--threads", given["--threads"], "must be 1..1024");
  return threads;
}

}  // namespace

settings settings_from(const arguments& given) {
  if (given.has("--bits") && given.has("--widths"))
    throw bad_usage("--bits and --widths exclude each other");
  settings s;
  s.codec.bits = int_from(given, "--bits", s.codec.bits);
  s.codec.group = int_from(given, "--group", s.codec.group);
  s.codec.meta = type_from(given, "--meta", s.codec.meta);
  s.codec.rounding = word_from<rounding>(given, "--rounding",
                                         {{"stochastic", rounding::stochastic},
                                          {"nearest", rounding::nearest},
                                          {"dithered", rounding::dithered}},
                                         s.codec.rounding);
  s.codec.coding = word_from<coding>(given, "--coding",
                                     {{"min-max", coding::min_max}, {"rotated", coding::rotated}},
                                     s.codec.coding);
  s.codec.window = extents_from(given, "--window", "none");
  s.shape = extents_from(given, "--shape", "scalar");
  s.in_type = type_from(given, "--dtype", s.in_type);
  s.out_type = type_from(given, "--out-dtype", s.out_type);
  s.key = {u64_from(given, "--seed"), u64_from(given, "--offset")};
  s.has_key = given.has("--seed") || given.has("--offset");
  const int threads = threads_from(given);
  s.engine = make_engine(given.has("--device") ? given["--device"] : "host", threads);
  return s;
}

std::string shape_text(const extents& shape) {
  std::string text;
  for (int d = 0; d < shape.rank && d < max_rank; ++d)
    text += (d == 0 ? "" : ",") + std::to_string(shape[d]);
  return text.empty() ? "scalar" : text;
}

std::string codec_text(const codec& c) {
  const codec usual;
  std::string text = "--bits " + std::to_string(c.bits);
  if (c.group != usual.group) text += " --group " + std::to_string(c.group);
  if (c.meta != usual.meta) text += std::string(" --meta ") + name(c.meta);
  if (c.coding == coding::rotated) text += " --coding rotated";
  if (c.rounding == rounding::nearest) text += " --rounding nearest";
  if (c.rounding == rounding::dithered) text += " --rounding dithered";
  if (c.window.rank != 0) text += " --window " + shape_text(c.window);
  return text;
}

}  // namespace furl::cli
