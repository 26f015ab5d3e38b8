// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace furl::bench {

// all: every row, not only the default ones.

void register_call_rows(bool all);      // one call each
void register_baseline_rows(bool all);  // bench/baselines

}  // namespace furl::bench
