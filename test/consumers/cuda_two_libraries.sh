# Two shared libraries that are built for different architectures and with different settings, loaded together in both
# orders, where all see each other's symbols: each launches its own kernels. The first is built with hostile macros and
# warnings; the second as frameworks build extensions: no operators on half types, a binding compiled without CUDA.
# Case 47, cub#545: none of them was launched, without an error. Case 49, cub#394: half types without operators.
# Case 54, GACT-ICML#1: symbols of a framework of another version.
. "$(dirname "$0")/common.sh"

hostile_header hpp cuh
cuda="$NVCC $fast_compile -I$include --no-compress -DFINGERPRINT_LIBRARY -DFINGERPRINT_SMALL $here/device_fingerprint.cu"
framework="-std=c++17 -D_GLIBCXX_USE_CXX11_ABI=1 -DTORCH_EXTENSION_NAME=extension \
  -D__CUDA_NO_HALF_OPERATORS__ -D__CUDA_NO_HALF_CONVERSIONS__ -D__CUDA_NO_BFLOAT16_CONVERSIONS__ \
  -D__CUDA_NO_HALF2_OPERATORS__"
all "$cuda -std=c++20 -gencode arch=compute_75,code=compute_75 -Xcompiler -fPIC,-O1,-march=native -fmad=false \
    $cuda_strict -include hostile.hpp -cudart shared -shared -o libold.so" \
  "$cuda $framework --expt-relaxed-constexpr -include cuda_bf16.h -include cuda_fp16.h -Xcompiler -fPIC,-O1 \
    -gencode arch=compute_90,code=compute_90 -c -o kernels.o" \
  "$CXX $framework -I$include -O1 -fPIC -DFINGERPRINT_LIBRARY -Dmake_fingerprint=make_host_fingerprint \
    -c $here/host_fingerprint.cpp -o binding.o" \
  "$CXX -std=c++17 $here/load.cpp -o load -ldl"
"$NVCC" -cudart shared -shared kernels.o binding.o -o libextension.so
for library in libextension.so libold.so; do
  [ -z "$(exported_symbols $library)" ] || fail "$library exports $(exported_symbols $library)"
done
# Nor does it need any.
if nm -uDC libextension.so | grep -E 'furl|torch|c10'; then fail "undefined symbols"; fi
agrees_on_device ./load ./libextension.so ./libold.so
agrees_on_device ./load ./libold.so ./libextension.so
