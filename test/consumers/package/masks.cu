// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

#include "furl/compress.cuh"

furl::status pack_mask(const furl::plan& p, furl::const_bytes mask, furl::bytes blob);

furl::status pack_mask(const furl::plan& p, furl::const_bytes mask, furl::bytes blob) {
  return furl::pack(p, mask, blob, nullptr);
}
