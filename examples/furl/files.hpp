// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "buffer.hpp"
#include "furl/config.hpp"

namespace furl::cli {

// A path of "-" is the standard input or output. Every function ends the program with a failure
// that names the path and the reason.

/// Refuses a file of another size; `what` says in the message what needs that size, of which 2^63
/// stands for all that no file can have.
void check_size(const std::string& path, u64 found, u64 size, const std::string& what);

/// All bytes of a file, which must be exactly size: otherwise refused, for a regular file before
/// any memory is taken.
buffer read_exactly(const std::string& path, u64 size, const std::string& what);

/// All bytes of a file of any size.
buffer read_all(const std::string& path);

/// Writes a file as a whole or not at all: into a new file beside it, which then takes its name.
/// What is no regular file (a pipe, a device) is written to directly.
void write_file(const std::string& path, const buffer& content);

}  // namespace furl::cli
