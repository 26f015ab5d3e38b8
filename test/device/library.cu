// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

#define FURL_TEST_DEFINES_LIBRARY
#include "device/library.cuh"

namespace furl {
FURL_TEST_LIBRARY();
}
