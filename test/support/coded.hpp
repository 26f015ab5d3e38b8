// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Codebooks: inputs, a second implementation, and calls of a back end with everything that must
// hold of every call checked.

#include <vector>

#include "support/backend.hpp"
#include "support/reference.hpp"
#include "support/run.hpp"

namespace furl::test {

/// Normal deviates with NaN, infinities, zeros, subnormals and huge values among them, as elements
/// of a type.
std::vector<u8> awkward_elements(std::size_t count, dtype type, u32 seed,
                                 const std::vector<float>& also = {});

/// The bytes of elements, each made of the float of an input element; NaN is the one that furl
/// writes.
template <class Function>
std::vector<u8> map_elements(const std::vector<u8>& x, dtype type, const Function& function) {
  std::vector<float> values = reference::to_floats(x, type);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = function(values[i], i);
    if (values[i] != values[i]) values[i] = float_of(f32_nan_bits);
  }
  return reference::from_floats(values, type);
}

/// A codebook of evenly spread levels with some unevenness, from -3 to 3.
codebook uneven_codebook(int num_levels, rounding mode);

/// FORMAT.md, A9: one code after the other.
std::vector<u8> reference_codes(std::vector<float> x, const codebook& book, random_key key);

std::vector<u8> pack(backend& engine, const plan& p, const std::vector<u8>& x, dtype type,
                     const codebook& book, random_key key = {}, misalignment where = {});
std::vector<u8> unpack(backend& engine, const plan& p, const std::vector<u8>& blob,
                       const codebook& book, dtype type, misalignment where = {});
/// Once into an array of its own and once in place, which must be the same.
std::vector<u8> unpack_multiply(backend& engine, const plan& p, const std::vector<u8>& blob,
                                const codebook& book, const std::vector<u8>& g, dtype type,
                                misalignment where = {});

}  // namespace furl::test
