// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "furl/plan.hpp"

namespace furl::test {

/// A codec with f32 metadata, unless asked otherwise, so that a step is what arithmetic says.
inline codec with(int bits, int group, dtype meta = dtype::f32) {
  codec c;
  c.bits = bits;
  c.group = group;
  c.meta = meta;
  return c;
}

}  // namespace furl::test
