# Clang as the CUDA compiler. Clang 19, the newest of Debian 12, knows CUDA up to 12.5. Of CUDA 13 it
# misses a header, which may be empty, and an option of fatbinary, so that its steps are run here one
# by one.
. "$(dirname "$0")/common.sh"

clang=$(newest_clang)
if [ -z "$clang" ] || [ "${clang##*-}" -lt 19 ]; then
  echo "there is no clang++-19 or later: left out"
  exit 0
fi
toolkit=$(cd "$(dirname "$(readlink -f "$NVCC")")/.." && pwd)
mkdir missing
touch missing/texture_fetch_functions.h
hostile_header hpp cuh
build="$clang -x cuda --cuda-path=$toolkit --cuda-gpu-arch=sm_90 -std=c++17 -O2 -Wall -Wextra -Werror \
  -Wno-unknown-cuda-version -Imissing -I$include -include hostile.hpp $here/device_fingerprint.cu"
$build --cuda-device-only -S -o kernels.ptx
"$toolkit/bin/fatbinary" --create=kernels.fatbin --image3=kind=ptx,sm=90,file=kernels.ptx -64
$build --cuda-host-only -Xclang -fcuda-include-gpubinary -Xclang kernels.fatbin -c -o program.o
"$NVCC" -cudart shared program.o -o program
agrees_on_device ./program
