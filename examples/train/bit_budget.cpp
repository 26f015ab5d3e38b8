// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#include "bit_budget.hpp"

#include <numeric>
#include <utility>

#include "fold_store.hpp"
#include "furl/extra/allocate_bits.hpp"

namespace trainer {

void bit_budget::begin_step() {
  std::vector<float> sensitivity;
  std::vector<double> squared;
  double mean = 1.0;  // squared range of the last one that has a report
  float last = 1.0F;  // its sensitivity
  for (const share& s : shares_) {
    if (s.squared_ranges.empty()) {
      squared.insert(squared.end(), s.num_tiles, mean);
    } else {
      squared.insert(squared.end(), s.squared_ranges.begin(), s.squared_ranges.end());
      const double sum = std::accumulate(s.squared_ranges.begin(), s.squared_ranges.end(), 0.0);
      mean = sum / double(s.squared_ranges.size());
      last = float(s.sensitivity);
    }
    sensitivity.resize(squared.size(), last);
  }
  std::vector<u8> tile_bits(squared.size());
  check(furl::host::allocate_bits(u64(mean_bits_) * tile_bits.size(), sensitivity, squared,
                                  tile_bits));
  auto next = tile_bits.cbegin();
  for (share& s : shares_) {
    const auto end = next + static_cast<std::ptrdiff_t>(s.num_tiles);
    s = {s.num_tiles, std::accumulate(next, end, u64(0)), 0.0, {}};
    next = end;
  }
}

u64 bit_budget::sum_of_bits(std::size_t activation, u64 num_tiles) {
  if (activation >= shares_.size()) shares_.resize(activation + 1);
  share& s = shares_[activation];
  if (s.num_tiles != num_tiles) s = {num_tiles, 0, 0.0, {}};
  return s.sum_of_bits > 0 ? s.sum_of_bits : u64(mean_bits_) * num_tiles;
}

void bit_budget::report(std::size_t activation, double sensitivity,
                        std::vector<double> squared_ranges) {
  shares_[activation].sensitivity += sensitivity;
  shares_[activation].squared_ranges = std::move(squared_ranges);
}

}  // namespace trainer
