# The words of GNU are only used where the compiler is one that has them: what of MSVC can be seen with g++.
# Case 127, HiGHS#1445: a builtin of GCC.
. "$(dirname "$0")/common.sh"

if [[ $("$CXX" --version) == *clang* ]]; then skip "needs g++"; fi
{
  system_headers
  # As MSVC for x64 says of itself; `poison` makes an error of a word.
  echo '#undef __GNUC__
#undef __SSE__
#undef __SSE2__
#undef __AVX2__
#define _MSC_VER 1930
#define _MSVC_LANG __cplusplus
#define _M_X64 100
#define __forceinline inline'
  echo "#pragma GCC poison __attribute__ __int128 __typeof__ $(cd "$include" && grep -rhoE '__builtin_\w+' furl | sort -u | xargs)"
} > msvc.hpp
"$CXX" -std=c++17 -O1 -Wall -Wextra -Werror -include msvc.hpp -I"$include" "$here/host_fingerprint.cpp" -o program -pthread
agrees ./program
if "$CXX" -std=c++17 -D_M_FP_FAST -I"$include" "$here/host_fingerprint.cpp" -fsyntax-only 2> fast.log; then
  fail "/fp:fast is not refused"
fi
grep -q 'build without /fp:fast' fast.log || fail "the refusal does not name /fp:fast"
