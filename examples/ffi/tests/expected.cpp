// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// What the headers make of a few tensors, for the tests of other languages to compare with:
// expected DIRECTORY writes NAME.x, NAME.plan, NAME.blob and NAME.y, of x's type, for each case,
// and cases.json, which says what the cases are.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "furl/furl.hpp"

namespace {

constexpr furl::random_key key{11, 12};

struct coded_case {
  std::string name;
  furl::codec codec;
  furl::extents shape;
  furl::dtype type = furl::dtype::f32;
};

std::vector<coded_case> cases() {
  furl::codec means;
  means.window = {1, 1, 8, 8};
  means.meta = furl::dtype::f32;
  furl::codec nearest;
  nearest.bits = 5;
  nearest.group = 64;
  nearest.rounding = furl::rounding::nearest;
  furl::codec rotated;
  rotated.coding = furl::coding::rotated;
  rotated.bits = 3;
  furl::codec lines;
  lines.rounding = furl::rounding::dithered;
  lines.by_lines = true;
  furl::codec positives;
  positives.coding = furl::coding::positives;
  return {{"defaults", {}, {3, 5, 7, 11}},
          {"means", means, {2, 3, 20, 20}},
          {"nearest", nearest, {4099}, furl::dtype::f16},
          {"rotated", rotated, {7, 333}, furl::dtype::bf16},
          {"lines", lines, {13, 100}},
          {"positives", positives, {2, 3000}},
          {"empty", {}, {4, 0}}};
}

/// Numbers from -4 to 4: f32, or f16 and bf16 by their bits.
std::vector<unsigned char> make_input(furl::i64 count, furl::dtype type) {
  std::mt19937 random(7);
  std::vector<unsigned char> x(std::size_t(count) * std::size_t(furl::size_bytes(type)));
  for (std::size_t i = 0; i < std::size_t(count); ++i) {
    const auto bits = std::uint32_t(random());
    const float f32 = float(bits >> 8) / 2097152.0f - 4.0f;
    const int fraction_bits = type == furl::dtype::f16 ? 10 : 7;
    const int bias = type == furl::dtype::f16 ? 15 : 127;
    const auto exponent = std::uint32_t(bias - 4) + (bits >> 16) % 6;
    const auto f16 = std::uint16_t((bits & 0x8000) | exponent << fraction_bits |
                                   (bits & ((1u << fraction_bits) - 1)));
    if (type == furl::dtype::f32) std::memcpy(&x[4 * i], &f32, 4);
    if (type != furl::dtype::f32) std::memcpy(&x[2 * i], &f16, 2);
  }
  return x;
}

class writer {
 public:
  explicit writer(std::string directory) : directory_(std::move(directory)) {}

  void write(const std::string& name, const void* data, std::size_t size) {
    std::ofstream file(directory_ + "/" + name, std::ios::binary);
    file.write(static_cast<const char*>(data), std::streamsize(size));
    ok_ = file.flush().good() && ok_;
  }

  /// The four files of a case, and its line of cases.json.
  void write(const std::string& name, const std::string& kind, const furl::plan& p,
             const std::vector<unsigned char>& x, const std::vector<unsigned char>& blob,
             const std::vector<unsigned char>& y, furl::dtype type) {
    const furl::plan_bytes plan = furl::serialize(p);
    write(name + ".plan", plan.data, sizeof plan.data);
    write(name + ".x", x.data(), x.size());
    write(name + ".blob", blob.data(), blob.size());
    write(name + ".y", y.data(), y.size());
    const furl::codec& c = p.codec();
    json_ += (json_.empty() ? "[" : ",\n ") + ("{\"name\": \"" + name) + "\", \"kind\": \"" + kind +
             "\", \"dtype\": \"" + furl::name(type) + "\", \"shape\": " + list(p.shape()) +
             ", \"codec\": {\"bits\": " + std::to_string(c.bits) +
             ", \"group\": " + std::to_string(c.group) +
             ", \"meta\": " + std::to_string(int(c.meta)) +
             ", \"rounding\": " + std::to_string(int(c.rounding)) +
             ", \"coding\": " + std::to_string(int(c.coding)) +
             ", \"by_lines\": " + (c.by_lines ? "true" : "false") +
             ", \"window\": " + list(c.window) + "}}";
  }

  bool finish() {
    json_ += "]\n";
    write("cases.json", json_.data(), json_.size());
    return ok_;
  }

 private:
  static std::string list(const furl::extents& e) {
    std::string out = "[";
    for (int d = 0; d < e.rank; ++d) out += (d > 0 ? ", " : "") + std::to_string(e[d]);
    return out + "]";
  }

  const std::string directory_;
  std::string json_;
  bool ok_ = true;
};

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return 2;
  writer out(arguments[1]);
  bool ok = true;
  for (const coded_case& c : cases()) {
    const auto p = furl::plan::make(c.codec, c.shape);
    if (!p) return std::fprintf(stderr, "%s\n", furl::to_string(p.status()).c_str()), 1;
    const auto x = make_input(p->num_elements(), c.type);
    std::vector<unsigned char> blob(p->size_bytes());
    std::vector<unsigned char> y(x.size());
    ok = furl::host::compress(*p, {x.data(), c.type, p->num_elements()}, blob, key).ok() && ok;
    ok = furl::host::decompress(*p, blob, {y.data(), c.type, p->num_elements()}, key).ok() && ok;
    out.write(c.name, "coded", *p, x, blob, y, c.type);
  }
  const auto p = furl::plan::make_codes(3, {50, 41});
  std::vector<unsigned char> codes(2050);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<unsigned char>(i % 8);
  std::vector<unsigned char> blob(p->size_bytes());
  ok = furl::host::pack(*p, codes, blob).ok() && ok;
  out.write("codes", "codes", *p, codes, blob, codes, furl::dtype::f32);
  return out.finish() && ok ? 0 : 1;
}
