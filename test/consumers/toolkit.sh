#!/usr/bin/env bash
# toolkit.sh VERSION FOLDER: puts a CUDA toolkit together in FOLDER, once, from wheels of the package index, and prints
# its path. VERSION is 12.0: what Clang and run-time compilation need (the wheels of 12 have no nvcc); or newest: what
# the newest nvcc needs. Where there is no index it ends with 77, as a skipped test does.
set -euo pipefail
. "$(dirname "$0")/from_index.sh"
version=$1
mkdir -p "$2"
cd "$2"
exec 9> lock
flock 9
if [ -e complete ]; then
  echo "$PWD/cuda"
  exit 0
fi

wheels() {
  from_index wheels "$@" || { echo "left out: there is no package index to get CUDA $version from" >&2; exit 77; }
}
case $version in
  12.0) # but for CCCL, whose first wheels lack the headers that have no extension
    wheels nvidia-cuda-runtime-cu12==12.0.146 nvidia-cuda-nvrtc-cu12==12.0.140 \
      nvidia-cuda-cccl-cu12==12.4.127.post1 nvidia-cuda-nvcc-cu12==12.0.140
    ;;
  newest)
    wheels nvidia-cuda-nvcc nvidia-nvvm nvidia-cuda-crt nvidia-cuda-runtime nvidia-cuda-cccl
    ;;
esac
rm -rf cuda
mkdir cuda
# Each wheel of 12 has a folder of its own.
for part in wheels/nvidia/*/; do cp -rlf "$part." cuda; done

# Clang includes a header of cuRAND that furl does not need.
touch cuda/include/curand_mtgp32_kernel.h
chmod +x cuda/bin/*
touch complete
echo "$PWD/cuda"
