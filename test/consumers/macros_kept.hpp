// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

#if !defined(min) || !defined(max) || !defined(small) || !defined(I) || !defined(ERROR) || \
    !defined(DEBUG) || !defined(check)
#error "a header of furl has undefined a macro of its user"
#endif
