# Clang as the CUDA compiler. Clang 19, the newest of Debian 12, knows CUDA up to 12.5, some of it with a
# warning: here it has 12.4.
. "$(dirname "$0")/common.sh"

clang=$(newest_clang)
if [ -z "$clang" ] || [ "${clang##*-}" -lt 19 ]; then skip "there is no clang++-19 or later"; fi
toolkit=$(bash "$here/toolkit.sh" 12.4 "$WORK/cuda_12_4")
hostile_header hpp cuh
# Under a launcher the PTX runs, and the machine code need not be optimised.
quick=${LAUNCHER:+-Xcuda-ptxas -O0}
"$clang" -x cuda --cuda-path="$toolkit" --cuda-gpu-arch=sm_90 -Wno-unknown-cuda-version -std=c++17 -O2 -Wall -Wextra \
  -Werror -I"$include" -include hostile.hpp "$here/device_fingerprint.cu" $quick -c -o program.o
"$NVCC" -cudart shared program.o -o program
agrees_on_device ./program
