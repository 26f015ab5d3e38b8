// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Everything for host memory. Library code includes the parts it needs instead.

#include "furl/codebook.hpp"
#include "furl/host/codebook.hpp"
#include "furl/host/codes.hpp"
#include "furl/host/compress.hpp"
#include "furl/host/decompress.hpp"
#include "furl/host/dropout.hpp"
#include "furl/host/max_pool.hpp"
#include "furl/host/measure.hpp"
#include "furl/host/optimal_codebooks.hpp"
#include "furl/host/relu.hpp"
#include "furl/host/widths.hpp"
#include "furl/plan.hpp"
#include "furl/plan_bytes.hpp"
#include "furl/stash.hpp"
