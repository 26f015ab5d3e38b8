# nvcc with nothing but -I.
. "$(dirname "$0")/common.sh"

"$NVCC" -I"$include" "$here/device_fingerprint.cu" -o one_liner
if [ -z "${LAUNCHER:-}" ]; then agrees_on_device ./one_liner; fi
