# A kernel of the user's own, against the installed headers alone.
. "$(dirname "$0")/common.sh"

install_moved
"$NVCC" $to_run -std=c++17 -Werror=all-warnings -Xcompiler=-Wall,-Wextra -Iprefix/include \
  "$here/own_kernel.cu" -o own_kernel
if [ -n "${DEVICE:-}" ]; then $LAUNCHER ./own_kernel; fi
