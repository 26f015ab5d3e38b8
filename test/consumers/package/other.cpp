// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

#include "furl/furl.hpp"

furl::u64 size_of_blob();

furl::u64 size_of_blob() {
  return furl::plan::make({}, {1000})->size_bytes();
}
