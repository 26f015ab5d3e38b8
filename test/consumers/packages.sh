# As an installed package that has been moved (CMake and pkg-config), as a part of the project's own
# tree, and fetched.
# Case 52, libSGM#79: settings of the parent ignored or
# changed. Case 53, cuda-api-wrappers#717: a package that lacks what it links.
. "$(dirname "$0")/common.sh"

install_moved
(cd "$SOURCE/include" && find furl -name '*.[hcm]*' | sort) > wanted.txt
(cd prefix/include && find . -type f | sed 's/^..//' | sort) | diff wanted.txt - || fail "these headers are not those of the tree"
# The version of the headers, as docs/building.md asks for it.
version=$(sed -nE 's/^#define FURL_VERSION_M(AJOR|INOR) //p' "$include/furl/config.hpp" | paste -sd.)
grep -qF "find_package(furl $version REQUIRED)" "$SOURCE/docs/building.md" || fail "docs/building.md does not ask for furl $version"
installed="-DWAY=installed -DCMAKE_PREFIX_PATH=$PWD/prefix -DFURL_VERSION_WANTED=$version"
build_package installed $installed
build_package fetched -DWAY=fetched
configure_package subdirectory -DWAY=subdirectory
for name in fetched subdirectory; do grep '"command"' $name/compile_commands.json > $name.commands; done
diff fetched.commands subdirectory.commands || fail "these commands of compilers differ"

# A version that this one is not is refused, and CMake says which one was found.
later=${version%.*}.$((${version#*.} + 1))
if (configure_package wrong $installed -DFURL_VERSION_WANTED=$later) > /dev/null 2>&1; then
  fail "furl $version passes for $later"
fi
grep -qF "version: $version." wrong.log || fail "the refusal of furl $later does not name the version found"

# So is a component: there are none.
if (configure_package component $installed "-DFURL_VERSION_WANTED=$version;COMPONENTS;cuda") > /dev/null 2>&1; then
  fail "furl has a component cuda"
fi
grep -q "furl has no components, and so no cuda" component.log || fail "the refusal of a component does not name it"

# A project that can do without furl goes on where something is missing that furl needs.
configure_package optional $installed -DFURL_OPTIONAL=ON -DCMAKE_DISABLE_FIND_PACKAGE_Threads=ON
grep -q 'goes on without furl' optional.log || fail "furl is found without threads"

# From CMake 3.18 on.
if from_index "$WORK/cmake_3_18" cmake==3.18.4.post1; then
  cmake=$WORK/cmake_3_18/cmake/data/bin/cmake
  build_package old_installed $installed
  configure_package old_fetched -DWAY=fetched
  grep -q -- "-I$SOURCE/include .*main.cpp" old_fetched/compile_commands.json || fail "no include path from CMake 3.18"
else
  echo "no package index: CMake 3.18 is left out"
fi

if ! command -v pkg-config > /dev/null; then
  echo "pkg-config is not installed: left out"
  exit 0
fi
export PKG_CONFIG_PATH=$PWD/prefix/share/pkgconfig
[[ "$(pkg-config --modversion furl)" == "$version".* ]]
"$CXX" -std=c++17 -O1 $(pkg-config --cflags furl) "$here/host_fingerprint.cpp" -o pkg_config $(pkg-config --libs furl)
agrees ./pkg_config

# With headers in an absolute folder, as Nix has them, and outside of the source, as CMake wants that.
outside=$(mktemp -d)
trap 'rm -rf "$outside"' EXIT
cmake -S "$SOURCE" -B absolute -G Ninja -DFURL_BUILD_TESTS=OFF -DFURL_BUILD_EXAMPLES=OFF \
  "-DCMAKE_INSTALL_PREFIX=$outside/prefix" "-DCMAKE_INSTALL_INCLUDEDIR=$outside/headers/include" > absolute.log
cmake --install absolute > absolute.install.log
export PKG_CONFIG_PATH=$outside/prefix/share/pkgconfig
[ "$(realpath "$(pkg-config --variable=includedir furl)")" = "$(realpath "$outside/headers/include")" ] ||
  fail "furl.pc does not name the folder of the headers"
