// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What every call for host memory is made of: the checks that read arrays, the floating-point
// environment, and work in parallel over units that need nothing of each other.

#include "furl/config.hpp"
#include "furl/detail/checks.hpp"
#include "furl/detail/quantize.hpp"
#include "furl/plan.hpp"
#include "furl/thread_pool.hpp"
#include "furl/types.hpp"

#if defined(__SSE__) || defined(_M_X64)
#include <xmmintrin.h>
#else
#include <cfenv>
#endif

FURL_HIDDEN_BEGIN

/// The same calls for host memory, on the CPU.
namespace furl::host {

/// Sets the arithmetic that the format needs for the lifetime of the object, in the calling thread:
/// round to nearest even, subnormals kept, no traps. Then restores what it found, flags included.
class float_environment {
 public:
  float_environment() {
#if defined(__SSE__) || defined(_M_X64)
    saved_ = _mm_getcsr();
    _mm_setcsr(0x1f80);
#elif defined(__aarch64__)
    asm volatile("mrs %0, fpcr" : "=r"(saved_));
    asm volatile("msr fpcr, %0" : : "r"(0ull));
#else
    ::std::fegetenv(&saved_);
    ::std::fesetenv(FE_DFL_ENV);
#endif
  }
  ~float_environment() {
#if defined(__SSE__) || defined(_M_X64)
    _mm_setcsr(saved_);
#elif defined(__aarch64__)
    asm volatile("msr fpcr, %0" : : "r"(saved_));
#else
    ::std::fesetenv(&saved_);
#endif
  }
  float_environment(const float_environment&) = delete;
  float_environment& operator=(const float_environment&) = delete;

 private:
#if defined(__SSE__) || defined(_M_X64)
  unsigned saved_;
#elif defined(__aarch64__)
  unsigned long long saved_;
#else
  ::std::fenv_t saved_;
#endif
};

namespace detail {

/// Bits of each tile that fit the plan. Apart from the output of the call.
inline status check_bits_of_tiles(const plan& p, const_bytes tile_bits,
                                  const furl::detail::named_bytes& output) {
  if (const status s = furl::detail::check_tile_bits(p, tile_bits); !s) return s;
  if (p.kind() != plan_kind::mixed) return {};
  u64 sum = 0;
  for (u64 t = 0; t < tile_bits.size_bytes; ++t) {
    const int bits = static_cast<const u8*>(tile_bits.data)[t];
    if (bits < 1 || bits > max_bits)
      return {error::out_of_range, "options.tile_bits", bits, "each must be 1..8"};
    sum += u64(bits);
  }
  if (sum != p.sum_of_bits())
    return {error::wrong_size, "options.tile_bits", i64(sum),
            "must add up to the plan's sum_of_bits"};
  return furl::detail::check_apart(output,
                                   {{tile_bits.data, tile_bits.size_bytes, "options.tile_bits"}},
                                   furl::detail::apart_from_outputs);
}

/// Ranges that fit the plan, finite and in order. Apart from the blob, which the call writes.
inline status check_ranges(const plan& p, const given_ranges& given, const_bytes blob) {
  if (const status s = furl::detail::check_given_ranges(p, given); !s) return s;
  if (given.scope == range_scope::measured || p.num_elements() == 0) return {};
  for (i64 i = 0; i < given.num_pairs; ++i) {
    if (!is_range(given.pairs[2 * i], given.pairs[2 * i + 1]))
      return {error::out_of_range, "options.ranges", i, "the pair there must be finite, lo <= hi"};
  }
  return furl::detail::check_apart({blob.data, p.size_bytes(), "blob"},
                                   {furl::detail::range_bytes(given)},
                                   furl::detail::apart_from_outputs);
}

/// First of num_units that a share works on, for share 0..num_shares.
constexpr i64 share_begin(i64 num_units, int share, int num_shares) {
  return num_units / num_shares * share + num_units % num_shares * share / num_shares;
}

inline int count_shares(const thread_pool* pool) {
  return pool == nullptr ? 1 : pool->num_threads();
}

/// Runs function(share) for every share of the pool, or on the calling thread.
template <class Function>
void run_shares(thread_pool* pool, const Function& function) {
  if (pool == nullptr) {
    function(0);
  } else {
    pool->run(function);
  }
}

/// Calls function(first, last) for the units first..last - 1 of each share, in the arithmetic of
/// the format.
template <class Function>
void compute_shares(i64 num_units, thread_pool* pool, const Function& function) {
  const int num_shares = count_shares(pool);
  run_shares(pool, [&](int share) {
    const float_environment environment;
    function(share_begin(num_units, share, num_shares),
             share_begin(num_units, share + 1, num_shares));
  });
}

/// Calls function(unit) for all units, likewise.
template <class Function>
void for_each_unit(i64 num_units, thread_pool* pool, const Function& function) {
  compute_shares(num_units, pool, [&](i64 first, i64 last) {
    for (i64 unit = first; unit < last; ++unit) function(unit);
  });
}

}  // namespace detail
}  // namespace furl::host

FURL_HIDDEN_END
