// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Everything for host memory. Library code includes the parts it needs instead.

#include "furl/compress.hpp"
#include "furl/extra/activation.hpp"
#include "furl/extra/allocate_bits.hpp"
#include "furl/extra/batch.hpp"
#include "furl/extra/codebook.hpp"
#include "furl/extra/format_codebooks.hpp"
#include "furl/extra/max_pool.hpp"
#include "furl/extra/measure.hpp"
#include "furl/extra/optimal_codebooks.hpp"
#include "furl/plan.hpp"
