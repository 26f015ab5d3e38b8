#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The furl authors
# SPDX-License-Identifier: Apache-2.0

# All that wants a GPU, on a machine that has one (and nvcc, CMake, Ninja, GoogleTest, Google
# Benchmark, nlohmann-json, Eigen, zlib, cuRAND's headers; for the chart python3 with matplotlib):
#   bench/run_on_gpu.sh                all steps
#   bench/run_on_gpu.sh STEP ...       some of: tests sanitizer suite ncu
# Results go to bench/results/<card>.*. FURL_SANITIZER_FILTER chooses the tests that compute-sanitizer
# runs, as --gtest_filter does.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf '\n== %s (at %s s)\n' "$1" "$SECONDS"; }

card=$(nvidia-smi --query-gpu=name --format=csv,noheader --id=0 | tr '[:upper:]' '[:lower:]' |
  tr -cs '[:alnum:]\n' '_')
results=bench/results/$card
mkdir -p bench/results
export FURL_REQUIRE_DEVICE=1

build() {
  say "build, for $card"
  cmake --preset cuda -DFURL_BUILD_BENCHMARKS=ON -DCMAKE_CUDA_ARCHITECTURES=native
  cmake --build build/cuda --target device_checks
}

run_tests() {
  say "all device tests"
  ctest --preset cuda -L device
}

run_sanitizer() {
  local tool program options
  for tool in memcheck racecheck initcheck synccheck; do
    options=(--tool "$tool" --error-exitcode 1)
    # Some tests make CUDA calls fail on purpose.
    [ "$tool" != memcheck ] || options+=(--report-api-errors no)
    for program in test/device/furl_device_tests bench/furl_baseline_tests; do
      say "compute-sanitizer: $tool of $program"
      compute-sanitizer "${options[@]}" "build/cuda/$program" --gtest_brief=1 \
        "--gtest_filter=${FURL_SANITIZER_FILTER:-*}"
    done
  done
}

run_suite() {
  say "benchmarks"
  build/cuda/bench/furl_device_bench "--benchmark_out=$results.json"
  python3 bench/report.py "$results.json"
}

run_ncu() {
  if ! command -v ncu > /dev/null; then
    say "no ncu: kernels are not profiled"
    return
  fi
  local operation kernel
  for operation in compress decompress decompress_add; do
    say "ncu: $operation"
    kernel=${operation%_add}
    ncu --set full --kernel-name "regex:$kernel" --launch-count 2 \
      build/cuda/bench/furl_device_bench --benchmark_min_time=0 --benchmark_repetitions=1 \
      "--benchmark_filter=^$operation/lfc_2d/f32/bits:2/group:256/resnet50_56x56/" \
      > "$results.$operation.ncu.txt"
  done
}

[ $# -gt 0 ] || set -- tests sanitizer suite ncu
for step in "$@"; do
  case $step in
    tests | sanitizer | suite | ncu) ;;
    *) echo "no step named $step: tests sanitizer suite ncu" >&2 && exit 2 ;;
  esac
done
build
for step in "$@"; do "run_$step"; done
say "done: $results.*"
