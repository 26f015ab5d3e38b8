// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "buffer.hpp"
#include "furl/config.hpp"
#include "furl/detail/number.hpp"

namespace furl::cli {

/// What stands before the values in a file that numpy.save wrote.
struct npy_header {
  std::string descr;  // e.g. "<f4"; as the file spells it
  bool fortran_order = false;
  std::vector<i64> shape;
  u64 data_offset = 0;
};

bool is_npy(const buffer& file);

/// Pre: is_npy(file). A damaged header is a failure that names the path.
npy_header read_npy_header(const buffer& file, const std::string& path);

/// Whether the values are in C order, whatever the header calls it: with at most one dimension
/// longer than 1, or no values, both orders are the same.
bool in_c_order(const npy_header& header);

/// numpy has no bf16 of its own: it is saved as void or as the integers it was viewed as, to which
/// --dtype gives the meaning. A --dtype that contradicts the file is refused.
dtype npy_dtype(const npy_header& header, std::optional<dtype> given, const std::string& path);

}  // namespace furl::cli
