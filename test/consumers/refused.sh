# What cannot work does not compile, and the compiler says why.
. "$(dirname "$0")/common.sh"

# refused MESSAGE SOURCE COMPILER FLAG ...: the compiler fails and prints the message.
refused() {
  local message=$1 source=$2
  shift 2
  local file=refused.cpp
  if [[ $1 == *nvcc ]]; then file=refused.cu; fi
  printf '%s\n' "$source" > $file
  if "$@" -std=c++${standard:-17} -I"$include" -c $file -o refused.o > refused.log 2>&1; then
    fail "$* compiles: $source"
  fi
  grep -qF -- "$message" refused.log || { cat refused.log; fail "$* does not say: $message"; }
}

ieee="furl needs IEEE arithmetic"
config='#include "furl/config.hpp"'
pack='#include "furl/detail/quantize.hpp"
void f(const furl::u32 (&row)[8], furl::u32 (&bytes)[9]) { furl::pack_columns<9>(row, bytes); }'
unpack='#include "furl/detail/quantize.hpp"
void f(const furl::u32 (&bytes)[9], furl::u32 (&row)[8]) { furl::unpack_columns<9>(bytes, row); }'
# An earlier C++, and nothing that follows from it.
for compiler in "$CXX" $(command -v clang++) ${NVCC:-}; do
  standard=14 refused "furl needs C++17" '#include "furl/furl.hpp"' "$compiler"
  [ "$(grep -c 'error:' refused.log)" = 2 ] || { cat refused.log; fail "$compiler says more than that furl needs C++17"; }
done
for compiler in "$CXX" $(command -v clang++); do
  refused "$ieee: build without -ffast-math" "$config" "$compiler" -ffast-math
  refused "$ieee: build without -ffast-math" "$config" "$compiler" -Ofast
  refused "$ieee: build without -ffast-math and -ffinite-math-only" "$config" "$compiler" -ffinite-math-only
  refused "codes have 1 to 8 bits" "$pack" "$compiler"
  refused "codes have 1 to 8 bits" "$unpack" "$compiler"
done
if [[ $("$CXX" --version) != *clang* ]]; then
  associative="-fassociative-math -fno-signed-zeros -fno-trapping-math"
  refused "$ieee: build without -fassociative-math" "$config" "$CXX" $associative
  refused "$ieee: build without -fassociative-math, -freciprocal-math" "$config" "$CXX" -freciprocal-math
  refused "$ieee: build without -fassociative-math, -freciprocal-math, -fno-signed-zeros" "$config" "$CXX" -fno-signed-zeros
  if [ "$(uname -m)" = x86_64 ]; then
    refused "float expressions to be evaluated in binary32" "$config" "$CXX" -mfpmath=387
  fi
fi

if [ -n "${NVCC:-}" ]; then
  refused "$ieee: build without -ffast-math" "$config" "$NVCC" -Xcompiler=-ffast-math
  refused "whole warps, one block" '#include "furl/block/min_max.cuh"
template class furl::block_min_max<48>;' "$NVCC"
  # An argument of a kernel is what its parameter says, or converts to it and loses nothing.
  launch() {
    echo '#include "furl/detail/device/launch.cuh"
__global__ void scale(const float*, unsigned char*, int);
furl::status f(const float* x, unsigned char* y, furl::i64 large, int small) {
  (void)small;
  return furl::kernel::launch(scale, {1}, nullptr, '"$1"');
}'
  }
  launch "x, y, small" > accepted.cu
  "$NVCC" -std=c++17 -I"$include" -c accepted.cu -o accepted.o
  refused 'a value of type "unsigned char *" cannot be used to initialize an entity of type "const float *"' \
    "$(launch "y, const_cast<unsigned char*>(y), small")" "$NVCC"
  refused 'cannot be used to initialize an entity of type "unsigned char *"' "$(launch "x, x, small")" "$NVCC"
  refused 'a value of type "const unsigned char *" cannot be used to initialize an entity of type "unsigned char *"' \
    "$(launch "x, static_cast<const unsigned char*>(y), small")" "$NVCC"
  refused 'invalid narrowing conversion from "long long" to "int"' "$(launch "x, y, large")" "$NVCC"
  refused "an argument for each parameter" "$(launch "x, y")" "$NVCC"
  # Host memory in a container is no device memory.
  refused 'no instance of function template "furl::compress" matches the argument list' '#include <vector>
#include "furl/compress.cuh"
furl::status f(const furl::plan& p) { return furl::compress(p, std::vector<float>(8), {}, {}, nullptr); }' "$NVCC"
  refused 'no instance of function template "furl::decompress" matches the argument list' '#include <vector>
#include "furl/compress.cuh"
furl::status f(const furl::plan& p, std::vector<float>& y) { return furl::decompress(p, {}, y, nullptr); }' "$NVCC"
fi
