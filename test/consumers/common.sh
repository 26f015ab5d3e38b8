# For the scripts of this folder, each of which is one way to use furl. In the environment: SOURCE, the
# root of furl's tree; WORK, a folder for what is built; CXX; NVCC, if there is one; LAUNCHER, what
# programs for the device run under, if anything; DEVICE=1 where such programs can run.
set -euo pipefail
. "$SOURCE/test/consumers/from_index.sh"
here=$SOURCE/test/consumers
include=$SOURCE/include
work=$WORK/$(basename "$0" .sh)
rm -rf "$work"
mkdir -p "$work"
cd "$work"

# What furl's own build of the program prints.
fingerprint=$("$FINGERPRINT")
[ "$fingerprint" != 0000000000000000 ]

strict="-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror"
cuda_strict="-Werror=all-warnings -Xcompiler=-Wall,-Wextra,-Wconversion,-Wshadow,-Werror"
# Programs to be run have code for any device.
to_run="-gencode arch=compute_90,code=compute_90 --no-compress -cudart shared"

# For what does not depend on how the device's code is optimised, where nvcc (13 or later) can do without.
fast_compile=
if "${NVCC:-false}" --help 2> /dev/null | grep -q -e --Ofast-compile; then fast_compile=-Ofc=max; fi

fail() {
  echo "$*" >&2
  exit 1
}

# skip REASON: what ctest then shows as skipped.
skip() {
  echo "left out: $*" >&2
  exit 77
}

# all COMMAND ...: runs the commands, two at a time; fails if any does.
all() { printf '%s\0' "$@" | xargs -0 -P2 -I{} bash -euo pipefail -c '{}'; }

# agrees PROGRAM ...: it prints furl's own fingerprint.
agrees() {
  local got
  got=$("$@") || fail "$* failed"
  [ "$got" = "$fingerprint" ] || fail "$* printed $got, not $fingerprint"
}

# agrees_on_device PROGRAM ...: likewise, where there is a device.
agrees_on_device() {
  if [ -n "${DEVICE:-}" ]; then agrees $LAUNCHER "$@"; fi
}

# newest_clang: clang++-N with the largest N, if there is any.
newest_clang() { compgen -c clang++- | grep -E '^clang\+\+-[0-9]+$' | sort -V | tail -1 || true; }

# exported_symbols LIBRARY: the functions and variables of furl that other libraries can see, but for
# those of versioned types.
exported_symbols() {
  nm -D --defined-only "$1" | grep -oE '_ZN?K?4furl.*' | grep -vE '^_ZN?K?4furl([0-9]+[a-z]+)?[0-9]v[0-9]' | c++filt
}

# system_headers: those that furl's headers include, as far as the compiler has them.
system_headers() {
  (cd "$include" && grep -rhoE '^#include <[^>]*>' furl | sort -u) |
    sed -E 's/#include (.*)/#if __has_include(\1)\n#include \1\n#endif/'
  echo '#include <cstdio>'
}

# hostile_header EXTENSION ...: writes hostile.hpp, which defines hostile macros after the headers of the
# system and before every header of furl with one of these extensions.
hostile_header() {
  {
    system_headers
    echo "#include \"$here/hostile_macros.hpp\""
    for extension in "$@"; do
      (cd "$include" && find furl -name "*.$extension" | sort) | sed 's/.*/#include "&"/'
    done
    echo "#include \"$here/macros_kept.hpp\""
  } > hostile.hpp
}

# install_moved: furl installed, and the installation moved to `prefix`.
install_moved() {
  cmake --install "$BUILD" --prefix first > install.log
  mv first prefix
}

# configure_package NAME ARGUMENT ...: configures the project in `package`, with $cmake if that is set.
configure_package() {
  local name=$1
  shift
  "${cmake:-cmake}" -S "$here/package" -B "$name" -G Ninja -DCMAKE_CXX_COMPILER="$CXX" \
    -DCMAKE_INSTALL_PREFIX="$PWD/$name/to" -DFURL_SOURCE="$SOURCE" "$@" > "$name.log" 2>&1 ||
    { cat "$name.log"; fail "$name is not configured"; }
}

# build_package NAME ARGUMENT ...: configures, builds, runs and installs it. Nothing of furl is installed.
build_package() {
  local name=$1
  configure_package "$@"
  "${cmake:-cmake}" --build "$name" >> "$name.log" && "$name/consumer" || { cat "$name.log"; fail "$name failed"; }
  "${cmake:-cmake}" --install "$name" >> "$name.log"
  [ "$(cd "$name/to" && find . -type f)" = ./bin/consumer ] || fail "$name installs more than its program"
}
