// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

#include "support/reference_statistics.hpp"

#include <cmath>

namespace furl::test::reference {
namespace {

std::size_t place(const problem& p, i64 i) {
  return at(i / p.extent) % p.inverse_deviation.size();
}

float mean_of(const problem& p, i64 i) {
  return p.mean.empty() ? 0.0f : p.mean[place(p, i)];
}

}  // namespace

statistics statistics_of(const problem& p) {
  const float* const mean = p.mean.empty() ? nullptr : p.mean.data();
  if (p.inverse_deviation.empty()) return {};
  return {mean, p.inverse_deviation.data(), i64(p.inverse_deviation.size()), p.extent};
}

std::vector<float> normalised(const problem& p, const std::vector<float>& x) {
  if (p.inverse_deviation.empty()) return x;
  std::vector<float> r;
  for (i64 i = 0; i < i64(x.size()); ++i) {
    const volatile float centred = x[at(i)] - mean_of(p, i);
    r.push_back(centred * p.inverse_deviation[place(p, i)]);
  }
  return r;
}

float denormalised(const problem& p, i64 i, float v) {
  if (p.inverse_deviation.empty()) return v;
  const volatile float deviation = 1.0f / p.inverse_deviation[place(p, i)];
  return std::fma(v, deviation, mean_of(p, i));
}

}  // namespace furl::test::reference
