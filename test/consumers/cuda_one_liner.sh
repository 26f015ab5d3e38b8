# nvcc with nothing but -I and a name.
. "$(dirname "$0")/common.sh"

# Code that is only linked, as most often here, need not be optimised.
[ -z "${LAUNCHER:-}" ] || export NVCC_APPEND_FLAGS="-Xptxas -O0"
"$NVCC" -DFINGERPRINT_SMALL -I"$include" "$here/device_fingerprint.cu" -o one_liner
if [ -z "${LAUNCHER:-}" ]; then agrees_on_device ./one_liner; fi
