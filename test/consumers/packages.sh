# As an installed package that has been moved (CMake and pkg-config), as a part of the project's own
# tree, and fetched.
# Case 52, libSGM#79: settings of the parent ignored or
# changed. Case 53, cuda-api-wrappers#717: a package that lacks what it links.
. "$(dirname "$0")/common.sh"

install_moved
build_package installed -DWAY=installed -DCMAKE_PREFIX_PATH="$PWD/prefix"
build_package subdirectory -DWAY=subdirectory -DFURL_SOURCE="$SOURCE"
build_package fetched -DWAY=fetched -DFURL_SOURCE="$SOURCE"

# A version that this one is not is refused, and CMake says which one was found.
if cmake -S "$here/package" -B wrong -G Ninja -DCMAKE_CXX_COMPILER="$CXX" -DWAY=installed \
  -DCMAKE_PREFIX_PATH="$PWD/prefix" -DFURL_VERSION_WANTED=0.2 > wrong.log 2>&1; then
  fail "version 0.1 passes for 0.2"
fi
grep -q 'version: 0\.1\.' wrong.log || fail "the refusal of version 0.2 does not name the version found"

if ! command -v pkg-config > /dev/null; then
  echo "pkg-config is not installed: left out"
  exit 0
fi
export PKG_CONFIG_PATH=$PWD/prefix/share/pkgconfig
[[ "$(pkg-config --modversion furl)" == 0.1.* ]]
"$CXX" -std=c++17 -O1 $(pkg-config --cflags furl) "$here/host_fingerprint.cpp" -o pkg_config $(pkg-config --libs furl)
agrees ./pkg_config
