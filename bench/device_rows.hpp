// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace furl::bench {

// all: every row, not only the default ones.

void register_copy_rows(bool all);
void register_codec_rows(bool all);     // compress, decompress, decompress_add
void register_part_rows(bool all);      // ranges, pooling, packing
void register_baseline_rows(bool all);  // bench/baselines

}  // namespace furl::bench
