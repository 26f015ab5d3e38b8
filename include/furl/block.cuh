// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// For builders: the parts of a kernel of your own. Start with block/compress.cuh, whose
// block_compress shows the pattern, and with examples/fuse.

#include "furl/block/average_pool.cuh"
#include "furl/block/codes.cuh"
#include "furl/block/compress.cuh"
#include "furl/block/decompress.cuh"
#include "furl/block/elements.cuh"
#include "furl/block/layout.cuh"
#include "furl/block/min_max.cuh"
#include "furl/block/positives.cuh"
#include "furl/block/rotated.cuh"
#include "furl/block/statistics.cuh"
#include "furl/block/tile.cuh"
