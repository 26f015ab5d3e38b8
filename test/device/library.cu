// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

#include "device/library.cuh"

namespace furl {
FURL_TEST_LIBRARY();
}
