// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Codebooks with scales: a second implementation, straight from FORMAT.md, A13.

#include <vector>

#include "support/backend.hpp"
#include "support/coded.hpp"

namespace furl::test {

/// What a blob is made for.
struct scaled_problem {
  int bits;
  int group;
  dtype meta;
  i64 num_elements;
};

plan make_scaled_plan(const scaled_problem& p);

/// The blob of x. scales: given ones, of every group or of all; none: measured.
std::vector<u8> reference_scaled(const scaled_problem& p, const std::vector<float>& x,
                                 const codebook& book, random_key key,
                                 const std::vector<float>& scales = {});
/// The scale of each group of a blob.
std::vector<float> scales_of(const scaled_problem& p, const std::vector<u8>& blob);
/// v of each element of a blob.
std::vector<float> reference_scaled_values(const scaled_problem& p, const std::vector<u8>& blob,
                                           const codebook& book);
/// What unpack makes of values: f16 and bf16 saturate.
std::vector<u8> saturated(const std::vector<float>& v, dtype type);

/// pack with given scales, with all that must hold of every call checked.
std::vector<u8> pack_with_scales(backend& engine, const plan& p, const std::vector<u8>& x,
                                 dtype type, const codebook& book, const std::vector<float>& scales,
                                 random_key key = {}, misalignment where = {});

}  // namespace furl::test
