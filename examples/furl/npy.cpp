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
      if (accept('[') || accept('(')) throw bad_file(path_, "holds records, not numbers");
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
    std::vector<i64> list;
    expect('(');
    while (!accept(')')) {
      list.push_back(size());
      if (accept(',')) continue;
      expect(')');
      break;
    }
    return list;
  }
  i64 size() {
    skip_space();
    const std::string_view digits = rest_.substr(0, rest_.find_first_not_of("0123456789"));
    const auto value = parse_i64(digits);
    if (!value) throw damaged();
    rest_.remove_prefix(digits.size());
    if (!rest_.empty() && rest_.front() == 'L') rest_.remove_prefix(1);  // Python 2: 3L
    return *value;
  }

  std::string_view rest_;
  const std::string& path_;
  npy_header header_;
  bool has_descr_ = false;
  bool has_order_ = false;
  bool has_shape_ = false;
};

/// A type that can be read: its name without a byte order, and what its values are.
struct element {
  std::string_view name;
  std::optional<dtype> type;  // none: two bytes that may be the bits of any 16-bit float
};

constexpr element readable[] = {
    {"f4", dtype::f32},        {"float32", dtype::f32}, {"f2", dtype::f16},
    {"float16", dtype::f16},   {"V2", std::nullopt},    {"i2", std::nullopt},
    {"int16", std::nullopt},   {"u2", std::nullopt},    {"uint16", std::nullopt},
    {"bfloat16", dtype::bf16},
};

std::optional<element> find_readable(std::string_view name) {
  for (const element& e : readable)
    if (e.name == name) return e;
  return std::nullopt;
}

failure bad_dtype(dtype given, const std::string& path, const std::string& why) {
  return bad_usage(std::string("--dtype ") + name(given) + ": " + path + " " + why);
}

/// Refuses a --dtype that is not what the file says of itself; the message names both.
void check_agreement(const element& e, dtype given, const std::string& path,
                     const std::string& has) {
  if (e.type && *e.type != given) throw bad_dtype(given, path, has + ", which is " + name(*e.type));
  if (!e.type && size_bytes(given) != 2)
    throw bad_dtype(given, path, has + ", of two bytes: give bf16 or f16");
}

}  // namespace

bool is_npy(const buffer& file) {
  return file.size() >= magic.size() && std::memcmp(file.data(), magic.data(), magic.size()) == 0;
}

npy_header read_npy_header(const buffer& file, const std::string& path) {
  const failure cut(bad_file(path, "the .npy header is cut off"));
  if (file.size() < 8) throw cut;
  const int version = file.data()[6];
  const int minor = file.data()[7];
  if (version < 1 || version > 3 || minor != 0)
    throw bad_file(path, ".npy format " + std::to_string(version) + "." + std::to_string(minor) +
                             " is not known: 1.0, 2.0 and 3.0 are");
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

bool in_c_order(const npy_header& header) {
  if (!header.fortran_order) return true;
  int long_dimensions = 0;
  for (const i64 size : header.shape) {
    if (size == 0) return true;
    if (size > 1) ++long_dimensions;
  }
  return long_dimensions <= 1;
}

dtype npy_dtype(const npy_header& header, std::optional<dtype> given, const std::string& path) {
  std::string_view bare = header.descr;
  const bool big_endian = !bare.empty() && bare[0] == '>';
  // No file says which machine its native order (=) was that of: nearly all are little-endian.
  if (bare.find_first_of("<>=|") == 0) bare.remove_prefix(1);
  const std::string has = "has elements of type '" + header.descr + "'";

  const auto e = find_readable(bare);
  if (!e) {
    const std::string why =
        has + ": only f4, f2 and bfloat16 can be read, and i2, u2 and V2 with --dtype bf16 or f16";
    throw given ? bad_dtype(*given, path, why) : bad_file(path, why);
  }
  if (given) check_agreement(*e, *given, path, has);
  if (big_endian) throw bad_file(path, has + ", big-endian: only little-endian can be read");
  if (!given && !e->type)
    throw bad_usage(path + ": " + has + ": say what they are with --dtype bf16 or f16");
  return given ? *given : *e->type;
}

}  // namespace furl::cli
