// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

#include "support/run.hpp"

#include "support/inputs.hpp"

namespace furl::test {
namespace {

/// Runs call(tensor, blob) and checks what holds of every call. The buffer that is `written` is
/// returned, the other must not change.
template <class Call>
std::vector<u8> checked(guarded_buffer& written, const guarded_buffer& read, const Call& call) {
  const auto before = read.bytes();
  const status s = call();
  EXPECT_TRUE(s) << to_string(s);
  EXPECT_TRUE(written.intact()) << "bytes outside the output were written";
  EXPECT_TRUE(read.intact()) << "bytes around the input were written";
  EXPECT_EQ(read.bytes(), before) << "the input was written";
  return written.bytes();
}

std::size_t tensor_bytes(const plan& p, dtype type) {
  return static_cast<std::size_t>(p.num_elements()) * static_cast<std::size_t>(size_bytes(type));
}

const_bytes view(const guarded_buffer& b) {
  return {b.data(), b.size()};
}
bytes view(guarded_buffer& b) {
  return {b.data(), b.size()};
}

}  // namespace

codec rotated_codec(int bits, const extents& window) {
  codec c;
  c.bits = bits;
  c.coding = coding::rotated;
  c.window = window;
  return c;
}

codec positives_codec(int bits) {
  codec c;
  c.bits = bits;
  c.coding = coding::positives;
  return c;
}

std::vector<u8> normal_input(i64 n, dtype type, u32 seed) {
  return reference::from_floats(normal_floats(static_cast<std::size_t>(n), seed), type);
}

plan make_plan(const codec& c, const extents& shape) {
  const result<plan> made = plan::make(c, shape);
  EXPECT_TRUE(made) << to_string(made.status());
  return *made;
}

plan make_plan(const reference::problem& p) {
  if (p.widths.empty()) return make_plan(p.codec, p.shape);
  u64 sum = 0;
  for (const u8 width : p.widths) sum += width;
  const result<plan> made = plan::make_mixed(p.codec, p.shape, sum);
  EXPECT_TRUE(made) << to_string(made.status());
  return *made;
}

std::vector<u8> compress(backend& engine, const plan& p, const std::vector<u8>& x, dtype type,
                         random_key key, const std::vector<u8>& widths, misalignment where,
                         const given_ranges& ranges, const statistics& given) {
  const guarded_buffer input(x, where.bytes);
  guarded_buffer blob(p.size_bytes());
  return checked(blob, input, [&] {
    return engine.compress(p, {input.data(), type, p.num_elements()}, view(blob), key, widths,
                           ranges, given);
  });
}

std::vector<u8> decompress(backend& engine, const plan& p, const std::vector<u8>& blob, dtype type,
                           const std::vector<u8>& widths, misalignment where, const maybe_key& key,
                           const statistics& given) {
  const guarded_buffer input(blob);
  guarded_buffer y(tensor_bytes(p, type), where.bytes);
  return checked(y, input, [&] {
    return engine.decompress(p, view(input), {y.data(), type, p.num_elements()}, widths, key,
                             given);
  });
}

std::vector<u8> decompress_add(backend& engine, const plan& p, const std::vector<u8>& blob,
                               dtype type, const std::vector<u8>& before,
                               const std::vector<u8>& widths, misalignment where,
                               const maybe_key& key, const statistics& given) {
  const guarded_buffer input(blob);
  guarded_buffer y(before, where.bytes);
  return checked(y, input, [&] {
    return engine.decompress_add(p, view(input), {y.data(), type, p.num_elements()}, widths, key,
                                 given);
  });
}

std::vector<u8> pack(backend& engine, const plan& p, const std::vector<u8>& codes,
                     misalignment where) {
  const guarded_buffer input(codes, where.bytes);
  guarded_buffer blob(p.size_bytes());
  return checked(blob, input, [&] { return engine.pack(p, view(input), view(blob)); });
}

std::vector<u8> unpack(backend& engine, const plan& p, const std::vector<u8>& blob,
                       misalignment where) {
  const guarded_buffer input(blob);
  guarded_buffer codes(static_cast<u64>(p.num_elements()), where.bytes);
  return checked(codes, input, [&] { return engine.unpack(p, view(input), view(codes)); });
}

std::vector<u8> compress(backend& engine, const plan& p, const std::vector<float>& x,
                         random_key key) {
  return compress(engine, p, bytes_of(x), dtype::f32, key);
}

std::vector<float> decompress(backend& engine, const plan& p, const std::vector<u8>& blob,
                              const maybe_key& key) {
  return floats_of(decompress(engine, p, blob, dtype::f32, {}, {}, key));
}

std::vector<float> round_trip(backend& engine, const plan& p, const std::vector<float>& x,
                              random_key key) {
  const maybe_key to_decode = p.needs_key() ? maybe_key(key) : maybe_key();
  return decompress(engine, p, compress(engine, p, x, key), to_decode);
}

lo_step group_of(const plan& p, const std::vector<u8>& blob, i64 group) {
  const dtype meta = p.codec().meta;
  const auto size = static_cast<std::ptrdiff_t>(2 * size_bytes(meta));
  const auto begin = blob.begin() + static_cast<std::ptrdiff_t>(p.meta_offset()) + group * size;
  const auto pair = reference::to_floats({begin, begin + size}, meta);
  return {pair[0], pair[1]};
}

void expect_as_reference(const reference::problem& p, const std::vector<u8>& x, dtype type,
                         random_key key, misalignment where) {
  const auto blob = reference::compress(p, x, type, key);
  const plan made = make_plan(p);
  ASSERT_EQ(made.size_bytes(), blob.size());
  const statistics given = reference::statistics_of(p);
  for (const auto& engine : backends()) {
    SCOPED_TRACE(engine->name());
    EXPECT_EQ(
        compress(*engine, made, x, type, key, p.widths, where, reference::ranges_of(p), given),
        blob);
  }
  for (const dtype out : all_types) {
    const auto before = reference::from_floats(normal_floats(x.size() / 2 + 1, 99), out);
    const std::vector<u8> y(before.begin(),
                            before.begin() + static_cast<std::ptrdiff_t>(tensor_bytes(made, out)));
    const auto decoded = reference::decompress(p, blob, out, key);
    const auto added = reference::decompress_add(p, blob, out, y, key);
    const maybe_key to_decode = made.needs_key() ? maybe_key(key) : maybe_key();
    for (const auto& engine : backends()) {
      SCOPED_TRACE(std::string(engine->name()) + " to " + name(out));
      EXPECT_EQ(decompress(*engine, made, blob, out, p.widths, where, to_decode, given), decoded);
      EXPECT_EQ(decompress_add(*engine, made, blob, out, y, p.widths, where, to_decode, given),
                added);
    }
  }
}

}  // namespace furl::test
