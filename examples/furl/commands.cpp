// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

#include "commands.hpp"

#include "buffer.hpp"
#include "failure.hpp"
#include "files.hpp"
#include "settings.hpp"

namespace furl::cli {
namespace {

/// A plan, and the widths that go with it if it is a mixed one.
struct planned {
  furl::plan plan;
  buffer widths;

  const_bytes widths_view() const {
    return plan.kind() == plan_kind::mixed ? const_bytes{widths.data(), widths.size()}
                                           : const_bytes{};
  }
};

planned make_mixed(const settings& s, const std::string& path) {
  codec narrow = s.codec;
  narrow.bits = 1;  // what is refused even so is refused for any widths
  const auto tiles = u64(require(plan::make(narrow, s.shape)).num_tiles());
  planned made;
  made.widths = read_exactly(path, tiles, "a width per tile of shape " + shape_text(s.shape));
  u64 sum = 0;
  for (u64 t = 0; t < tiles; ++t) {
    const int width = made.widths.data()[t];
    if (width < 1 || width > max_bits)
      throw bad_usage("--widths " + path + ": tile " + std::to_string(t) + " is " +
                      std::to_string(width) + ": must be 1..8");
    sum += u64(width);
  }
  made.plan = require(plan::make_mixed(s.codec, s.shape, sum));
  return made;
}

planned make_plan(const settings& s, const arguments& given) {
  if (given.has("--widths")) return make_mixed(s, given["--widths"]);
  return {require(plan::make(s.codec, s.shape)), {}};
}

/// A plan whose blob can be decompressed, and with the right key if it needs one.
planned make_plan_to_restore(const settings& s, const arguments& given) {
  planned made = make_plan(s, given);
  if (made.plan.needs_key() && !s.has_key)
    throw bad_usage(given.command() +
                    " of rotated or dithered codes needs the --seed or --offset that compress had "
                    "(--seed 0 if none)");
  return made;
}

buffer read_blob(const std::string& path, const plan& p) {
  return read_exactly(path, p.size_bytes(), "the blob of this plan");
}

bytes view(buffer& b) {
  return {b.data(), b.size()};
}
const_bytes view(const buffer& b) {
  return {b.data(), b.size()};
}

}  // namespace

u64 bytes_of(i64 num_elements, int element_bytes) {
  constexpr u64 limit = u64(1) << 63;
  const auto count = u64(num_elements);
  return count >= limit / u64(element_bytes) ? limit : count * u64(element_bytes);
}

std::string tensor_text(dtype type, const extents& shape) {
  return std::string(name(type)) + " of shape " + shape_text(shape);
}

void compress(const arguments& given) {
  const settings s = settings_from(given);
  const planned made = make_plan(s, given);
  const i64 count = made.plan.num_elements();
  const buffer x = read_exactly(given["--in"], bytes_of(count, size_bytes(s.in_type)),
                                tensor_text(s.in_type, s.shape));
  buffer blob(made.plan.size_bytes());
  require(s.engine->compress(made.plan, {x.data(), s.in_type, count}, view(blob), s.key,
                             made.widths_view()));
  write_file(given["--out"], blob);
}

void decompress(const arguments& given) {
  const settings s = settings_from(given);
  const planned made = make_plan_to_restore(s, given);
  const i64 count = made.plan.num_elements();
  const buffer blob = read_blob(given["--in"], made.plan);
  buffer y(bytes_of(count, size_bytes(s.out_type)));
  require(s.engine->decompress(made.plan, view(blob), {y.data(), s.out_type, count}, s.key,
                               made.widths_view()));
  write_file(given["--out"], y);
}

void decompress_add(const arguments& given) {
  const settings s = settings_from(given);
  const planned made = make_plan_to_restore(s, given);
  const i64 count = made.plan.num_elements();
  const buffer blob = read_blob(given["--in"], made.plan);
  buffer y = read_exactly(given["--inout"], bytes_of(count, size_bytes(s.out_type)),
                          tensor_text(s.out_type, s.shape));
  require(s.engine->decompress_add(made.plan, view(blob), {y.data(), s.out_type, count}, s.key,
                                   made.widths_view()));
  write_file(given["--inout"], y);
}

void pack(const arguments& given) {
  const settings s = settings_from(given);
  const plan p = require(plan::make_codes(s.codec.bits, s.shape));
  const buffer codes = read_exactly(given["--in"], u64(p.num_elements()),
                                    "a byte per code of shape " + shape_text(s.shape));
  buffer blob(p.size_bytes());
  require(s.engine->pack(p, view(codes), view(blob)));
  write_file(given["--out"], blob);
}

void unpack(const arguments& given) {
  const settings s = settings_from(given);
  const plan p = require(plan::make_codes(s.codec.bits, s.shape));
  const buffer blob = read_blob(given["--in"], p);
  buffer codes(u64(p.num_elements()));
  require(s.engine->unpack(p, view(blob), view(codes)));
  write_file(given["--out"], codes);
}

}  // namespace furl::cli
