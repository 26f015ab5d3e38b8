# A kernel of the user's own, against the installed headers alone, and by nvcc with nothing but -I and a name.
. "$(dirname "$0")/common.sh"

install_moved
all "$NVCC $to_run -std=c++17 -Werror=all-warnings -Xcompiler=-Wall,-Wextra -Iprefix/include $here/own_kernel.cu \
    -o own_kernel" \
  "$NVCC -Iprefix/include $here/own_kernel.cu -o one_liner"
if [ -n "${DEVICE:-}" ]; then $LAUNCHER ./own_kernel; fi
if [ -n "${DEVICE:-}" ] && [ -z "${LAUNCHER:-}" ]; then ./one_liner; fi
