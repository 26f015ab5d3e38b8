# CUDA toolkits other than the installed one: run-time compilation of 12.4, and the newest nvcc there is.
. "$(dirname "$0")/common.sh"

old=$(bash "$here/toolkit.sh" 12.4 "$WORK/cuda_12_4")
new=$(bash "$here/toolkit.sh" newest "$WORK/cuda_newest")
"$new/bin/nvcc" --version | grep release
all "$CXX -std=c++17 -DFURL_INCLUDE_DIR='\"$include\"' -DFURL_CUDA_INCLUDE_DIRS='\"$old/include\"' -I$old/include \
    $SOURCE/test/device/nvrtc_test.cpp -L$old/lib -l:libnvrtc.so.12 -lgtest_main -lgtest -pthread -Wl,-rpath,$old/lib \
    -o run_time && ./run_time" \
  "$new/bin/nvcc $to_run -std=c++17 -Werror=all-warnings -I$include $here/device_fingerprint.cu -o newest"
agrees_on_device ./newest
