// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Codebooks that are the best of their size: for the derivatives of activation functions (Novikov
// et al., "Few-bit backward", ICML 2023), and for stochastic rounding of Weibull-distributed values
// (TinyScript, Fu et al., ICML 2020). They are made once, before training, in milliseconds to half
// a second, and by allocating memory. They depend on the last bits of the C library's functions, so
// what is shared between machines is the codebook, not its making.

#if !defined(__CUDACC_RTC__)
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "furl/config.hpp"
#include "furl/detail/host/work.hpp"
#include "furl/extra/codebook.hpp"
#include "furl/plan.hpp"
#include "furl/types.hpp"

namespace furl::host {
inline namespace v0_2 {

/// Functions that derivative_codebook knows.
enum class activation : u8 { gelu, silu, tanh, sigmoid, selu, softplus };

/// Magnitudes are below x with probability 1 - exp(-(x / scale)^shape). Both are positive.
struct weibull {
  double shape;  // below 1: peaked at 0 with a long tail
  double scale;  // in units of the values
};

}  // namespace v0_2

FURL_HIDDEN_BEGIN

namespace detail {

/// Positions 0 = c[0] < c[1] < ... < c[num_cells] = last that minimise the sum of
/// cost(c[i], c[i + 1]): the best among multiples of `stride` by dynamic programming, from which
/// single positions are then moved as long as that helps.
/// Pre: last is a multiple of stride and at least num_cells * stride.
template <class Cost>
::std::vector<int> optimal_cuts(int last, int num_cells, int stride, const Cost& cost) {
  const int points = last / stride + 1;
  const auto at = [points](int cells, int point) {
    return static_cast<::std::size_t>(cells) * static_cast<::std::size_t>(points) +
           static_cast<::std::size_t>(point);
  };
  const auto size = at(num_cells + 1, 0);
  ::std::vector<double> best(size, ::std::numeric_limits<double>::infinity());
  ::std::vector<int> previous(size, 0);
  best[at(0, 0)] = 0.0;
  for (int cells = 1; cells <= num_cells; ++cells) {
    for (int end = cells; end < points; ++end) {
      for (int begin = cells - 1; begin < end; ++begin) {
        const double sum = best[at(cells - 1, begin)] + cost(begin * stride, end * stride);
        if (sum >= best[at(cells, end)]) continue;
        best[at(cells, end)] = sum;
        previous[at(cells, end)] = begin;
      }
    }
  }
  ::std::vector<int> cuts(static_cast<::std::size_t>(num_cells) + 1);
  for (int cells = num_cells, point = points - 1; cells >= 0; --cells) {
    cuts[static_cast<::std::size_t>(cells)] = point * stride;
    point = previous[at(cells, point)];
  }
  for (bool moved = true; moved;) {
    moved = false;
    for (::std::size_t i = 1; i + 1 < cuts.size(); ++i) {
      for (const int step : {-1, 1}) {
        const auto around = [&](int cut) {
          return cut <= cuts[i - 1] || cut >= cuts[i + 1]
                     ? ::std::numeric_limits<double>::infinity()
                     : cost(cuts[i - 1], cut) + cost(cut, cuts[i + 1]);
        };
        while (around(cuts[i] + step) < around(cuts[i])) {
          cuts[i] += step;
          moved = true;
        }
      }
    }
  }
  return cuts;
}

struct value_and_slope {
  double value;
  double slope;
};

inline value_and_slope evaluate(activation f, double x) {
  constexpr double selu_scale = 1.0507009873554804934193349852946;
  constexpr double selu_alpha = 1.6732632423543772848170429916717;
  const double sigmoid = 1.0 / (1.0 + ::std::exp(-x));
  switch (f) {
    case activation::gelu: {
      const double below = 0.5 * ::std::erfc(-x * ::std::sqrt(0.5));
      const double density = ::std::exp(-0.5 * x * x) / ::std::sqrt(2.0 * ::std::acos(-1.0));
      return {x * below, below + x * density};
    }
    case activation::silu:
      return {x * sigmoid, sigmoid * (1.0 + x * (1.0 - sigmoid))};
    case activation::tanh:
      return {::std::tanh(x), 1.0 - ::std::tanh(x) * ::std::tanh(x)};
    case activation::sigmoid:
      return {sigmoid, sigmoid * (1.0 - sigmoid)};
    case activation::softplus:
      return {::std::fmax(x, 0.0) + ::std::log1p(::std::exp(-::std::fabs(x))), sigmoid};
    default:
      if (x > 0.0) return {selu_scale * x, selu_scale};
      return {selu_scale * selu_alpha * ::std::expm1(x), selu_scale * selu_alpha * ::std::exp(x)};
  }
}

}  // namespace detail

/// The step function of 2^bits steps that is nearest to the derivative of an activation function:
/// the integral of the squared error from -10 to 10 is least (Novikov et al., ICML 2023). Its
/// codes, made of the input of the activation in the forward pass, are all that the backward pass
/// needs, which is unpack_multiply. For tanh and sigmoid, whose derivatives are even, they are
/// codes of magnitudes.
/// f    : the activation function.
/// bits : 1..4, of a code.
inline result<codebook> derivative_codebook(activation f, int bits) {
  if (bits < 1 || bits > 4) return status{error::out_of_range, "bits", bits, "must be 1..4"};
  if (f > activation::softplus)
    return status{error::out_of_range, "f", i64(f), "must be one of host::activation"};
  const float_environment environment;
  codebook book;
  book.num_levels = 1 << bits;
  book.of_magnitudes = f == activation::tanh || f == activation::sigmoid;
  constexpr int last = 1 << 14;
  constexpr int stride = 16;
  const double begin_of_range = book.of_magnitudes ? 0.0 : -10.0;
  const double step = (10.0 - begin_of_range) / last;
  const auto position = [&](int i) { return begin_of_range + step * i; };
  ::std::vector<double> value(last + 1);
  ::std::vector<double> square(last + 1);  // integral of the squared derivative up to here
  for (int i = 0; i <= last; ++i) {
    const auto here = detail::evaluate(f, position(i));
    value[::std::size_t(i)] = here.value;
    if (i == 0) continue;
    // A jump, as SELU has at 0, is a point of the grid: the middle is on its left.
    const double middle = detail::evaluate(f, position(i) - 0.5 * step).slope;
    square[::std::size_t(i)] = square[::std::size_t(i - 1)] + step * middle * middle;
  }
  const auto mean = [&](int begin, int end) {
    return (value[::std::size_t(end)] - value[::std::size_t(begin)]) / (step * (end - begin));
  };
  const auto error = [&](int begin, int end) {
    const double m = mean(begin, end);
    return square[::std::size_t(end)] - square[::std::size_t(begin)] - m * m * step * (end - begin);
  };
  const auto cuts = detail::optimal_cuts(last, book.num_levels, stride, error);
  for (int i = 0; i < book.num_levels; ++i) {
    book.level[i] = float(mean(cuts[::std::size_t(i)], cuts[::std::size_t(i) + 1]));
    if (i > 0) book.threshold[i - 1] = float(position(cuts[::std::size_t(i)]));
  }
  return book;
}

/// The Weibull distribution that has these moments, which are those of the magnitudes of values.
/// This is how we fit; TinyScript's own way is not known to us.
/// mean        : of the magnitudes: 1e-30 to 1e38.
/// mean_square : of the values. Over the square of the mean it must be 1.0002 to 1.8e5, which are
///               shapes 100 to 0.1.
inline result<weibull> fit_weibull(double mean, double mean_square) {
  if (!(mean >= 1e-30 && mean <= 1e38))
    return status{error::out_of_range, "mean", 0, "must be 1e-30..1e38"};
  const float_environment environment;
  const auto spread = [](double shape) {  // falls as the shape rises
    const double first = ::std::tgamma(1.0 + 1.0 / shape);
    return ::std::tgamma(1.0 + 2.0 / shape) / (first * first);
  };
  double low = 0.1;
  double high = 100.0;
  const double wanted = mean_square / mean / mean;
  if (!(wanted <= spread(low) && wanted >= spread(high)))
    return status{error::out_of_range, "mean_square", 0,
                  "must be 1.0002 to 1.8e5 times the square of mean"};
  for (int i = 0; i < 60; ++i) {
    const double middle = 0.5 * (low + high);
    (spread(middle) > wanted ? low : high) = middle;
  }
  return weibull{low, mean / ::std::tgamma(1.0 + 1.0 / low)};
}

/// The 2^bits levels from -largest to largest, symmetric about 0, between which stochastic rounding
/// has the least variance on average. Values beyond become the first or the last level. The Weibull
/// model and the least variance are those of TinyScript (Fu et al., ICML 2020). Ours are the signs,
/// which are random, the range, the symmetry and the search, among multiples of largest / 4096.
/// (Without the symmetry a level may lie near 0 for shapes well below 1, which saves 2 % of the
/// variance.)
/// d       : the distribution of the magnitudes.
/// largest : the greatest magnitude that is to be right on average: 1e-30 to 1e38.
/// bits    : 1..8, of a code.
inline result<codebook> weibull_codebook(const weibull& d, double largest, int bits) {
  if (const status s = furl::detail::check_bits(bits, "bits"); !s) return s;
  if (!(d.shape > 0.0)) return status{error::out_of_range, "shape", 0, "must be positive"};
  if (!(d.scale > 0.0)) return status{error::out_of_range, "scale", 0, "must be positive"};
  if (!(largest >= 1e-30 && largest <= 1e38))
    return status{error::out_of_range, "largest", 0, "must be 1e-30..1e38"};
  const float_environment environment;
  constexpr int last = 1 << 12;
  constexpr int stride = 8;
  const double step = largest / last;
  const auto below = [&](double x) {  // probability of magnitudes below x
    return -::std::expm1(-::std::pow(x / d.scale, d.shape));
  };
  // Moments 0, 1, 2 of the magnitudes up to each position, of magnitudes in units of `largest`.
  ::std::vector<double> moment[3];
  for (auto& m : moment) m.assign(last + 1, 0.0);
  for (int i = 1; i <= last; ++i) {
    double part = below(step * i) - below(step * (i - 1));
    for (auto& m : moment) {
      m[::std::size_t(i)] = m[::std::size_t(i - 1)] + part;
      part *= (i - 0.5) / last;
    }
  }
  // Of a value x between levels a and b the variance is (x - a)(b - x).
  const auto variance = [&](int begin, int end) {
    const auto part = [&](int k) {
      return moment[k][::std::size_t(end)] - moment[k][::std::size_t(begin)];
    };
    const double b = double(end) / last;
    const double a = begin == 0 ? -b : double(begin) / last;  // the two levels around 0
    return (a + b) * part(1) - part(2) - a * b * part(0);
  };
  const int half = 1 << (bits - 1);
  const auto cuts = detail::optimal_cuts(last, half, stride, variance);
  float levels[max_levels];
  for (int i = 0; i < half; ++i) {
    levels[half + i] = float(step * cuts[::std::size_t(i) + 1]);
    levels[half - 1 - i] = -levels[half + i];
  }
  return stochastic_codebook(levels, 2 * half);
}

FURL_HIDDEN_END

}  // namespace furl::host

#endif
