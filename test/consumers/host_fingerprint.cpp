// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

#include "host_engine.hpp"

extern "C" unsigned long long make_fingerprint() {
  return fingerprint<host_engine>().make();
}

#if !defined(FINGERPRINT_LIBRARY)
int main() {
  std::printf("%016llx\n", make_fingerprint());
}
#endif
