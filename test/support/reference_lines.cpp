// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Groups that end with lines in the reference: FORMAT.md, A15, by a tensor in which every line is
// filled up with its last element.

#include "support/reference_lines.hpp"

#include <algorithm>

namespace furl::test::reference {
namespace {

constexpr i64 no_element = -1;

/// The element of every code, or none.
std::vector<i64> elements_of_codes(const problem& p) {
  const i64 width = p.shape.rank == 0 ? 1 : p.shape.size[p.shape.rank - 1];
  std::vector<i64> out;
  for (i64 i = 0; i < num_elements(p); ++i) {
    out.push_back(i);
    while ((i + 1) % width == 0 && i64(out.size()) % p.codec.group != 0) out.push_back(no_element);
  }
  return out;
}

/// The problem of a tensor with an element for every code.
problem filled(const problem& p, i64 num_codes) {
  problem out = p;
  out.codec.by_lines = false;
  out.codec.window = {};
  out.shape = {num_codes};
  return out;
}

}  // namespace

std::vector<u8> compress_lines(const problem& p, const std::vector<u8>& x, dtype type,
                               random_key key) {
  const auto elements = elements_of_codes(p);
  const std::size_t size = type == dtype::f32 ? 4 : 2;
  std::vector<u8> values;
  for (const i64 element : elements) {
    const auto from = element == no_element ? values.end() - std::ptrdiff_t(size)
                                            : x.begin() + std::ptrdiff_t(at(element) * size);
    const std::vector<u8> bytes(from, from + std::ptrdiff_t(size));
    values.insert(values.end(), bytes.begin(), bytes.end());
  }
  const i64 n = i64(elements.size());
  auto blob = compress(filled(p, n), values, type, key);
  auto codes = unpack(p.codec.bits, blob, n);
  for (i64 i = 0; i < n; ++i)
    if (elements[at(i)] == no_element) codes[at(i)] = 0;
  const auto packed = pack(p.codec.bits, codes);
  std::copy(packed.begin(), packed.end(), blob.begin());
  return blob;
}

std::vector<float> values_of_lines(const problem& p, const std::vector<u8>& blob, random_key key) {
  const auto elements = elements_of_codes(p);
  const auto values = values_of(filled(p, i64(elements.size())), blob, key);
  std::vector<float> out;
  for (std::size_t i = 0; i < elements.size(); ++i)
    if (elements[i] != no_element) out.push_back(values[i]);
  return out;
}

}  // namespace furl::test::reference
