// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Everything, for host and for device memory. Library code includes the parts it needs instead.

#include "furl/compress.cuh"
#include "furl/extra/activation.cuh"
#include "furl/extra/allocate_bits.cuh"
#include "furl/extra/batch.cuh"
#include "furl/extra/codebook.cuh"
#include "furl/extra/max_pool.cuh"
#include "furl/extra/measure.cuh"

#if !defined(__CUDACC_RTC__)
#include "furl/furl.hpp"
#endif
