// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Calls of a back end with everything that must hold of every call checked: success, canaries
// around each buffer whole, inputs as they were.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/backend.hpp"
#include "support/buffer.hpp"
#include "support/reference.hpp"

namespace furl::test {

inline constexpr dtype all_types[] = {dtype::f32, dtype::f16, dtype::bf16};

/// Distance in bytes of the tensor's first element from a 64-byte boundary.
struct misalignment {
  std::size_t bytes = 0;
};

inline constexpr int rotated_bits[] = {1, 2, 3, 4};  // that rotated codes may have
codec rotated_codec(int bits, const extents& window = {});
codec positives_codec(int bits);

/// Normal deviates as elements of a type.
std::vector<u8> normal_input(i64 n, dtype type, u32 seed);

plan make_plan(const codec& c, const extents& shape);
/// Of a problem with or without widths.
plan make_plan(const reference::problem& p);

std::vector<u8> compress(backend& engine, const plan& p, const std::vector<u8>& x, dtype type,
                         random_key key, const std::vector<u8>& widths = {},
                         misalignment where = {}, const given_ranges& ranges = {},
                         const statistics& given = {});
std::vector<u8> decompress(backend& engine, const plan& p, const std::vector<u8>& blob, dtype type,
                           const std::vector<u8>& widths = {}, misalignment where = {},
                           const maybe_key& key = {}, const statistics& given = {});
std::vector<u8> decompress_add(backend& engine, const plan& p, const std::vector<u8>& blob,
                               dtype type, const std::vector<u8>& before,
                               const std::vector<u8>& widths = {}, misalignment where = {},
                               const maybe_key& key = {}, const statistics& given = {});
std::vector<u8> pack(backend& engine, const plan& p, const std::vector<u8>& codes,
                     misalignment where = {});
std::vector<u8> unpack(backend& engine, const plan& p, const std::vector<u8>& blob,
                       misalignment where = {});

/// f32 in, f32 out.
std::vector<u8> compress(backend& engine, const plan& p, const std::vector<float>& x,
                         random_key key = {});
std::vector<float> decompress(backend& engine, const plan& p, const std::vector<u8>& blob,
                              const maybe_key& key = {});
std::vector<float> round_trip(backend& engine, const plan& p, const std::vector<float>& x,
                              random_key key = {});

/// The metadata of a group of a blob: lo and step.
struct lo_step {
  float lo;
  float step;
};
lo_step group_of(const plan& p, const std::vector<u8>& blob, i64 group);

/// Blob and outputs of all types are the reference's, byte for byte, for every back end.
void expect_as_reference(const reference::problem& p, const std::vector<u8>& x, dtype type,
                         random_key key, misalignment where = {});

}  // namespace furl::test
