# Shared libraries that are built for different machines, loaded together in both orders, where all see
# each other's symbols: each runs its own code.
. "$(dirname "$0")/common.sh"

build="$CXX -std=c++17 -O2 -fPIC -shared -DFINGERPRINT_LIBRARY -I$include -pthread"
all "$build $here/host_fingerprint.cpp -o libplain.so" \
  "$build -march=native $here/host_fingerprint.cpp -o libnative.so" \
  "$CXX -std=c++17 $strict $here/load.cpp -o load -ldl"
for library in libplain.so libnative.so; do
  [ -z "$(exported_symbols $library)" ] || { exported_symbols $library; fail "$library exports these"; }
done
agrees ./load ./libplain.so ./libnative.so
agrees ./load ./libnative.so ./libplain.so
