# Plain compilers with nothing but -I, without CUDA: g++, clang++ and the newest clang++ there is. Under
# all warnings, without exceptions, with hostile macros, with and without contraction of products
# and sums, and with what Clang has no macro to refuse, each gives the same bytes.
# Case 50, stdgpu#478: min and max. Case 51, cub#187: warnings in the user's build. Case 141: a namespace `std` of the
# user's own.
. "$(dirname "$0")/common.sh"

declare -A seen=()
hostile_header hpp
commands=()
for compiler in "$CXX" g++ clang++ $(newest_clang); do
  path=$(readlink -f "$(command -v "$compiler")" || true)
  if [ -z "$path" ] || [ -n "${seen[$path]:-}" ]; then continue; fi
  seen[$path]=1
  name=$(basename "$compiler")
  common="$compiler -O1 $strict -I$include $here/host_fingerprint.cpp -pthread"
  commands+=("$common -std=c++17 -march=native -ffp-contract=fast -fno-exceptions -fno-rtti -o $name.contracted")
  commands+=("$common -std=c++20 -ffp-contract=off -include hostile.hpp -o $name.hostile")
  if [[ $("$compiler" --version) == *clang* ]]; then
    commands+=("$common -std=c++17 -march=native -funsafe-math-optimizations -fno-trapping-math -o $name.unsafe")
  fi
done
all "${commands[@]}"
for program in *.contracted *.hostile *.unsafe; do
  if [ -e "$program" ]; then agrees "./$program"; fi
done

# A name that begins with std:: may be another's; so may one in a header of the device, which no compiler here reads.
{
  system_headers
  echo 'namespace app { namespace std {} } using namespace app;'
  (cd "$include" && find furl -name '*.hpp' | sort) | sed 's/.*/#include "&"/'
} > other_std.cpp
"$CXX" -std=c++17 -fsyntax-only -I"$include" other_std.cpp
if grep -rnP '(?<![:\w])std::' "$include" | grep -vP '^[^:]+:\d+:\s*//'; then fail "these do not begin with ::std"; fi
