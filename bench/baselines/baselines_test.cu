// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// The baselines do what they stand for: their metadata are those of the input, and a decoded value
// is within a step of it, at every width and where planes, cells and groups do not come out even.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "baselines/actnn.cuh"
#include "baselines/division.cuh"
#include "device/buffer.cuh"
#include "furl/detail/number.hpp"

namespace furl::test {
namespace {

using bench::division::planes;
namespace division = bench::division;
namespace actnn = bench::actnn;

/// Smooth along rows, with noise on top and an offset that grows.
std::vector<float> make_input(i64 count) {
  std::vector<float> x(static_cast<std::size_t>(count));
  u32 random = 1;
  for (i64 i = 0; i < count; ++i) {
    random = random * 1664525u + 1013904223u;
    x[std::size_t(i)] =
        3.0f + std::sin(float(i) * 0.01f) + float(random >> 8) * 0x1p-26f + float(i / 1000) * 0.25f;
  }
  return x;
}

template <class T>
std::vector<T> read(const device_buffer& buffer) {
  std::vector<T> out(buffer.size() / sizeof(T));
  buffer.read(out.data());
  return out;
}

device_buffer upload(const std::vector<float>& x) {
  return device_buffer(
      std::vector<u8>(reinterpret_cast<const u8*>(x.data()),
                      reinterpret_cast<const u8*>(x.data()) + x.size() * sizeof(float)));
}

/// Errors of decoded values, in steps: each at most one, and none on average.
class error_check {
 public:
  void add(float x, float decoded, float step) {
    const double error = double(decoded) - double(x);
    const double rounding = 4 * 0x1p-24 * std::max(std::abs(double(x)), double(step));
    EXPECT_LE(std::abs(error), double(step) + rounding) << x << " became " << decoded;
    if (step > 0) sum_ += error / double(step);
    count_ += step > 0 ? 1 : 0;
  }
  ~error_check() {
    // The error of a random code has a variance of at most a quarter.
    if (count_ > 0) EXPECT_LE(std::abs(sum_) / count_, 5 * 0.5 / std::sqrt(count_));
  }

 private:
  double sum_ = 0;
  double count_ = 0;
};

struct decoded {
  std::vector<float> y;
  float step;  // the largest of all
};

/// Over many seeds, every element must decode to itself on average: run(seed).
template <class Run>
void expect_mean_of_seeds(const std::vector<float>& x, const Run& run) {
  constexpr int num_seeds = 256;
  std::vector<double> sum(x.size());
  double step = 0;
  for (u64 seed = 0; seed < num_seeds; ++seed) {
    const decoded one = run(seed);
    step = double(one.step);
    for (std::size_t i = 0; i < x.size(); ++i) sum[i] += double(one.y[i]);
  }
  // Five times the deviation of a mean whose terms have at most half a step.
  for (std::size_t i = 0; i < x.size(); ++i)
    EXPECT_NEAR(sum[i] / num_seeds, double(x[i]), 5 * 0.5 * step / std::sqrt(num_seeds));
}

// ---- DIVISION --------------------------------------------------------------------------------

struct division_run {
  std::vector<float> lfc;
  std::vector<float> lo;
  std::vector<float> step;
  std::vector<u8> packed;
  std::vector<float> y;
};

division_run run_division(const planes& p, int bits, const std::vector<float>& input, u64 seed) {
  const u64 size = input.size() * sizeof(float);
  const u64 per_plane = u64(p.count) * sizeof(float);
  const device_buffer x = upload(input);
  const device_buffer lfc(u64(p.count) * u64(p.cells()) * sizeof(bf16));
  const device_buffer lo(per_plane);
  const device_buffer step(per_plane);
  const device_buffer packed(u64(division::packed_bytes(p, bits)));
  const device_buffer upsampled(size);
  const device_buffer difference(size);
  const device_buffer codes(input.size());
  const device_buffer hi(per_plane);
  const device_buffer scale(per_plane);
  const device_buffer y(size);
  const division::compressed blob{lfc.as<bf16>(), lo.as<float>(), step.as<float>(), packed.data()};
  const division::intermediates between{upsampled.as<float>(), difference.as<float>(), codes.data(),
                                        hi.as<float>(), scale.as<float>()};
  const scoped_stream stream;
  require(cudaDeviceSynchronize());
  division::compress(p, bits, x.as<float>(), seed, 0, between, blob, stream);
  division::decompress(p, bits, blob, between, y.as<float>(), stream);
  require(cudaGetLastError());
  stream.wait();
  division_run out{{}, read<float>(lo), read<float>(step), packed.bytes(), read<float>(y)};
  for (const bf16 mean : read<bf16>(lfc)) out.lfc.push_back(to_f32(mean));
  return out;
}

/// The plane's values less the means that the run found, which must be those of the input.
std::vector<float> differences(const planes& p, const float* x, const float* lfc) {
  std::vector<double> sums(std::size_t(p.cells()));
  std::vector<double> counts(std::size_t(p.cells()));
  std::vector<float> out(std::size_t(p.elements()));
  for (int i = 0; i < p.elements(); ++i) {
    const int cell = i / p.width / 8 * p.cell_columns() + i % p.width / 8;
    sums[std::size_t(cell)] += double(x[i]);
    counts[std::size_t(cell)] += 1;
    out[std::size_t(i)] = x[i] - lfc[cell];
  }
  for (std::size_t cell = 0; cell < sums.size(); ++cell) {
    const double mean = sums[cell] / counts[cell];
    EXPECT_NEAR(double(lfc[cell]), mean, std::abs(mean) * 0x1.02p-8) << "cell " << cell;
  }
  return out;
}

TEST(baselines, DivisionIsWithinAStep) {
  for (const planes& p : {planes{6, 56, 56}, planes{5, 28, 28}, planes{11, 7, 7}, planes{2, 75, 75},
                          planes{1, 9, 13}}) {
    std::vector<float> x = make_input(p.num_elements());
    std::fill_n(x.begin(), p.elements(), 3.25f);  // a constant plane
    for (const int bits : {1, 2, 4, 8}) {
      SCOPED_TRACE(std::to_string(p.height) + " x " + std::to_string(p.width) + ", bits " +
                   std::to_string(bits));
      const division_run run = run_division(p, bits, x, 1);
      error_check errors;
      for (i64 plane = 0; plane < p.count; ++plane) {
        const float* const first = x.data() + plane * p.elements();
        const std::vector<float> rest = differences(p, first, run.lfc.data() + plane * p.cells());
        const auto [lo, hi] = std::minmax_element(rest.begin(), rest.end());
        const float step = run.step[std::size_t(plane)];
        EXPECT_EQ(run.lo[std::size_t(plane)], *lo);
        EXPECT_EQ(step, (*hi - *lo) / float((1 << bits) - 1));
        for (int i = 0; i < p.elements(); ++i)
          errors.add(first[i], run.y[std::size_t(plane * p.elements() + i)], step);
      }
    }
  }
}

TEST(baselines, DivisionRoundsAtRandom) {
  const planes p{2, 9, 13};
  const std::vector<float> x = make_input(p.num_elements());
  EXPECT_EQ(run_division(p, 2, x, 1).packed, run_division(p, 2, x, 1).packed);
  expect_mean_of_seeds(x, [&](u64 seed) {
    const division_run run = run_division(p, 2, x, seed);
    return decoded{run.y, *std::max_element(run.step.begin(), run.step.end())};
  });
}

// ---- ActNN -----------------------------------------------------------------------------------

struct actnn_run {
  std::vector<float> lo;
  std::vector<float> step;
  std::vector<u8> packed;
  std::vector<float> y;
};

actnn_run run_actnn(int bits, const std::vector<float>& input, u64 seed) {
  const i64 n = i64(input.size());
  const u64 per_group = u64(actnn::num_groups(n)) * sizeof(float);
  const device_buffer x = upload(input);
  const device_buffer lo(per_group);
  const device_buffer step(per_group);
  const device_buffer scale(per_group);
  const device_buffer packed(u64(actnn::num_rows(n, bits)) * actnn::group);
  const device_buffer y(input.size() * sizeof(float));
  const actnn::compressed blob{lo.as<float>(), step.as<float>(), packed.data()};
  const scoped_stream stream;
  require(cudaDeviceSynchronize());
  actnn::compress(n, bits, x.as<float>(), seed, 0, scale.as<float>(), blob, stream);
  actnn::decompress(n, bits, blob, y.as<float>(), stream);
  require(cudaGetLastError());
  stream.wait();
  return {read<float>(lo), read<float>(step), packed.bytes(), read<float>(y)};
}

TEST(baselines, ActnnIsWithinAStep) {
  for (const i64 n : {1, 256, 1000, 20000}) {
    std::vector<float> x = make_input(n);
    if (n > 1000) std::fill_n(x.begin(), actnn::group, 3.25f);  // a constant group
    for (const int bits : {1, 2, 4, 8}) {
      SCOPED_TRACE(std::to_string(n) + " elements, bits " + std::to_string(bits));
      const actnn_run run = run_actnn(bits, x, 1);
      error_check errors;
      for (i64 g = 0; g < actnn::num_groups(n); ++g) {
        const i64 begin = g * actnn::group;
        const i64 end = std::min<i64>(begin + actnn::group, n);
        const auto [lo, hi] = std::minmax_element(x.begin() + begin, x.begin() + end);
        const float step = run.step[std::size_t(g)];
        EXPECT_EQ(run.lo[std::size_t(g)], *lo);
        EXPECT_EQ(step, (*hi - *lo) / float((1 << bits) - 1));
        for (i64 i = begin; i < end; ++i)
          errors.add(x[std::size_t(i)], run.y[std::size_t(i)], step);
      }
    }
  }
}

TEST(baselines, ActnnRoundsAtRandom) {
  const std::vector<float> x = make_input(400);
  EXPECT_EQ(run_actnn(2, x, 1).packed, run_actnn(2, x, 1).packed);
  expect_mean_of_seeds(x, [&](u64 seed) {
    const actnn_run run = run_actnn(2, x, seed);
    return decoded{run.y, *std::max_element(run.step.begin(), run.step.end())};
  });
}

}  // namespace
}  // namespace furl::test
