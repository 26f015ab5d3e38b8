# Three files of one program include everything and call the same functions, two of them CUDA: linked as a
# program and as a shared library, with one architecture or one for each file, with and without
# relocatable device code.
# Case 48, cuCollections#97: multiple definitions.
. "$(dirname "$0")/common.sh"

# Without the static stubs of nvcc 12.8 and later, which would keep the kernels of two files apart.
stubs=
if "$NVCC" --help | grep -q -e --static-global-template-stub; then stubs=-static-global-template-stub=false; fi
cuda="$NVCC -std=c++17 $stubs $fast_compile -DFINGERPRINT_SMALL -I$include --no-compress -Xcompiler -fPIC -c $here/device_fingerprint.cu"
second="-DFINGERPRINT_LIBRARY -Dmake_fingerprint=make_second_fingerprint"
arch="-gencode arch=compute_90,code=compute_90"
relocatable="-gencode arch=compute_90,code=sm_90 -Xptxas -O0 -rdc=true"
all "$cuda $arch -o first.o" "$cuda $second -gencode arch=compute_80,code=compute_80 -o second.o" \
  "$cuda $relocatable -o first_rdc.o" "$cuda $second $relocatable -o second_rdc.o" \
  "$CXX -std=c++17 -I$include -fPIC -DFINGERPRINT_LIBRARY -Dmake_fingerprint=make_host_fingerprint -c $here/host_fingerprint.cpp -o host.o"
"$NVCC" -cudart shared first.o second.o host.o -o program
"$NVCC" -cudart static -shared first.o second.o host.o -o library.so
"$NVCC" -arch=sm_90 -cudart static first_rdc.o second_rdc.o host.o -o program_rdc
"$NVCC" -arch=sm_90 -cudart shared -shared first_rdc.o second_rdc.o host.o -o library_rdc.so
# Each file has functions of its own to launch its kernels.
nm -C program > symbols.txt
for list in 'architecture_list<800>' 'architecture_list<900>'; do
  grep -q "furl::decompress<furl::kernel::$list" symbols.txt || fail "no decompress of $list in the program"
done
agrees_on_device ./program
if [ -z "${LAUNCHER:-}" ]; then agrees_on_device ./program_rdc; fi
