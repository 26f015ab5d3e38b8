# As packages.sh, in projects that have CUDA files and an architecture of their own.
# Case 52, libSGM#79. Case 53, cuda-api-wrappers#717.
. "$(dirname "$0")/common.sh"

install_moved
cuda="-DCONSUMER_CUDA=ON -DCMAKE_CUDA_COMPILER=$NVCC"
build_package installed -DWAY=installed -DCMAKE_PREFIX_PATH="$PWD/prefix" $cuda
build_package fetched -DWAY=fetched -DFURL_SOURCE="$SOURCE" $cuda
for name in installed fetched; do
  architectures=$(grep -o 'arch=compute_[0-9a-z]*' $name/compile_commands.json | sort -u)
  [ "$architectures" = arch=compute_90 ] || fail "$name is compiled for $architectures, not what the project asks for"
done
