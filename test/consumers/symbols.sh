# Shared libraries that are built for different machines, loaded together in both orders, where all see
# each other's symbols: each runs its own code.
# Case 47, cub#545, without CUDA.
. "$(dirname "$0")/common.sh"

# The types' namespace is named after the version.
version=$(printf '#include "furl/config.hpp"\nFURL_VERSION_MAJOR FURL_VERSION_MINOR\n' | "$CXX" -xc++ -std=c++17 -I"$include" -E -P - | tail -1)
namespaces=$(grep -rhoE '^inline namespace [a-z0-9_]+' "$include" | sort -u)
[ "$namespaces" = "inline namespace v${version/ /_}" ] || fail "the version is $version, but: $namespaces"

build="$CXX -std=c++17 -O2 -fPIC -shared -DFINGERPRINT_LIBRARY -I$include -pthread"
all "$build $here/host_fingerprint.cpp -o libplain.so" \
  "$build -march=native $here/host_fingerprint.cpp -o libnative.so" \
  "$CXX -std=c++17 $strict $here/load.cpp -o load -ldl"
for library in libplain.so libnative.so; do
  [ -z "$(exported_symbols $library)" ] || { exported_symbols $library; fail "$library exports these"; }
done
agrees ./load ./libplain.so ./libnative.so
agrees ./load ./libnative.so ./libplain.so
