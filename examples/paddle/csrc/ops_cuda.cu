// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// The same source, in which nvcc sees the kernels too.
#include "ops.cc"
