// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

#include "npy.hpp"

#include <cstring>
#include <string_view>

#include "failure.hpp"
#include "numbers.hpp"

namespace furl::cli {
namespace {

constexpr std::string_view magic = "\x93NUMPY";

/// Reads the one Python dictionary that a header is: {'descr': '<f4', 'fortran_order': False,
/// 'shape': (2, 3), }.
class header_parser {
 public:
  header_parser(std::string_view text, const std::string& path) : rest_(text), path_(path) {}

  npy_header parse() {
    expect('{');
    while (!accept('}')) {
      parse_entry();
      if (accept(',')) continue;
      expect('}');
      break;
    }
    if (!has_descr_ || !has_order_ || !has_shape_) throw damaged();
    if (rest_.find_first_not_of(" \t\r\n") != std::string_view::npos) throw damaged();
    return header_;
  }

 private:
  failure damaged() const { return bad_file(path_, "the .npy header is damaged"); }

  void parse_entry() {
    const std::string key = quoted();
    expect(':');
    if (key == "descr") {
      if (accept('[')) throw bad_file(path_, "holds records, not numbers");
      header_.descr = quoted();
      has_descr_ = true;
    } else if (key == "fortran_order") {
      header_.fortran_order = truth();
      has_order_ = true;
    } else if (key == "shape") {
      header_.shape = sizes();
      has_shape_ = true;
    } else {
      throw damaged();
    }
  }

  void skip_space() {
    const auto next = rest_.find_first_not_of(" \t\r\n");
    rest_.remove_prefix(next == std::string_view::npos ? rest_.size() : next);
  }
  bool accept(char wanted) {
    skip_space();
    if (rest_.empty() || rest_.front() != wanted) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char wanted) {
    if (!accept(wanted)) throw damaged();
  }
  std::string quoted() {
    const char quote = accept('\'') ? '\'' : '"';
    if (quote == '"') expect('"');
    return std::string(until(quote));
  }
  std::string_view until(char end) {
    const auto size = rest_.find(end);
    if (size == std::string_view::npos) throw damaged();
    const std::string_view text = rest_.substr(0, size);
    rest_.remove_prefix(size + 1);
    return text;
  }
  bool truth() {
    skip_space();
    for (const std::string_view word : {"True", "False"}) {
      if (rest_.substr(0, word.size()) != word) continue;
      rest_.remove_prefix(word.size());
      return word == "True";
    }
    throw damaged();
  }
  std::vector<i64> sizes() {
    expect('(');
    std::string text = "(";
    for (const char c : until(')'))
      if (c != 'L') text += c;  // Python 2 wrote long integers as 3L
    const auto list = parse_sizes(text + ')');
    if (!list) throw damaged();
    for (const i64 size : *list)
      if (size < 0) throw damaged();
    return *list;
  }

  std::string_view rest_;
  const std::string& path_;
  npy_header header_;
  bool has_descr_ = false;
  bool has_order_ = false;
  bool has_shape_ = false;
};

}  // namespace

bool is_npy(const buffer& file) {
  return file.size() >= magic.size() && std::memcmp(file.data(), magic.data(), magic.size()) == 0;
}

npy_header read_npy_header(const buffer& file, const std::string& path) {
  const failure cut(bad_file(path, "the .npy header is cut off"));
  if (file.size() < 8) throw cut;
  const int version = file.data()[6];
  if (version < 1 || version > 3)
    throw bad_file(path, ".npy format " + std::to_string(version) + " is not known: 1, 2, 3 are");
  const u64 length_bytes = version == 1 ? 2 : 4;
  const u64 start = 8 + length_bytes;
  if (file.size() < start) throw cut;
  u64 length = 0;
  for (u64 i = 0; i < length_bytes; ++i) length |= u64(file.data()[8 + i]) << (8 * i);
  if (file.size() - start < length) throw cut;
  const auto* const text = reinterpret_cast<const char*>(file.data() + start);
  npy_header header = header_parser({text, static_cast<std::size_t>(length)}, path).parse();
  header.data_offset = start + length;
  return header;
}

dtype npy_dtype(const npy_header& header, std::optional<dtype> given, const std::string& path) {
  const std::string& descr = header.descr;
  const auto agreed = [&](dtype type) {
    if (given && *given != type)
      throw bad_usage("--dtype " + std::string(name(*given)) + ": " + path + " holds " +
                      name(type));
    return type;
  };
  if (descr == "<f4") return agreed(dtype::f32);
  if (descr == "<f2") return agreed(dtype::f16);
  if (descr == "<V2" || descr == "|V2" || descr == "<u2") {
    if (given && size_bytes(*given) == 2) return *given;
    throw bad_usage(path + " holds two-byte values of type '" + descr +
                    "': say what they are with --dtype bf16 or f16");
  }
  if (!descr.empty() && descr[0] == '>')
    throw bad_file(path, "is big-endian ('" + descr + "'): only little-endian can be read");
  throw bad_file(path, "has elements of type '" + descr + "': only f32, f16 and bf16 can be read");
}

}  // namespace furl::cli
