# Run-time compilation by CUDA 12.0.
. "$(dirname "$0")/common.sh"

old=$(bash "$here/toolkit.sh" 12.0 "$WORK/cuda_12_0")
"$CXX" -std=c++17 -DFURL_INCLUDE_DIR="\"$include\"" -DFURL_CUDA_INCLUDE_DIRS="\"$old/include\"" -I"$old/include" \
  "$SOURCE/test/device/nvrtc_test.cpp" -L"$old/lib" -l:libnvrtc.so.12 -lgtest_main -lgtest -pthread \
  -Wl,-rpath,"$old/lib" -o run_time
./run_time
