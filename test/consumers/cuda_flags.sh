# Flags that change arithmetic, streams, language or what names mean do not change a byte.
# Case 50, stdgpu#478: min and max. Case 51, cub#187: warnings in the user's build.
. "$(dirname "$0")/common.sh"

hostile_header hpp cuh
build="$NVCC $to_run -I$include $here/device_fingerprint.cu"
warnings="-Werror=all-warnings -Xcompiler=-Wall,-Wextra,-Wconversion,-Wshadow,-Werror"
all "$build -std=c++17 --use_fast_math -o fast_math" \
  "$build -std=c++20 -fmad=false --default-stream per-thread $warnings -include hostile.hpp \
    -DCUB_WRAPPED_NAMESPACE=wrapped -DTHRUST_CUB_WRAPPED_NAMESPACE=wrapped -o hostile"
agrees_on_device ./fast_math
agrees_on_device ./hostile
