# As a package of those package managers whose recipes are in the folder packaging, of CPack, and as a wheel. A tool
# that is missing is left out, and the test then shows as skipped; what can be tested without it has passed.
. "$(dirname "$0")/common.sh"
recipes=$SOURCE/packaging
version=$(sed -nE 's/^#define FURL_VERSION_[A-Z]+ ([0-9]+)$/\1/p' "$include/furl/config.hpp" | paste -sd.)
missing=()

# lacks TOOL ...: whether one is not installed, which is then reported.
lacks() {
  for tool in "$@"; do
    if ! command -v "$tool" > /dev/null; then
      missing+=("$tool")
      return 0
    fi
  done
  return 1
}

# logged NAME COMMAND ...: runs it, and shows what it printed if it fails.
logged() {
  local name=$1
  shift
  "$@" > "$name.log" 2>&1 || { cat "$name.log"; fail "$name failed"; }
}

# finds NAME PREFIX [ARGUMENT ...]: the package under PREFIX has the headers of the tree, and a project finds them there
# with these arguments of CMake, by default the prefix. packages.sh compiles with a package, and conan below.
finds() {
  local name=$1 prefix=$2
  shift 2
  diff -r "$include/furl" "$prefix/include/furl" || fail "$name has other headers than the tree"
  configure_package "$name" -DWAY=installed "-DFURL_VERSION_WANTED=$version" "${@:--DCMAKE_PREFIX_PATH=$prefix}"
  grep -q -- "-isystem $prefix/include .*other.cpp" "$name/compile_commands.json" || fail "$name: furl is found elsewhere"
}

# One version, that of the headers, wherever a tool cannot read it from them.
while read -r file pattern; do
  written=$(sed -nE "s/$pattern/\1/p" "$SOURCE/$file" | head -1)
  [ "$written" = "$version" ] || fail "$file has version '$written', the headers have $version"
done << 'END'
CHANGELOG.md ^## ([0-9.]+).*
examples/pytorch/pyproject.toml ^version = "(.*)"
packaging/conda/recipe.yaml ^  version: "(.*)"
packaging/debian/changelog ^furl \((.*)-[0-9]+\) .*
packaging/spack/spack_repo/furl/packages/furl/package.py ^    version\("(.*)"\)
packaging/vcpkg/furl/vcpkg.json ^  "version": "(.*)",
END

# The component alone, and CPack.
cmake --install "$BUILD" --prefix component --component furl > component.log
cmake --install "$BUILD" --prefix everything > everything.log
diff -r component everything || fail "the component furl is not all that is installed"
(cd "$BUILD" && logged "$work/cpack" cpack -G "TGZ;DEB" -B "$work/cpack")
tar xzf "cpack/furl-$version.tar.gz"
diff -r everything "furl-$version" || fail "the archive of CPack has other files than the installation"
finds archive "$PWD/furl-$version"
if ! lacks dpkg-deb; then
  dpkg-deb -x "cpack/libfurl-dev_${version}_all.deb" cpack_deb
  diff -r everything cpack_deb/usr || fail "the DEB of CPack has other files than the installation"
fi

# vcpkg: the manifest by what its reference says of these fields, the port by what its functions do.
python3 - "$recipes/vcpkg/furl/vcpkg.json" << 'END'
import json, sys
port = json.load(open(sys.argv[1]))
assert port.keys() <= {"name", "version", "description", "license", "dependencies"}, port.keys()
assert port["name"] == "furl" and port["license"] == "Apache-2.0"
assert port["dependencies"] == [{"name": name, "host": True} for name in ("vcpkg-cmake", "vcpkg-cmake-config")]
END
logged port cmake -D "PORT_DIR=$recipes/vcpkg/furl" -D "CURRENT_PACKAGES_DIR=$PWD/vcpkg" -D "BUILD=$PWD/port" \
  -P "$here/vcpkg.cmake"
[ -f vcpkg/share/furl/copyright ] || fail "the port has no licence"
finds from_vcpkg "$PWD/vcpkg"

# Spack: only that the recipe is Python.
python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' "$recipes/spack/spack_repo/furl/packages/furl/package.py"

# Debian: the source package with what the headers need of the tree.
if ! lacks dpkg-buildpackage dh; then
  mkdir -p "debian/furl-$version"
  cp -r "$SOURCE"/{CMakeLists.txt,LICENSE,README.md,cmake,include} "debian/furl-$version"
  tar czf "debian/furl_$version.orig.tar.gz" -C debian "furl-$version"
  cp -r "$recipes/debian" "debian/furl-$version"
  (cd "debian/furl-$version" && logged "$work/dpkg-buildpackage" dpkg-buildpackage -us -uc)
  dpkg-deb -x "debian/libfurl-dev_$version-1_all.deb" debian/to
  finds from_debian "$PWD/debian/to/usr"
  if ! lacks lintian; then
    # No bug report asks for this package.
    logged lintian lintian --fail-on error,warning --suppress-tags initial-upload-closes-no-bugs debian/*.changes
  fi
fi

# Tools of the package index, with what they depend on.
tools=$WORK/recipes_tools
packages="conan==2.34.0 py-rattler-build==0.73.0 scikit-build-core==1.1.2"
if [ "$(cat "$tools/installed" 2> /dev/null)" != "$packages" ]; then
  rm -rf "$tools"
  if python3 -m venv "$tools" && "$tools/bin/pip" install -qq --no-compile $packages; then
    echo "$packages" > "$tools/installed"
  fi
fi
if [ ! -e "$tools/installed" ]; then
  skip "there is no package index: conan, rattler-build, the wheel; ${missing[*]}"
fi

logged wheel "$tools/bin/pip" wheel -q --no-build-isolation --no-deps -w wheel "$SOURCE"
logged wheel.install "$tools/bin/pip" install -q --no-index --no-deps --target site wheel/furl_headers-"$version"-py3-none-any.whl
told() { PYTHONPATH=$PWD/site "$tools/bin/python" -m furl_headers "$1"; }
[ "$(told --version)" = "$version" ]
[ "$(told --includes)" = "-I$PWD/site/furl_headers/include" ]
finds from_wheel "$PWD/site/furl_headers" "-Dfurl_DIR=$(told --cmakedir)"

# The recipe builds and runs the project of the folder package.
export CONAN_HOME=$PWD/conan_home
logged conan.profile "$tools/bin/conan" profile detect
logged conan "$tools/bin/conan" create "$recipes/conan" --no-remote -s build_type=Debug \
  -c tools.cmake.cmaketoolchain:generator=Ninja -c "tools.cmake.cmake_layout:test_folder=$PWD/conan_test"
grep -qF "furl/$version (test package): RUN: " conan.log || fail "conan has not run the program"
conan_package=$(dirname "$(find conan_home/p/b -name licenses)")
diff -r "$include/furl" "$conan_package/include/furl" || fail "conan's package has other headers than the tree"

logged conda "$tools/bin/python" "$here/conda.py" "$recipes/conda/recipe.yaml" "$SOURCE" "$PWD/conda_build"
mkdir conda
tar xjf conda_build/noarch/furl-"$version"-*.tar.bz2 -C conda
finds from_conda "$PWD/conda"

if [ ${#missing[@]} != 0 ]; then skip "not installed: ${missing[*]}"; fi
