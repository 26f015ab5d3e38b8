// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Everything, for host and for device memory. Library code includes the parts it needs instead.

#include "furl/codebook.cuh"
#include "furl/codes.cuh"
#include "furl/compress.cuh"
#include "furl/decompress.cuh"
#include "furl/dropout.cuh"
#include "furl/max_pool.cuh"
#include "furl/measure.cuh"
#include "furl/relu.cuh"
#include "furl/stash.cuh"
#include "furl/widths.cuh"

#if !defined(__CUDACC_RTC__)
#include "furl/furl.hpp"
#endif
