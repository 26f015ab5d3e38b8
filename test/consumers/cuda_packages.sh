# As packages.sh, in projects that have CUDA files and an architecture of their own, and in those of CUDA alone.
# Case 52, libSGM#79. Case 53, cuda-api-wrappers#717. Case 121, cuda-api-wrappers#563: no C++ for FindThreads.
. "$(dirname "$0")/common.sh"

install_moved
installed="-DWAY=installed -DCMAKE_PREFIX_PATH=$PWD/prefix"
fetched=-DWAY=fetched

# own_architecture NAME: the project's files are compiled for what it asks for.
own_architecture() {
  local architectures
  architectures=$(grep -o 'arch=compute_[0-9a-z]*' "$1/compile_commands.json" | sort -u)
  [ "$architectures" = arch=compute_90 ] || fail "$1 is compiled for $architectures, not what the project asks for"
}

build_package alone -DLANGUAGES=CUDA -DCMAKE_CUDA_COMPILER="$NVCC" $installed
own_architecture alone
build_package both "-DLANGUAGES=CXX;CUDA" -DCMAKE_CUDA_COMPILER="$NVCC" $fetched
own_architecture both
# The other way to each, in the same folder, where the compilers are known.
configure_package alone $fetched
own_architecture alone
configure_package both $installed
own_architecture both
