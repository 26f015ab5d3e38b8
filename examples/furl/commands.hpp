// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "arguments.hpp"
#include "furl/config.hpp"
#include "furl/plan.hpp"

namespace furl::cli {

// One function per command. Each ends with its result written, or with a failure and nothing.

void inspect(const arguments& given);
void compress(const arguments& given);
void decompress(const arguments& given);
void decompress_add(const arguments& given);
void pack(const arguments& given);
void unpack(const arguments& given);

/// Bytes of so many elements; 2^63 for all sizes that no file can have.
u64 bytes_of(i64 num_elements, int element_bytes);

/// For messages: what needs a number of bytes, e.g. "f16 of shape 2,3".
std::string tensor_text(dtype type, const extents& shape);

}  // namespace furl::cli
