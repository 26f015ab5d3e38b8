// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "arguments.hpp"
#include "engine.hpp"
#include "furl/detail/number.hpp"
#include "furl/detail/quantize.hpp"
#include "furl/plan.hpp"

namespace furl::cli {

/// The values of all options but files; the library's defaults where one is not given.
struct settings {
  furl::codec codec;
  extents shape;
  dtype in_type = dtype::f32;
  dtype out_type = dtype::f32;
  random_key key{0, 0};
  bool has_key = false;  // whether a part of it was given
  std::unique_ptr<cli::engine> engine;
};

settings settings_from(const arguments& given);

/// As --shape and --window take them; rank 0 is "scalar".
std::string shape_text(const extents& shape);

/// The options that make this codec, e.g. "--bits 2 --window 1,1,8,8".
std::string codec_text(const codec& c);

}  // namespace furl::cli
