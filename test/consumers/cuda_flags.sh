# Flags that change arithmetic, streams, language or what names mean do not change a byte; nor does the newest nvcc
# that there is, which compiles the first program, optimised; the installed one compiles the second.
# Case 50, stdgpu#478: min and max. Case 51, cub#187: warnings in the user's build.
. "$(dirname "$0")/common.sh"

newest=$NVCC
if toolkit=$(bash "$here/toolkit.sh" newest "$WORK/cuda_newest"); then
  newest=$toolkit/bin/nvcc
elif [ $? != 77 ]; then
  fail "no newest nvcc, for another reason than that there is no package index"
fi
"$newest" --version | grep release
hostile_header hpp cuh
options="$to_run $cuda_strict -include hostile.hpp -I$include $here/device_fingerprint.cu"
all "$newest $options -std=c++17 --use_fast_math -o fast_math" \
  "$NVCC $options -std=c++20 $fast_compile -fmad=false --default-stream per-thread \
    -DCUB_WRAPPED_NAMESPACE=wrapped -DTHRUST_CUB_WRAPPED_NAMESPACE=wrapped -o hostile"
agrees_on_device ./fast_math
agrees_on_device ./hostile
