// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

#include "numbers.hpp"

#include <charconv>
#include <system_error>

namespace furl::cli {
namespace {

template <class T>
std::optional<T> parse(std::string_view text, int base) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, base);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

bool enclosed(std::string_view text, char open, char close) {
  return text.size() >= 2 && text.front() == open && text.back() == close;
}

}  // namespace

std::optional<i64> parse_i64(std::string_view text) {
  return parse<i64>(text, 10);
}

std::optional<u64> parse_u64(std::string_view text) {
  const bool hexadecimal = text.substr(0, 2) == "0x" || text.substr(0, 2) == "0X";
  return hexadecimal ? parse<u64>(text.substr(2), 16) : parse<u64>(text, 10);
}

std::optional<std::vector<i64>> parse_sizes(std::string_view text) {
  text = trimmed(text);
  if (enclosed(text, '[', ']') || enclosed(text, '(', ')')) {
    text = trimmed(text.substr(1, text.size() - 2));
    if (text.size() > 1 && text.back() == ',') text.remove_suffix(1);
  }
  std::vector<i64> sizes;
  while (!text.empty()) {
    const auto comma = text.find(',');
    const auto size = parse_i64(trimmed(text.substr(0, comma)));
    if (!size) return std::nullopt;
    sizes.push_back(*size);
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
    if (text.empty()) return std::nullopt;  // a comma with nothing behind it
  }
  return sizes;
}

}  // namespace furl::cli
