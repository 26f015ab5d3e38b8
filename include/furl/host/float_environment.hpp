// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#if defined(__SSE__)
#include <xmmintrin.h>
#else
#include <cfenv>
#endif

#include "furl/config.hpp"

FURL_HIDDEN_BEGIN

namespace furl::host {

/// Sets the arithmetic that the format needs for the lifetime of the object, in the calling thread:
/// round to nearest even, subnormals kept, no traps. Then restores what it found, flags included.
class float_environment {
 public:
  float_environment() {
#if defined(__SSE__)
    saved_ = _mm_getcsr();
    _mm_setcsr(0x1f80);
#elif defined(__aarch64__)
    asm volatile("mrs %0, fpcr" : "=r"(saved_));
    asm volatile("msr fpcr, %0" : : "r"(0ull));
#else
    std::fegetenv(&saved_);
    std::fesetenv(FE_DFL_ENV);
#endif
  }
  ~float_environment() {
#if defined(__SSE__)
    _mm_setcsr(saved_);
#elif defined(__aarch64__)
    asm volatile("msr fpcr, %0" : : "r"(saved_));
#else
    std::fesetenv(&saved_);
#endif
  }
  float_environment(const float_environment&) = delete;
  float_environment& operator=(const float_environment&) = delete;

 private:
#if defined(__SSE__)
  unsigned saved_;
#elif defined(__aarch64__)
  unsigned long long saved_;
#else
  std::fenv_t saved_;
#endif
};

}  // namespace furl::host

FURL_HIDDEN_END
