# Clang as the CUDA compiler, with CUDA 12.0: Clang 19, the newest of Debian 12, knows it up to 12.5. Its steps are run
# one by one, since the wheels of 12 have no fatbinary. To run the kernels, the host's half is compiled for the
# installed CUDA too, whose runtime has other structures. Of CUDA 13, Clang misses a header, which may be empty, and
# the path to CCCL.
. "$(dirname "$0")/common.sh"

clang=$(newest_clang)
if [ -z "$clang" ] || [ "${clang##*-}" -lt 19 ]; then skip "there is no clang++-19 or later"; fi
old=$(bash "$here/toolkit.sh" 12.0 "$WORK/cuda_12_0")
new=$(cd "$(dirname "$(readlink -f "$NVCC")")/.." && pwd)
mkdir missing
touch missing/texture_fetch_functions.h
hostile_header hpp cuh

# build TOOLKIT VERSION ARGUMENT ...: Clang, with that toolkit's headers, whatever others the system has.
build() {
  local toolkit=$1 version=$2
  shift 2
  printf '#include <cuda_runtime.h>\nstatic_assert(CUDART_VERSION / 1000 == %s);\n' "$version" > version.hpp
  "$clang" -x cuda --cuda-path="$toolkit" -isystem "$toolkit/include" -isystem "$toolkit/include/cccl" \
    -idirafter missing --cuda-gpu-arch=sm_90 -std=c++17 -O2 -Wall -Wextra \
    -Werror -Wno-unknown-cuda-version -include version.hpp -I"$include" \
    -include hostile.hpp "$here/device_fingerprint.cu" "$@"
}
build "$old" 12 --cuda-device-only -S -o kernels.ptx
"$old/bin/ptxas" -O0 -arch=sm_90 kernels.ptx -o kernels.cubin
build "$old" 12 --cuda-host-only -fsyntax-only
"$new/bin/fatbinary" --create=kernels.fatbin --image3=kind=ptx,sm=90,file=kernels.ptx -64
build "$new" 13 --cuda-host-only -Xclang -fcuda-include-gpubinary -Xclang kernels.fatbin -c -o program.o
"$NVCC" -cudart shared program.o -o program
agrees_on_device ./program
