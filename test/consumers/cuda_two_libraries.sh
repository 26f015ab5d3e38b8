# Two shared libraries that are built for different architectures and with different settings, loaded
# together in both orders, where all see each other's symbols: each launches its own kernels. The older
# one has all of them.
# Case 47, cub#545: none of them was launched, without an error.
. "$(dirname "$0")/common.sh"

build="$NVCC -I$include --no-compress -cudart shared -shared -DFINGERPRINT_LIBRARY $here/device_fingerprint.cu"
all "$build -std=c++17 -DFINGERPRINT_SMALL -gencode arch=compute_90,code=compute_90 -Xcompiler -fPIC,-O1 -o libnew.so" \
  "$build -std=c++20 $framework_macros -include cuda_bf16.h -include cuda_fp16.h -gencode arch=compute_75,code=compute_75 \
    -Xcompiler -fPIC,-O1,-march=native -fmad=false -o libold.so" \
  "$CXX -std=c++17 $here/load.cpp -o load -ldl"
for library in libnew.so libold.so; do
  [ -z "$(exported_symbols $library)" ] || fail "$library exports $(exported_symbols $library)"
done
agrees_on_device ./load ./libnew.so ./libold.so
agrees_on_device ./load ./libold.so ./libnew.so
