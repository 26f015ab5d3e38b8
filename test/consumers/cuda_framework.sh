# An extension as frameworks build them: no operators on half types, position-independent code, a
# binding compiled without CUDA, one shared library.
# Case 49, cub#394: half types without operators. Case 54, GACT-ICML#1: symbols of a
# framework of another version.
. "$(dirname "$0")/common.sh"

framework="-std=c++17 $framework_macros -D_GLIBCXX_USE_CXX11_ABI=1 -DTORCH_EXTENSION_NAME=extension -I$include"
all "$NVCC $to_run $framework --expt-relaxed-constexpr -include cuda_bf16.h -include cuda_fp16.h -Xcompiler -fPIC,-O1 \
    -DFINGERPRINT_LIBRARY -DFINGERPRINT_SMALL -c $here/device_fingerprint.cu -o kernels.o" \
  "$CXX $framework -O1 -fPIC -DFINGERPRINT_LIBRARY -Dmake_fingerprint=make_host_fingerprint -c $here/host_fingerprint.cpp -o binding.o" \
  "$CXX -std=c++17 $here/load.cpp -o load -ldl"
"$NVCC" -cudart shared -shared kernels.o binding.o -o extension.so
# The library needs no symbol of a framework, and shows none of furl's.
[ -z "$(exported_symbols extension.so)" ] || fail "exported: $(exported_symbols extension.so)"
if nm -uDC extension.so | grep -E 'furl|torch|c10'; then fail "undefined symbols"; fi
agrees_on_device ./load ./extension.so
