// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// The functions of furl.h. Compiled as C++ they serve host memory, compiled by nvcc device memory
// too.

#include "furl.h"

#include <cstdio>
#include <cstring>
#include <exception>
#include <tuple>

#include "engines.hpp"
#include "furl/furl.hpp"
#include "tensors.hpp"

using furl::bytes;
using furl::error;
using furl::plan;
using furl::random_key;
using furl::result;
using furl::status;
using furl::values;

namespace {

static_assert(int(error::out_of_memory) == FURL_OUT_OF_MEMORY && int(error::cuda) == FURL_CUDA);
static_assert(int(furl::dtype::bf16) == FURL_BF16);
static_assert(int(furl::rounding::dithered) == FURL_DITHERED);
static_assert(int(furl::coding::positives) == FURL_POSITIVES);

/// Runs the body of a function, past which nothing is thrown, and writes what its status says.
template <class Body>
int32_t guarded(char* text, const Body& body) noexcept {
  status s{error::out_of_memory, "libfurl", 0, "has caught an exception"};
  try {
    s = body();
    if (!s && text != nullptr)
      std::snprintf(text, FURL_TEXT_BYTES, "%s", furl::to_string(s).c_str());
  } catch (...) {
    if (text != nullptr) std::snprintf(text, FURL_TEXT_BYTES, "%s: %s", s.argument, s.limit);
  }
  return static_cast<int32_t>(s.code);
}

/// A number as one of an enum whose last value is `last`.
template <class Enum>
status set_enum(int32_t value, Enum last, const char* argument, Enum& out) {
  out = static_cast<Enum>(value);
  if (value >= 0 && value <= int32_t(last)) return {};
  return {error::out_of_range, argument, value, "must be a value of its enum in furl.h"};
}

result<furl::codec> codec_of(const furl_codec* given) {
  furl_codec c;
  furl_codec_init(&c, sizeof c);
  if (const status s = furl_c::copy_known(given, "codec", c); !s) return s;
  furl::codec out;
  out.bits = c.bits;
  out.group = c.group;
  if (c.by_lines != 0 && c.by_lines != 1)
    return status{error::out_of_range, "codec.by_lines", c.by_lines, "must be 0 or 1"};
  out.by_lines = c.by_lines != 0;
  out.window = furl::extents(c.window, c.window_rank);
  if (const status s = set_enum(c.meta, furl::dtype::bf16, "codec.meta", out.meta); !s) return s;
  if (const status s =
          set_enum(c.rounding, furl::rounding::dithered, "codec.rounding", out.rounding);
      !s)
    return s;
  if (const status s = set_enum(c.coding, furl::coding::positives, "codec.coding", out.coding); !s)
    return s;
  return out;
}

/// Makes a plan by make(shape), and writes it.
template <class Make>
int32_t make_plan(const int64_t* shape, int32_t rank, furl_plan* out, char* text,
                  const Make& make) {
  return guarded(text, [&]() -> status {
    if (out == nullptr) return {error::null_pointer, "plan", 0, "must not be null"};
    if (rank < 0) return {error::out_of_range, "rank", rank, "must not be negative"};
    if (shape == nullptr && rank > 0) return {error::null_pointer, "shape", 0, "must not be null"};
    const result<plan> made = make(furl::extents(shape, rank));
    if (!made) return made.status();
    const furl::plan_bytes written = furl::serialize(*made);
    std::memcpy(out->bytes, written.data, sizeof written.data);
    return {};
  });
}

/// A tensor by the name of its argument, to be read as values or bytes.
template <class View>
struct named {
  const furl_tensor* tensor;
  const char* name;
};

/// A function of furl.h: body(engine, plan, view of each tensor).
template <class Body, class... Views>
int32_t call(const furl_plan* serialized, const furl_options* options, char* text, const Body& body,
             const named<Views>&... tensors) {
  return guarded(text, [&]() -> status {
    const result<plan> p = furl_c::plan_of(serialized);
    if (!p) return p.status();
    furl_c::place where;
    std::tuple<Views...> views;
    const status s = std::apply(
        [&](Views&... view) {
          status found;
          (void)((found = furl_c::read(tensors.tensor, tensors.name, where, view)).ok() && ...);
          return found;
        },
        views);
    if (!s) return s;
    return furl_c::run(where, options, [&](const auto& engine) {
      return std::apply([&](const auto&... view) { return body(engine, *p, view...); }, views);
    });
  });
}

}  // namespace

furl_pool* furl_pool_create(int32_t num_threads) {
  try {
    return new furl_pool{furl::host::thread_pool(num_threads)};
  } catch (const std::exception&) {  // of the system, which refuses a thread or memory
    return nullptr;
  }
}

void furl_pool_destroy(furl_pool* pool) {
  delete pool;
}

void furl_codec_init(furl_codec* codec, uint32_t struct_bytes) {
  const furl::codec defaults;
  furl_codec c{};
  c.struct_bytes = struct_bytes;
  c.bits = defaults.bits;
  c.group = defaults.group;
  c.meta = int32_t(defaults.meta);
  c.rounding = int32_t(defaults.rounding);
  c.coding = int32_t(defaults.coding);
  if (struct_bytes > sizeof c) std::memset(codec, 0, struct_bytes);
  std::memcpy(codec, &c, struct_bytes < sizeof c ? struct_bytes : sizeof c);
}

int32_t furl_plan_make(const furl_codec* codec, const int64_t* shape, int32_t rank, furl_plan* plan,
                       char* text) {
  return make_plan(shape, rank, plan, text, [&](const furl::extents& e) -> result<furl::plan> {
    const result<furl::codec> c = codec_of(codec);
    if (!c) return c.status();
    return furl::plan::make(*c, e);
  });
}

int32_t furl_plan_make_codes(int32_t bits, const int64_t* shape, int32_t rank, furl_plan* plan,
                             char* text) {
  return make_plan(shape, rank, plan, text,
                   [&](const furl::extents& e) { return furl::plan::make_codes(bits, e); });
}

int32_t furl_plan_sizes(const furl_plan* plan, furl_sizes* sizes, char* text) {
  return guarded(text, [&]() -> status {
    const result<furl::plan> p = furl_c::plan_of(plan);
    if (!p) return p.status();
    if (sizes == nullptr) return {error::null_pointer, "sizes", 0, "must not be null"};
    const uint32_t size = sizes->struct_bytes;
    if (size < sizeof size)
      return {error::wrong_size, "sizes", size, "struct_bytes must be the struct's size"};
    furl_sizes found{};
    found.struct_bytes = size;
    found.needs_key = p->needs_key() ? 1 : 0;
    found.num_elements = p->num_elements();
    found.blob_bytes = int64_t(p->size_bytes());
    std::memcpy(sizes, &found, size < sizeof found ? size : sizeof found);
    return {};
  });
}

int32_t furl_compress(const furl_plan* plan, const furl_tensor* x, const furl_tensor* blob,
                      uint64_t seed, uint64_t offset, const furl_options* options, char* text) {
  return call(
      plan, options, text,
      [&](const auto& engine, const furl::plan& p, const values& from, const bytes& to) {
        return engine.compress(p, from, to, random_key{seed, offset});
      },
      named<values>{x, "x"}, named<bytes>{blob, "blob"});
}

int32_t furl_decompress(const furl_plan* plan, const furl_tensor* blob, const furl_tensor* y,
                        uint64_t seed, uint64_t offset, const furl_options* options, char* text) {
  return call(
      plan, options, text,
      [&](const auto& engine, const furl::plan& p, const bytes& from, const values& to) {
        return engine.decompress(p, from, to, random_key{seed, offset});
      },
      named<bytes>{blob, "blob"}, named<values>{y, "y"});
}

int32_t furl_decompress_add(const furl_plan* plan, const furl_tensor* blob, const furl_tensor* y,
                            uint64_t seed, uint64_t offset, const furl_options* options,
                            char* text) {
  return call(
      plan, options, text,
      [&](const auto& engine, const furl::plan& p, const bytes& from, const values& to) {
        return engine.decompress_add(p, from, to, random_key{seed, offset});
      },
      named<bytes>{blob, "blob"}, named<values>{y, "y"});
}

int32_t furl_pack(const furl_plan* plan, const furl_tensor* codes, const furl_tensor* blob,
                  const furl_options* options, char* text) {
  return call(
      plan, options, text,
      [](const auto& engine, const furl::plan& p, const bytes& from, const bytes& to) {
        return engine.pack(p, from, to);
      },
      named<bytes>{codes, "codes"}, named<bytes>{blob, "blob"});
}

int32_t furl_unpack(const furl_plan* plan, const furl_tensor* blob, const furl_tensor* codes,
                    const furl_options* options, char* text) {
  return call(
      plan, options, text,
      [](const auto& engine, const furl::plan& p, const bytes& from, const bytes& to) {
        return engine.unpack(p, from, to);
      },
      named<bytes>{blob, "blob"}, named<bytes>{codes, "codes"});
}

int32_t furl_relu(const furl_plan* plan, const furl_tensor* x, const furl_tensor* y,
                  const furl_tensor* blob, uint64_t seed, uint64_t offset,
                  const furl_options* options, char* text) {
  return call(
      plan, options, text,
      [&](const auto& engine, const furl::plan& p, const values& from, const values& to,
          const bytes& kept) {
        if (!p.has_mask()) return engine.relu(p, from, to, kept);
        return engine.relu(p, from, to, kept, random_key{seed, offset});
      },
      named<values>{x, "x"}, named<values>{y, "y"}, named<bytes>{blob, "blob"});
}

int32_t furl_relu_backward(const furl_plan* plan, const furl_tensor* blob, const furl_tensor* g,
                           const furl_tensor* out, const furl_options* options, char* text) {
  return call(
      plan, options, text,
      [](const auto& engine, const furl::plan& p, bytes kept, const values& from,
         const values& to) -> status {
        const furl::plan mask = p.has_mask() ? p.mask_plan() : p;
        if (mask.kind() != furl::plan_kind::codes || mask.codec().bits != 1)
          return {error::wrong_plan, "plan", 0, "must be one that furl_relu takes"};
        if (p.has_mask()) {
          if (const status s = furl::detail::check_blob(p, kept); !s) return s;
          // The codes before the mask are not read here, but decompress restores y from them.
          if (const status s = furl::detail::check_apart({kept.data, p.size_bytes(), "blob"},
                                                         {{to.data, to.size_bytes(), "out"}},
                                                         "must not overlap the blob");
              !s)
            return s;
          if (p.num_elements() > 0)
            kept = {static_cast<unsigned char*>(kept.data) + p.mask_offset(), mask.size_bytes()};
        }
        return engine.unpack_multiply(mask, kept, furl::positive_codebook(), from, to);
      },
      named<bytes>{blob, "blob"}, named<values>{g, "g"}, named<values>{out, "out"});
}
