# Including compress.cuh costs at most 2 s of processor time more than the CUDA runtime's header, for
# one architecture. (Calling it costs what its kernels take.)
. "$(dirname "$0")/common.sh"

# cost HEADER: hundredths of a second of user time, the less of two runs.
cost() {
  echo "#include <$1>" > cost.cu
  for run in 1 2; do
    { TIMEFORMAT=%U; time "$NVCC" -std=c++17 -arch=sm_90 -I"$include" -c cost.cu -o cost.o; } 2>&1 | tr -d .
  done | sort -n | head -1
}

runtime=$(cost cuda_runtime.h)
compress=$(cost furl/compress.cuh)
echo "compress.cuh: $((10#$compress - 10#$runtime)) ms beyond cuda_runtime.h"
((10#$compress - 10#$runtime <= 2000)) || fail "more than 2000 ms"
