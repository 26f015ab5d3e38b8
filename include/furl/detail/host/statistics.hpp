// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Normalised elements (FORMAT.md, A14) on the host: a tile is normalised before it is coded, and
// back after it is decoded.

#include <algorithm>

#include "furl/config.hpp"
#include "furl/detail/number.hpp"
#include "furl/detail/statistics.hpp"
#include "furl/plan.hpp"
#include "furl/types.hpp"

FURL_HIDDEN_BEGIN

namespace furl::host::detail {

class normaliser {
 public:
  explicit normaliser(const statistics& given) : map_(given) {}

  bool is_given() const { return map_.inverse_deviation != nullptr; }

  /// r = (x - mean) * inverse_deviation, of the `count` elements of the tile that begins at
  /// `first`.
  void normalise(i64 first, int count, const float* x, float* r) const {
    transform(
        first, count, x, r, [](float inverse_deviation) { return inverse_deviation; },
        [](float value, float mean, float factor) { return furl::normalise(value, mean, factor); });
  }

  /// v = v * deviation + mean, likewise. Every NaN is the canonical one.
  void denormalise(i64 first, int count, float* v) const {
    transform(
        first, count, v, v, [](float inverse_deviation) { return deviation_of(inverse_deviation); },
        [](float value, float mean, float deviation) {
          return canonical(furl::denormalise(value, mean, deviation));
        });
  }

 private:
  /// out = apply(x, mean, factor(inverse_deviation)), in runs of elements with the same statistics,
  /// or with those that follow one another.
  template <class Factor, class Apply>
  void transform(i64 first, int count, const float* x, float* out, const Factor& factor,
                 const Apply& apply) const {
    const statistics_origin at = map_.origin(first);
    const bool change = map_.change_everywhere();
    for (int begin = 0; begin < count;) {
      const u32 index = map_.index(at, u32(begin));
      const u32 length = change ? map_.count() - index : map_.run_length(at, u32(begin));
      const int run = int((::std::min)(length, u32(count - begin)));
      if (change) {
        for (int i = 0; i < run; ++i)
          out[begin + i] = apply(x[begin + i], map_.mean_at(index + u32(i)),
                                 factor(map_.inverse_deviation[index + u32(i)]));
      } else {
        const float mean = map_.mean_at(index);
        const float shared = factor(map_.inverse_deviation[index]);
        for (int i = 0; i < run; ++i) out[begin + i] = apply(x[begin + i], mean, shared);
      }
      begin += run;
    }
  }

  statistics_map map_;
};

}  // namespace furl::host::detail

FURL_HIDDEN_END
